package controllerinstallationcare

import (
	"testing"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

func resource(applied, healthy, progressing corev1beta1.ConditionStatus, observed int64) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "x-1", Generation: 2}}
	mr.Status.ObservedGeneration = observed
	mr.Status.Conditions = []corev1beta1.Condition{{Type: "ResourcesApplied", Status: applied, Reason: "r"},
		{Type: "ResourcesHealthy", Status: healthy, Reason: "r"}, {Type: "ResourcesProgressing", Status: progressing, Reason: "r"}}
	return mr
}

func TestConditions(t *testing.T) {
	good := resource("True", "True", "False", 2)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension-x-1"}}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "extension-x-1", Name: "garden-access-extension"}}
	filled := token.DeepCopy()
	filled.Data = map[string][]byte{"token": []byte("t")}
	for name, test := range map[string]struct {
		seed                            []client.Object
		installed, healthy, progressing string
	}{
		"nothing": {nil, "Unknown SeedReadError", "Unknown SeedReadError", "Unknown SeedReadError"},
		"all": {[]client.Object{good, namespace, filled}, "True InstallationSuccessful", "True ControllerHealthy",
			"False ControllerRolledOut"},
		"no token": {[]client.Object{good, namespace, token}, "False InstallationPending", "True ControllerHealthy",
			"False ControllerRolledOut"},
		"no Secret":    {[]client.Object{good, namespace}, "False InstallationPending", "True ControllerHealthy", "False ControllerRolledOut"},
		"no namespace": {[]client.Object{good, filled}, "False InstallationPending", "True ControllerHealthy", "False ControllerRolledOut"},
		"not reported": {[]client.Object{&resourcesv1alpha1.ManagedResource{ObjectMeta: good.ObjectMeta}},
			"False InstallationPending", "False ControllerNotHealthy", "True ControllerNotRolledOut"},
		"not observed": {[]client.Object{resource("True", "True", "False", 1), namespace, filled}, "False InstallationPending",
			"True ControllerHealthy", "False ControllerRolledOut"},
		"everything bad": {[]client.Object{resource("False", "False", "True", 2), namespace, filled},
			"False InstallationPending", "False ControllerNotHealthy", "True ControllerNotRolledOut"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme,
				resourcesv1alpha1.AddToScheme)
			if err := add.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "x-1"},
				Spec: corev1beta1.ControllerInstallationSpec{
					SeedRef: &corev1.ObjectReference{Name: "local"}, DeploymentRef: &corev1.ObjectReference{Name: "provider-local"}}}
			garden := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(installation).
				WithObjects(installation, &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "provider-local"}}).Build()
			seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.seed...).Build()
			r := &Reconciler{Base: controllerutils.Base{GardenClient: garden, GardenReader: garden, SeedClient: seed, SeedName: "local",
				Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(installation)})
			if err != nil || result.RequeueAfter != syncPeriod {
				t.Fatalf("%v, %v", result, err)
			}
			if err := garden.Get(t.Context(), client.ObjectKeyFromObject(installation), installation); err != nil {
				t.Fatal(err)
			}
			for kind, want := range map[corev1beta1.ConditionType]string{installed: test.installed, healthy: test.healthy,
				progressing: test.progressing} {
				if got := conditions.Find(installation.Status.Conditions, kind); string(got.Status)+" "+got.Reason != want {
					t.Errorf("%s: %+v, not %s", kind, got, want)
				}
			}
		})
	}
}
