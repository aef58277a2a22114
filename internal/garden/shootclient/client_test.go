package shootclient

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var key = Key{"dev", "x"}

// garden returns a client for a garden with the project dev. onGet, if set, may change a Shoot each time it is read.
func garden(t *testing.T, onGet func(reads int, shoot *corev1beta1.Shoot), objects ...client.Object) *Client {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1beta1.Shoot{}).
		WithObjects(&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"},
			Spec: corev1beta1.ProjectSpec{Namespace: ptr.To("garden-dev")}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev"}}).
		WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, obj, opts...)
				if shoot, ok := obj.(*corev1beta1.Shoot); ok && err == nil && onGet != nil {
					reads++
					onGet(reads, shoot)
				}
				return err
			},
			SubResourceCreate: func(_ context.Context, _ client.Client, name string, _, request client.Object,
				_ ...client.SubResourceCreateOption) error {
				switch r := request.(type) {
				case *authenticationv1alpha1.AdminKubeconfigRequest:
					r.Status.Kubeconfig = kubeconfigOf(name + " " + time.Duration(*r.Spec.ExpirationSeconds*int64(time.Second)).String())
				case *authenticationv1alpha1.ViewerKubeconfigRequest:
					r.Status.Kubeconfig = kubeconfigOf(name)
				}
				return nil
			},
		}).Build()
	return &Client{Client: c, PollInterval: time.Millisecond}
}

func TestParseKey(t *testing.T) {
	for text, want := range map[string]Key{"x": {"dev", "x"}, "other/x": {"other", "x"}, "": {}, "/x": {}, "a/": {}, "a/b/c": {}} {
		if got, err := ParseKey(text, "dev"); got != want || (err != nil) != (want == Key{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestCreate(t *testing.T) {
	c := garden(t, nil)
	ctx := t.Context()
	spec := Spec{Key: key, Workers: ptr.To[int32](3), KubernetesVersion: "1.35.2", Seed: "local"}
	shoot, created, err := c.Create(ctx, spec)
	if err != nil || !created {
		t.Fatalf("%v, %v", created, err)
	}
	if w := shoot.Spec.Provider.Workers[0]; w.Minimum != 3 || w.Maximum != 3 || shoot.Spec.Kubernetes.Version != "1.35.2" ||
		*shoot.Spec.SeedName != "local" || shoot.Namespace != "garden-dev" {
		t.Errorf("%+v", shoot.Spec)
	}
	// Fields that the garden fills in and newer versions are no difference.
	shoot.Spec.Maintenance = &corev1beta1.Maintenance{}
	shoot.Spec.Provider.Workers[0].Machine.Image.Version = ptr.To("9.9.9")
	if err := c.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*Spec)
		says   string
	}{
		"the same":           {func(*Spec) {}, ""},
		"nothing of version": {func(s *Spec) { s.KubernetesVersion = "" }, ""},
		"nothing of seed":    {func(s *Spec) { s.Seed = "" }, ""},
		"another version":    {func(s *Spec) { s.KubernetesVersion = "1.36.0" }, `spec.kubernetes.version is "1.35.2", not "1.36.0"`},
		"another seed":       {func(s *Spec) { s.Seed = "other" }, `spec.seedName is "local"`},
		"other workers":      {func(s *Spec) { s.Workers = nil }, "spec.provider.workers[0].minimum is 3, not 2"},
	} {
		other := spec
		test.change(&other)
		found, created, err := c.Create(ctx, other)
		if created || (err != nil) != (test.says != "") || err == nil && found.Name != "x" || err != nil &&
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, %v", name, created, err)
		}
	}
	if _, _, err := c.Create(ctx, Spec{Key: Key{"prod", "x"}}); err == nil || !strings.Contains(err.Error(), `no project "prod"`) {
		t.Error(err)
	}
	workerless, _, err := c.Create(ctx, Spec{Key: Key{"dev", "y"}, Workers: ptr.To[int32](0)})
	if err != nil || len(workerless.Spec.Provider.Workers) != 0 || workerless.Spec.CredentialsBindingName != nil {
		t.Errorf("%+v, %v", workerless, err)
	}
}

// TestSampleRotates: the SSH key pair of the sample is rotated in its maintenance time window.
func TestSampleRotates(t *testing.T) {
	shoot, err := Spec{Key: Key{"dev", "x"}}.Sample("garden-dev")
	if err != nil {
		t.Fatal(err)
	}
	if m := shoot.Spec.Maintenance; m == nil || m.AutoRotation == nil || m.AutoRotation.Credentials == nil ||
		m.AutoRotation.Credentials.SSHKeypair == nil ||
		m.AutoRotation.Credentials.SSHKeypair.RotationPeriod.Duration != 7*24*time.Hour {
		t.Errorf("%+v", m)
	}
}

func TestKubernetesVersions(t *testing.T) {
	c := garden(t, nil)
	for name, versions := range map[string][]string{"a": {"1.36.0", "1.35.2"}, "b": {"1.35.2"}} {
		profile := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, version := range versions {
			profile.Spec.Kubernetes.Versions = append(profile.Spec.Kubernetes.Versions, corev1beta1.ExpirableVersion{Version: version})
		}
		if err := c.Client.Create(t.Context(), profile); err != nil {
			t.Fatal(err)
		}
	}
	if versions, err := c.KubernetesVersions(t.Context()); err != nil || strings.Join(versions, " ") != "1.35.2 1.36.0" {
		t.Errorf("%v, %v", versions, err)
	}
}

// TestWithoutGardenlet checks that the progress of a Shoot says that its gardenlet is not ready.
func TestWithoutGardenlet(t *testing.T) {
	c := garden(t, nil)
	if _, _, err := c.Create(t.Context(), Spec{Key: key, Seed: "edge"}); err != nil {
		t.Fatal(err)
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.GardenletReady, Status: "Unknown", Message: "it has stopped"}}
	if err := c.Client.Create(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*c.PollInterval)
	defer cancel()
	told := ""
	err := c.WaitGone(ctx, key, func(p Progress) { told = p.Description })
	const want = "no gardenlet works on it, that of seed edge is not ready: it has stopped"
	if told != want || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%q, %v", told, err)
	}
}

