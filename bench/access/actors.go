package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const (
	objects = "/api/v1/namespaces/" + harness.Namespace
	roles   = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + harness.Namespace
	// developers is a group with all rights on the Secrets and ConfigMaps of the namespace, and no others.
	developers = "bench:developers"
)

// seeds are the seeds of the measured gardenlets; the shoots run on them in turn.
var seeds = []string{"bench-a", "bench-b"}

// actors are a landscape with its data in memory, and the users who send requests.
type actors struct {
	*harness.Landscape
	shoots int
	// webhook is the API server as a client of the webhooks, which answer only it.
	webhook kubernetes.Interface
	// gardenlets has one user for each seed.
	gardenlets []kubernetes.Interface
	// developer may do by RBAC what the gardenlets do.
	developer kubernetes.Interface
}

func startActors(ctx context.Context, shoots int) (*actors, error) {
	l, err := harness.StartLandscape(ctx, "--seeds=0", "--datastore=memory")
	if err != nil {
		return nil, err
	}
	a := &actors{Landscape: l, shoots: shoots}
	if err = a.createUsers(ctx); err == nil {
		err = a.createObjects(ctx)
	}
	if err != nil {
		l.Remove()
		return nil, err
	}
	return a, nil
}

func (a *actors) createUsers(ctx context.Context) error {
	data, err := os.ReadFile(filepath.Join(a.Dir, "run.json"))
	if err != nil {
		return err
	}
	var run struct{ AdmissionPort int }
	if err := json.Unmarshal(data, &run); err != nil {
		return fmt.Errorf("reading run.json: %w", err)
	}
	config, err := a.Config(ctx, "--user=gardenlite:apiserver")
	if err != nil {
		return err
	}
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", run.AdmissionPort)
	if a.webhook, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if a.developer, err = a.Client(ctx, "--user=bench:developer", "--group="+developers); err != nil {
		return err
	}
	for _, seed := range seeds {
		gardenlet, err := a.Client(ctx, "--user=gardener.cloud:system:seed:"+seed, "--group=gardener.cloud:system:seeds")
		if err != nil {
			return err
		}
		a.gardenlets = append(a.gardenlets, gardenlet)
	}
	return nil
}

// createObjects creates the seeds, and shoots on them with a Secret and a ConfigMap each, as their gardenlet keeps
// them.
func (a *actors) createObjects(ctx context.Context) error {
	first := []struct{ path, object string }{
		{"/api/v1/namespaces/garden/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bench-dns"}}`},
		{roles + "/roles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"bench"},
			"rules":[{"apiGroups":[""],"resources":["secrets","configmaps"],"verbs":["*"]}]}`},
		{roles + "/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
			"metadata":{"name":"bench"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"bench"},
			"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"` + developers + `"}]}`},
	}
	for _, name := range seeds {
		first = append(first, struct{ path, object string }{"/apis/core.gardener.cloud/v1beta1/seeds", seed(name)})
	}
	for _, f := range first {
		if _, err := harness.Create(ctx, a.Kube, f.path, []byte(f.object)); err != nil {
			return err
		}
	}
	return harness.InParallel(ctx, harness.AtOnce, a.shoots, func(ctx context.Context, i int) error {
		if err := a.CreateShoot(ctx, shootName(i), 1, map[string]any{"seedName": seeds[i%len(seeds)]}); err != nil {
			return err
		}
		_, err := harness.Create(ctx, a.Kube, objects+"/secrets", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret",
			"metadata":{"name":"%s.monitoring"},"stringData":{"username":"admin","password":"not a password"}}`, shootName(i)))
		if err != nil {
			return err
		}
		_, err = harness.Create(ctx, a.Kube, objects+"/configmaps", configMap(shootName(i)+".ca-cluster"))
		return err
	})
}

func shootName(i int) string { return fmt.Sprintf("s%04d", i) }

func configMap(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},
		"data":{"ca.crt":"not a certificate"}}`, name)
}

func seed(name string) string {
	const credentials = `{"apiVersion":"v1","kind":"Secret","name":"bench-dns","namespace":"garden"}`
	return fmt.Sprintf(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed","metadata":{"name":%[1]q},"spec":{
		"provider":{"type":"local","region":"local"},
		"ingress":{"domain":"ingress.%[1]s.example.com","controller":{"kind":"nginx"}},
		"networks":{"nodes":"10.240.0.0/16","pods":"10.241.0.0/16","services":"10.242.0.0/16"},
		"dns":{"provider":{"type":"local","credentialsRef":%[2]s},
			"internal":{"type":"local","domain":"internal.bench.example.com","credentialsRef":%[2]s}}}}`, name, credentials)
}

// gardenlet returns the gardenlet that object i belongs to.
func (a *actors) gardenlet(i int) kubernetes.Interface { return a.gardenlets[i%len(seeds)] }

// object returns the path of a Secret or a ConfigMap of a shoot, in turn; object i is for the seed i%len(seeds).
func (a *actors) object(i int) string {
	resource, name := a.resource(i)
	return objects + "/" + resource + "/" + name
}

func (a *actors) resource(i int) (resource, name string) {
	shoot := shootName(i % a.shoots)
	if i/len(seeds)%2 == 0 {
		return "secrets", shoot + ".monitoring"
	}
	return "configmaps", shoot + ".ca-cluster"
}

func get(ctx context.Context, user kubernetes.Interface, path string) error {
	_, err := user.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	return err
}

// create returns how long a user takes to create a ConfigMap of a shoot, and deletes it as the administrator.
func (a *actors) create(ctx context.Context, user kubernetes.Interface, i int) (time.Duration, error) {
	name := shootName(i%a.shoots) + ".ca-kubelet"
	begin := time.Now()
	if _, err := harness.Create(ctx, user, objects+"/configmaps", configMap(name)); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, a.Kube.CoreV1().RESTClient().Delete().AbsPath(objects + "/configmaps/" + name).Do(ctx).Error()
}

// review sends a review to the webhook as the API server does.
func (a *actors) review(ctx context.Context, i int) error {
	resource, name := a.resource(i)
	_, err := harness.Create(ctx, a.webhook, "/webhooks/auth/seed", fmt.Appendf(nil, `{"kind":"SubjectAccessReview",
		"apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{
		"resourceAttributes":{"namespace":%q,"verb":"get","version":"v1","resource":%q,"name":%q},
		"user":"gardener.cloud:system:seed:%s","groups":["gardener.cloud:system:seeds","system:authenticated"]},
		"status":{"allowed":false}}`,
		harness.Namespace, resource, name, seeds[i%len(seeds)]))
	return err
}

// check returns an error unless each gardenlet can read its own objects, and not those of the other one. Otherwise
// the webhook would not be measured.
func (a *actors) check(ctx context.Context) error {
	for i := range 2 * a.shoots {
		if err := get(ctx, a.gardenlet(i), a.object(i)); err != nil {
			return err
		}
		if err := get(ctx, a.gardenlet(i+1), a.object(i)); !apierrors.IsForbidden(err) {
			return fmt.Errorf("%s is not forbidden for the gardenlet of another seed: %v", a.object(i), err)
		}
	}
	return nil
}
