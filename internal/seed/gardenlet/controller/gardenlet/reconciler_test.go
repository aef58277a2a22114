package gardenlet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
)

const config = `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration",` +
	`"logLevel":"debug","seedConfig":{}}`

// deployer is a fake of the cluster that the gardenlet runs in.
type deployer struct {
	deployment.Deployer
	deployed []deployment.Gardenlet
	expires  time.Time
	err      error
}

func (d *deployer) Deploy(_ context.Context, g deployment.Gardenlet) error {
	d.deployed = append(d.deployed, g)
	return d.err
}

func (d *deployer) Status(context.Context, deployment.Target) (deployment.Status, error) {
	return deployment.Status{Deployed: true, SeedName: "a", IdentityExpires: &d.expires}, nil
}

func TestReconcile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	renew := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Annotations = map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}
	}
	const done = "Gardenlet with chart from example.com/chart:1 has been deployed"
	for what, c := range map[string]struct {
		change          func(*seedmanagementv1alpha1.Gardenlet)
		fails           error
		status          corev1beta1.ConditionStatus // empty if the Gardenlet must not be touched
		reason, message string
		renewed         bool
	}{
		"deployed":      {func(*seedmanagementv1alpha1.Gardenlet) {}, nil, "True", "Reconciled", done, false},
		"renewed":       {renew, nil, "True", "Reconciled", done, true},
		"cannot deploy": {renew, errors.New("no room"), "False", "ReconcileError", "no room", true},
		"no config": {func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config.Raw = nil }, nil, "False",
			"ReconcileError", "seedConfig", false},
		"another seed's":    {func(g *seedmanagementv1alpha1.Gardenlet) { g.Name = "b" }, nil, "", "", "", false},
		"another namespace": {func(g *seedmanagementv1alpha1.Gardenlet) { g.Namespace = "other" }, nil, "", "", "", false},
	} {
		t.Run(what, func(t *testing.T) {
			gardenlet := newGardenlet()
			c.change(gardenlet)
			garden := newGarden(t, gardenlet, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
			d := &deployer{expires: clock.Now().Add(time.Hour), err: c.fails}
			r := &Reconciler{
				Base: controllerutils.Base{GardenClient: garden, GardenReader: garden, Clock: clock, SeedName: "a",
					Recorder: events.NewFakeRecorder(10)},
				GardenConfig: &rest.Config{Host: "https://garden"}, Deployer: d,
			}
			key := client.ObjectKeyFromObject(gardenlet)
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if (err != nil) != (c.status == "False") || (result.RequeueAfter == time.Hour) != (c.status == "True") {
				t.Errorf("%v, %v", result, err)
			}
			if err := garden.Get(t.Context(), key, gardenlet); err != nil {
				t.Fatal(err)
			}
			if c.status == "" {
				if len(d.deployed) > 0 || len(gardenlet.Status.Conditions) > 0 {
					t.Error("it was touched")
				}
				return
			}
			got := conditions.Find(gardenlet.Status.Conditions, "GardenletReconciled")
			if got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.message) ||
				gardenlet.Status.ObservedGeneration != 2 {
				t.Errorf("%+v, observed generation %d", got, gardenlet.Status.ObservedGeneration)
			}
			secret := &corev1.Secret{}
			err = garden.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-4c40cb"}, secret)
			if (err == nil) != c.renewed || c.renewed &&
				!strings.Contains(string(secret.Data["description"]), "v1alpha1.Gardenlet resource garden/a.") {
				t.Errorf("bootstrap token: %s, %v", secret.Data["description"], err)
			}
			if len(d.deployed) > 0 && (d.deployed[0].Renew != c.renewed || d.deployed[0].Shoot != nil || d.deployed[0].Config.LogLevel != "debug") {
				t.Errorf("deployed %+v", d.deployed[0])
			}
			if asked := len(gardenlet.Annotations) > 0; asked != (c.fails != nil) {
				t.Errorf("annotations %v", gardenlet.Annotations)
			}
		})
	}
}

func newGardenlet() *seedmanagementv1alpha1.Gardenlet {
	gardenlet := &seedmanagementv1alpha1.Gardenlet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "a", Generation: 2},
		Spec:       seedmanagementv1alpha1.GardenletSpec{Config: runtime.RawExtension{Raw: []byte(config)}},
	}
	gardenlet.Spec.Deployment.Helm.OCIRepository.Ref = ptr.To("oci://example.com/chart:1")
	return gardenlet
}

func newGarden(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(
		&seedmanagementv1alpha1.Gardenlet{}).WithObjects(objects...).Build()
}
