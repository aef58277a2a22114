package controllerinstallation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

type world struct {
	*testing.T
	garden, seed client.Client
	*Reconciler
}

func newWorld(t *testing.T, deployment *gardencorev1.ControllerDeployment) world {
	t.Helper()
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme,
		resourcesv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "x-1"},
		Spec: corev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "x"}, SeedRef: &corev1.ObjectReference{Name: "local"},
			DeploymentRef: &corev1.ObjectReference{Name: deployment.Name},
		}}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	seed.Spec.Provider.Zones, seed.Status.ClusterIdentity, seed.Status.KubernetesVersion = []string{"a", "b"}, ptr.To("id"), ptr.To("v1.36.4")
	identity := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"},
		Data: map[string]string{"cluster-identity": "garden-id"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-local", Name: "extension-x-1"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(installation, seed).WithObjects(
		installation, deployment, seed, account, identity,
		&corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "x"}}).Build()
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).Build()
	return world{t, garden, c, &Reconciler{
		Base: controllerutils.Base{GardenClient: garden, GardenReader: garden, SeedClient: c, SeedName: "local",
			Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))},
		Version: "1.2.3", FeatureGates: map[string]bool{"A": true}, GardenConfig: &rest.Config{Host: "https://garden"}}}
}

func (w world) run() reconcile.Result {
	w.Helper()
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "x-1"}})
	w.must(err)
	return result
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w world) installation() *corev1beta1.ControllerInstallation {
	w.Helper()
	installation := &corev1beta1.ControllerInstallation{}
	w.must(w.garden.Get(w.Context(), client.ObjectKey{Name: "x-1"}, installation))
	return installation
}

func (w world) exists(c client.Client, obj client.Object) bool {
	w.Helper()
	err := c.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}
	return err == nil
}

func provider() *gardencorev1.ControllerDeployment {
	return &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "provider-local"}}
}

func TestInstallsAndDeletes(t *testing.T) {
	w := newWorld(t, provider())
	w.run()
	installation := w.installation()
	if !slices.Equal(installation.Finalizers, []string{"core.gardener.cloud/controllerinstallation"}) {
		t.Errorf("finalizers %v", installation.Finalizers)
	}
	for kind, want := range map[corev1beta1.ConditionType]string{"Valid": "True RegistrationValid", "Installed": "False InstallationPending"} {
		if got := conditions.Find(installation.Status.Conditions, kind); string(got.Status)+" "+got.Reason != want {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension-x-1"}}
	if !w.exists(w.seed, namespace) || namespace.Labels["gardener.cloud/role"] != "extension" ||
		namespace.Labels["controllerregistration.core.gardener.cloud/name"] != "x" ||
		namespace.Annotations["high-availability-config.resources.gardener.cloud/zones"] != "a,b" {
		t.Errorf("namespace %+v", namespace)
	}
	secret := accessSecret(installation)
	if !w.exists(w.seed, secret) || secret.Labels["resources.gardener.cloud/class"] != "garden" ||
		secret.Annotations["serviceaccount.resources.gardener.cloud/name"] != "extension-x-1" {
		t.Errorf("access %+v", secret)
	}
	resource := managedResource(installation)
	if !w.exists(w.seed, resource) || *resource.Spec.Class != "seed" || resource.Labels["controllerinstallation-name"] != "x-1" {
		t.Errorf("managed resource %+v", resource)
	}
	w.must(w.garden.Delete(t.Context(), installation))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-local", Name: "extension-x-1"}}
	for i, steps := 0, 5; w.exists(w.garden, w.installationKey()); i++ {
		if wait := w.run().RequeueAfter; wait != 0 && (wait != requeueDeletion || !w.exists(w.garden, account)) {
			t.Errorf("step %d: looks again after %s; the ServiceAccount must go last", i, wait)
		}
		if i == steps {
			t.Fatal("it does not go")
		}
	}
	if w.exists(w.seed, namespace) || w.exists(w.seed, resource) || w.exists(w.garden, account) {
		t.Error("something is left behind")
	}
}

// TestCareIsFaster checks that a condition which the care controller writes during the installation is not overwritten:
// the care controller would check again only after half a minute.
func TestCareIsFaster(t *testing.T) {
	w := newWorld(t, provider())
	cared := condition(corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionTrue, "InstallationSuccessful", "It is.")
	w.SeedClient = interceptor.NewClient(w.seed.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, obj, opts...)
			if _, ok := obj.(*resourcesv1alpha1.ManagedResource); ok && err == nil {
				err = PatchConditions(ctx, w.garden, w.Clock, w.installation(), cared)
			}
			return err
		},
	})
	w.run()
	if got := conditions.Find(w.installation().Status.Conditions, corev1beta1.ControllerInstallationInstalled); got.Reason != cared.Reason {
		t.Errorf("%+v", got)
	}
}

func (w world) installationKey() client.Object {
	return &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "x-1"}}
}

func TestKubeconfigOfAnotherAddress(t *testing.T) {
	w := newWorld(t, provider())
	names := func() (all []string) {
		list := &corev1.SecretList{}
		w.must(w.seed.List(t.Context(), list, client.MatchingLabels{labelCollectable: "true"}))
		for _, secret := range list.Items {
			all = append(all, secret.Name)
			if !strings.Contains(string(secret.Data["kubeconfig"]), w.GardenConfig.Host) {
				t.Errorf("%s is not for %s", secret.Name, w.GardenConfig.Host)
			}
		}
		return all
	}
	w.run()
	before := names()
	w.GardenConfig = &rest.Config{Host: "https://elsewhere"}
	w.run()
	if after := names(); len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("%v, then %v", before, after)
	}
}

// TestChanged: after a failure, the next reconciliation may read the condition of before the failure, and not replace it.
func TestChanged(t *testing.T) {
	with := func(status corev1beta1.ConditionStatus) *corev1beta1.ControllerInstallation {
		return &corev1beta1.ControllerInstallation{Status: corev1beta1.ControllerInstallationStatus{
			Conditions: []corev1beta1.Condition{condition(corev1beta1.ControllerInstallationValid, status, "", "")}}}
	}
	valid, invalid := with(corev1beta1.ConditionTrue), with(corev1beta1.ConditionFalse)
	if !changed().Update(event.UpdateEvent{ObjectOld: valid, ObjectNew: invalid}) {
		t.Error("one that becomes invalid is not reconciled")
	}
	if changed().Update(event.UpdateEvent{ObjectOld: invalid, ObjectNew: valid}) {
		t.Error("one that becomes valid is reconciled")
	}
}

func TestOfAnotherSeed(t *testing.T) {
	w := newWorld(t, provider())
	w.SeedName = "other"
	w.run()
	if len(w.installation().Finalizers) > 0 {
		t.Error("it looks after an installation for another seed")
	}
}
