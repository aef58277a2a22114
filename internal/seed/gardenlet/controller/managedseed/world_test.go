package managedseed

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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

// deployer is a fake of the cluster of a Shoot.
type deployer struct {
	status   deployment.Status
	deployed []deployment.Gardenlet
	deleted  int
}

func (d *deployer) Deploy(_ context.Context, g deployment.Gardenlet) error {
	d.deployed = append(d.deployed, g)
	d.status.Deployed, d.status.SeedName = true, g.SeedName
	if g.Renew {
		d.status.IdentityExpires = nil
	}
	return nil
}

func (d *deployer) Delete(context.Context, deployment.Target) error {
	d.deleted++
	d.status = deployment.Status{}
	return nil
}

func (d *deployer) Status(context.Context, deployment.Target) (deployment.Status, error) {
	return d.status, nil
}

type world struct {
	*testing.T
	garden   client.WithWatch
	clock    *clocktesting.FakeClock
	events   *events.FakeRecorder
	deployer *deployer
	r        *Reconciler
}

const config = `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration",
"seedConfig":{"spec":{"backup":{"credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"backup"}}}}}`

func newWorld(t *testing.T, method seedmanagementv1alpha1.Bootstrap, change ...func(*corev1beta1.Shoot)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s", Generation: 1},
		Spec:       corev1beta1.ShootSpec{SeedName: ptr.To("parent")},
		Status: corev1beta1.ShootStatus{ObservedGeneration: 1, LastOperation: &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded,
		}},
	}
	for _, c := range change {
		c(shoot)
	}
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "a", UID: "1", Generation: 3},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: "s"},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Bootstrap: &method, Config: runtime.RawExtension{Raw: []byte(config)}},
		},
	}
	backup := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}}
	w := &world{T: t, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)),
		events: events.NewFakeRecorder(100), deployer: &deployer{}}
	w.garden = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(shoot, managedSeed).
		WithObjects(shoot, managedSeed, backup).Build()
	scoped := w.scoped()
	w.r = &Reconciler{
		Base:         controllerutils.Base{GardenClient: scoped, GardenReader: scoped, Clock: w.clock, SeedName: "parent", Recorder: w.events},
		GardenConfig: &rest.Config{Host: "https://garden"}, Deployer: w.deployer,
		SyncPeriod: time.Hour, WaitSyncPeriod: 15 * time.Second,
	}
	return w
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	result, err := w.tryReconcile()
	if err != nil {
		w.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) tryReconcile() (reconcile.Result, error) {
	return w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "garden", Name: "a"}})
}

func (w *world) managedSeed() *seedmanagementv1alpha1.ManagedSeed {
	w.Helper()
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := w.garden.Get(w.Context(), client.ObjectKey{Namespace: "garden", Name: "a"}, managedSeed); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return managedSeed
}

func (w *world) wantCondition(kind corev1beta1.ConditionType, status corev1beta1.ConditionStatus, reason, message string) {
	w.Helper()
	managedSeed := w.managedSeed()
	got := conditions.Find(managedSeed.Status.Conditions, kind)
	if got.Status != status || got.Reason != reason || !strings.Contains(got.Message, message) {
		w.Errorf("%s is %s, %s: %s", kind, got.Status, got.Reason, got.Message)
	}
	if managedSeed.Status.ObservedGeneration != 3 {
		w.Errorf("observed generation %d", managedSeed.Status.ObservedGeneration)
	}
}

// register simulates the deployed gardenlet: it uses up its bootstrap credentials, and registers its Seed.
func (w *world) register() {
	w.Helper()
	w.deployer.status.IdentityExpires = ptr.To(w.clock.Now().Add(time.Hour))
	for _, obj := range w.credentials() {
		if err := w.garden.Delete(w.Context(), obj); err != nil {
			w.Fatal(err)
		}
	}
	if err := w.garden.Create(w.Context(), &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
		w.Fatal(err)
	}
}

// credentials returns all bootstrap credentials in the garden.
func (w *world) credentials() (all []client.Object) {
	w.Helper()
	secrets, accounts, bindings := &corev1.SecretList{}, &corev1.ServiceAccountList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{secrets, accounts, bindings} {
		if err := w.garden.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}
	}
	for i := range secrets.Items {
		if secrets.Items[i].Type == corev1.SecretTypeBootstrapToken {
			all = append(all, &secrets.Items[i])
		}
	}
	for i := range accounts.Items {
		all = append(all, &accounts.Items[i])
	}
	for i := range bindings.Items {
		all = append(all, &bindings.Items[i])
	}
	return all
}

func (w *world) last() deployment.Gardenlet {
	w.Helper()
	if len(w.deployer.deployed) == 0 {
		w.Fatal("nothing is deployed")
	}
	return w.deployer.deployed[len(w.deployer.deployed)-1]
}

// tokenIn returns the token in a bootstrap kubeconfig, empty if there is none.
func (w *world) tokenIn(kubeconfig []byte) string {
	w.Helper()
	if kubeconfig == nil {
		return ""
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	return config.BearerToken
}