// TestOperate checks that a requested operation that has not begun is not lost.
func TestOperate(t *testing.T) {
	c := garden(t, nil)
	if _, _, err := c.Create(t.Context(), Spec{Key: Key{"dev", "x"}}); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []string{"rotate-ca-start", "rotate-ssh-keypair"} {
		if err := c.RequestOperation(t.Context(), Key{"dev", "x"}, operation); err != nil {
			t.Fatal(err)
		}
	}
	shoot, err := c.Shoot(t.Context(), Key{"dev", "x"})
	if err != nil || shoot.Annotations["gardener.cloud/operation"] != "rotate-ca-start;rotate-ssh-keypair" {
		t.Errorf("%v, %v", shoot.Annotations, err)
	}
	if err := c.RequestOperation(t.Context(), Key{"dev", "none"}, "rotate-ca-start"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func at(state corev1beta1.LastOperationState, percent int32) func(*corev1beta1.Shoot) {
	return func(shoot *corev1beta1.Shoot) {
		shoot.Generation, shoot.Status.ObservedGeneration = 2, 2
		shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: state, Progress: percent, Description: "d"}
	}
}

func TestProgress(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*corev1beta1.Shoot)
		want         string
		done, failed bool
	}{
		"new":         {func(*corev1beta1.Shoot) {}, "Pending", false, false},
		"goes on":     {at("Processing", 40), "Create Processing (40%)", false, false},
		"ready":       {at("Succeeded", 100), "Create Succeeded", true, false},
		"tried again": {at("Error", 40), "Create Error (40%)", false, false},
		"failed":      {at("Failed", 40), "Create Failed (40%)", false, true},
		"changed since": {func(s *corev1beta1.Shoot) {
			at("Succeeded", 100)(s)
			s.Generation = 3
		}, "Create Succeeded", false, false},
		"asked since": {func(s *corev1beta1.Shoot) {
			at("Succeeded", 100)(s)
			s.Annotations = map[string]string{"gardener.cloud/operation": "rotate-ssh-keypair"}
		}, "Create Succeeded", false, false},
		"corrected since": {func(s *corev1beta1.Shoot) {
			at("Failed", 40)(s)
			s.Generation = 3
		}, "Create Failed (40%)", false, false},
		"on its way": {func(s *corev1beta1.Shoot) {
			at("Succeeded", 100)(s)
			s.Status.LastOperation.Type = "Migrate"
		}, "Migrate Succeeded", false, false},
	} {
		shoot := &corev1beta1.Shoot{}
		test.change(shoot)
		if p := ProgressOf(shoot); p.String() != test.want || p.Done != test.done || p.Failed != test.failed {
			t.Errorf("%s: %s, %+v", name, p, p)
		}
	}
}

// TestSummary checks that a Shoot with a condition that is False is not Ready, although its operation has succeeded.
func TestSummary(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	at("Succeeded", 100)(shoot)
	shoot.Status.Conditions = []corev1beta1.Condition{
		{Type: "APIServerAvailable", Status: "True"}, {Type: "ControlPlaneHealthy", Status: "Progressing"},
		{Type: "SystemComponentsHealthy", Status: "Unknown"}}
	if s := Summarize(shoot, "dev"); s.State != "Ready" || !s.Ready || s.Message != "" {
		t.Errorf("%s, %t: %s", s.State, s.Ready, s.Message)
	}
	shoot.Status.Conditions = append(shoot.Status.Conditions,
		corev1beta1.Condition{Type: "EveryNodeReady", Status: "False", Message: "node a is not ready"})
	if s := Summarize(shoot, "dev"); s.State != "Unhealthy" || s.Ready || s.Message != "EveryNodeReady is False: node a is not ready" {
		t.Errorf("%s, %t: %s", s.State, s.Ready, s.Message)
	}
	shoot.Status.IsHibernated = true
	if s := Summarize(shoot, "dev"); s.State != "Unhealthy" {
		t.Errorf("hibernated and %s", s.State)
	}
}

