package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const (
	namespace = "garden-dev"
	core      = "/apis/core.gardener.cloud/v1beta1"
	objects   = "/api/v1/namespaces/" + namespace
	// developers is a group with all rights on the Secrets and ConfigMaps of the namespace, and no others.
	developers = "bench:developers"
	// atOnce is how many objects are created or deleted at a time where that is not measured.
	atOnce = 16
)

// seeds are the seeds of the measured gardenlets; the shoots run on them in turn.
var seeds = []string{"bench-a", "bench-b"}

func shootName(i int) string { return fmt.Sprintf("s%04d", i) }

// fill creates the seeds, and shoots on them with a Secret and a ConfigMap each, as their gardenlet keeps them.
func fill(ctx context.Context, admin *user, shoots int) error {
	if err := admin.createRights(ctx); err != nil {
		return err
	}
	if err := admin.create(ctx, "/api/v1/namespaces/garden/secrets",
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bench-dns"}}`)); err != nil {
		return err
	}
	for _, seed := range seeds {
		if err := admin.createSeed(ctx, seed); err != nil {
			return err
		}
	}
	return harness.InParallel(ctx, atOnce, shoots, func(ctx context.Context, i int) error {
		if err := admin.createShoot(ctx, shootName(i), seeds[i%len(seeds)]); err != nil {
			return err
		}
		err := admin.create(ctx, objects+"/secrets", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"%s.monitoring"},
			"stringData":{"username":"admin","password":"not a password"}}`, shootName(i)))
		if err != nil {
			return err
		}
		return admin.create(ctx, objects+"/configmaps", configMap(shootName(i)+".ca-cluster"))
	})
}

func (u *user) createRights(ctx context.Context) error {
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	err := u.create(ctx, roles+"/roles", []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"bench"},
		"rules":[{"apiGroups":[""],"resources":["secrets","configmaps"],"verbs":["*"]}]}`))
	if err != nil {
		return err
	}
	return u.create(ctx, roles+"/rolebindings",
		fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"bench"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"bench"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":%q}]}`, developers))
}

func (u *user) createSeed(ctx context.Context, name string) error {
	return u.create(ctx, core+"/seeds", fmt.Appendf(nil, `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed",
		"metadata":{"name":%q},"spec":{"provider":{"type":"local","region":"local"},"ingress":
			{"domain":"ingress.%s.example.com","controller":{"kind":"nginx"}},
		"networks":{"nodes":"10.240.0.0/16","pods":"10.241.0.0/16","services":"10.242.0.0/16"},
		"dns":{"provider":{"type":"local","credentialsRef":{"apiVersion":"v1","kind":"Secret","name":"bench-dns","namespace":"garden"}},
			"internal":{"type":"local","domain":"internal.bench.example.com",
				"credentialsRef":{"apiVersion":"v1","kind":"Secret","name":"bench-dns","namespace":"garden"}}}}}`, name, name))
}

func (u *user) createShoot(ctx context.Context, name, seed string) error {
	shoot, err := harness.Shoot(name, 1, map[string]any{"seedName": seed})
	if err != nil {
		return err
	}
	return u.create(ctx, harness.ShootsPath, shoot)
}

func configMap(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"ca.crt":"not a certificate"}}`, name)
}

// ownObject returns the path of a Secret or a ConfigMap of a shoot, in turn; request i is for the seed i%len(seeds).
func ownObject(i, shoots int) string {
	shoot := shootName(i % shoots)
	if i/len(seeds)%2 == 0 {
		return objects + "/secrets/" + shoot + ".monitoring"
	}
	return objects + "/configmaps/" + shoot + ".ca-cluster"
}

// actors are a landscape with its data in memory, and the users who send requests.
type actors struct {
	*harness.Landscape
	admin *user
	// webhook is the API server as a client of the webhooks, which answer only it.
	webhook *user
	// gardenlets has one user for each seed.
	gardenlets []*user
	// developer may do by RBAC what the gardenlets do; stranger may do nothing.
	developer, stranger *user
}

// startActors starts a landscape, fills it, and creates the users with their certificates.
func startActors(ctx context.Context, shoots int, flags ...string) (*actors, error) {
	l, err := harness.StartLandscape(ctx, append([]string{"--seeds=0", "--datastore=memory"}, flags...)...)
	if err != nil {
		return nil, err
	}
	a := &actors{Landscape: l}
	if err := a.prepare(ctx, shoots); err != nil {
		l.Remove()
		return nil, err
	}
	return a, nil
}

func (a *actors) prepare(ctx context.Context, shoots int) error {
	data, err := os.ReadFile(filepath.Join(a.Dir, "run.json"))
	if err != nil {
		return err
	}
	var run struct{ AdmissionPort int }
	if err := json.Unmarshal(data, &run); err != nil {
		return fmt.Errorf("reading run.json: %w", err)
	}
	if a.admin, err = a.user(ctx, "administrator"); err != nil {
		return err
	}
	if a.webhook, err = a.user(ctx, "kube-apiserver", "--user=gardenlite:apiserver"); err != nil {
		return err
	}
	a.webhook.host = fmt.Sprintf("https://127.0.0.1:%d", run.AdmissionPort)
	if a.developer, err = a.user(ctx, "developer", "--user=bench:developer", "--group="+developers); err != nil {
		return err
	}
	if a.stranger, err = a.user(ctx, "stranger", "--user=bench:stranger"); err != nil {
		return err
	}
	for _, seed := range seeds {
		gardenlet, err := a.user(ctx, "gardenlet "+seed, "--user=gardener.cloud:system:seed:"+seed, "--group=gardener.cloud:system:seeds")
		if err != nil {
			return err
		}
		a.gardenlets = append(a.gardenlets, gardenlet)
	}
	if err := fill(ctx, a.admin, shoots); err != nil {
		return fmt.Errorf("filling the landscape: %w", err)
	}
	return nil
}

// gardenlet returns the gardenlet that object i belongs to.
func (a *actors) gardenlet(i int) *user { return a.gardenlets[i%len(a.gardenlets)] }

// check returns an error unless each gardenlet can read its own objects, and not those of the other one. Otherwise
// the webhook would not be measured.
func (a *actors) check(ctx context.Context, shoots int) error {
	for i := range 2 * shoots {
		if err := a.gardenlet(i).get(ctx, ownObject(i, shoots)); err != nil {
			return err
		}
		if err := a.gardenlet(i+1).send(ctx, http.MethodGet, ownObject(i, shoots), nil, http.StatusForbidden); err != nil {
			return err
		}
	}
	return nil
}