// TestWatch: all Shoots first, then what has changed and what is gone.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := garden(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, name := range []string{"x", "y"} {
			if _, _, err := c.Create(ctx, Spec{Key: Key{"dev", name}}); err != nil {
				t.Fatal(err)
			}
		}
		var reports []string
		err := c.Watch(ctx, func(changed []Summary) {
			text := ""
			for _, s := range changed {
				text += s.Name + " " + s.State + ", "
			}
			reports = append(reports, text)
			shoot, err := c.Shoot(ctx, Key{"dev", "y"})
			switch {
			case err != nil:
				cancel()
			case len(reports) == 1:
				at("Processing", 10)(shoot)
				if err := c.Status().Update(ctx, shoot); err != nil {
					t.Error(err)
				}
			default:
				if err := c.Client.Delete(ctx, shoot); err != nil {
					t.Error(err)
				}
			}
		})
		if got := strings.Join(reports, "; "); got != "x Pending, y Pending, ; y Create Processing (10%), ; y Gone, " ||
			ctx.Err() == nil {
			t.Errorf("%s: %v", got, err)
		}
	})
}

func TestWait(t *testing.T) {
	for name, test := range map[string]struct {
		states  []func(*corev1beta1.Shoot)
		reports string
		says    string
	}{
		"ready": {[]func(*corev1beta1.Shoot){at("Processing", 10), at("Processing", 10), at("Error", 10), at("Succeeded", 100)},
			"Create Processing (10%), Create Error (10%), Create Succeeded", ""},
		"failed": {[]func(*corev1beta1.Shoot){at("Failed", 10)}, "Create Failed (10%)", "operation=retry"},
		"not ready": {[]func(*corev1beta1.Shoot){at("Processing", 10)}, "Create Processing (10%)",
			"is not ready yet, it goes on: Create Processing (10%): d"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := garden(t, func(reads int, shoot *corev1beta1.Shoot) { test.states[min(reads, len(test.states))-1](shoot) })
				ctx, cancel := context.WithTimeout(t.Context(), 100*c.PollInterval)
				defer cancel()
				if _, _, err := c.Create(ctx, Spec{Key: key}); err != nil {
					t.Fatal(err)
				}
				var reports []string
				shoot, err := c.Wait(ctx, key, func(p Progress) { reports = append(reports, p.String()) })
				if got := strings.Join(reports, ", "); got != test.reports || (err == nil) != (test.says == "") || err != nil &&
					!strings.Contains(err.Error(), test.says) || err == nil && shoot == nil {
					t.Errorf("%s; %v", got, err)
				}
			})
		})
	}
	if _, err := garden(t, nil).Wait(t.Context(), key, nil); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestDelete(t *testing.T) { synctest.Test(t, testDelete) }

func testDelete(t *testing.T) {
	c := garden(t, nil)
	ctx := t.Context()
	if err := c.Delete(ctx, key); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	shoot, _, err := c.Create(ctx, Spec{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	shoot.Finalizers = []string{"gardener"}
	if err := c.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is being deleted already
		if err := c.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if shoot, err = c.Shoot(ctx, key); err != nil || shoot.DeletionTimestamp == nil ||
		shoot.Annotations[constants.ConfirmationDeletion] != "true" {
		t.Errorf("%+v, %v", shoot, err)
	}
	if _, _, err := c.Create(ctx, Spec{Key: key}); err == nil || !strings.Contains(err.Error(), "being deleted") {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, 20*c.PollInterval)
	defer cancel()
	if err := c.WaitGone(short, key, nil); err == nil || !strings.Contains(err.Error(), "is not gone yet") {
		t.Error(err)
	}
	shoot.Finalizers = nil
	if err := c.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitGone(ctx, key, nil); err != nil {
		t.Error(err)
	}
}

// kubeconfigOf returns a kubeconfig with a context of this name, of servers with a name and with an address.
func kubeconfigOf(context string) []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters["name"] = &clientcmdapi.Cluster{Server: "https://api.a.example.com"}
	config.Clusters["ip"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.CurrentContext = context
	data, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	return data
}

func TestListAndKubeconfig(t *testing.T) {
	c := garden(t, nil)
	ctx := t.Context()
	for _, name := range []string{"b", "a"} {
		if _, _, err := c.Create(ctx, Spec{Key: Key{"dev", name}}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.List(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[0].Project != "dev" || all[0].Nodes() != "2-3" || all[0].State != "Pending" {
		t.Errorf("%+v, %v", all, err)
	}
	c.Proxy = "http://127.0.0.1:7"
	for viewer, want := range map[bool]string{false: "adminkubeconfig 10m0s", true: "viewerkubeconfig"} {
		config, _, err := c.Kubeconfig(ctx, Key{"dev", "a"}, viewer, 10*time.Minute)
		if err != nil || config.CurrentContext != want {
			t.Fatalf("%+v, %v", config, err)
		}
		if byName, byIP := config.Clusters["name"].ProxyURL, config.Clusters["ip"].ProxyURL; byName != c.Proxy || byIP != "" {
			t.Errorf("through the proxies %q and %q", byName, byIP)
		}
	}
	if _, _, err := c.Kubeconfig(ctx, key, false, time.Hour); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
