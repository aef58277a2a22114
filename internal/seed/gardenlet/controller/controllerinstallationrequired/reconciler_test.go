package controllerinstallationrequired

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

func extension(kind string, class *extensionsv1alpha1.ExtensionClass) client.Object {
	obj := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "n"}}
	obj.Spec.Type, obj.Spec.Class = kind, class
	return obj
}

func TestRequired(t *testing.T) {
	for name, test := range map[string]struct {
		kinds []string
		seed  []client.Object
		want  string
	}{
		"nothing there": {[]string{"Extension"}, nil, "False NoExtensionObjects"},
		"there":         {[]string{"Worker", "Extension"}, []client.Object{extension("x", nil)}, "True ExtensionObjectsExist"},
		"of a seed": {[]string{"Extension"}, []client.Object{extension("x", ptr.To(extensionsv1alpha1.ExtensionClassSeed))},
			"True ExtensionObjectsExist"},
		"of the garden": {[]string{"Extension"}, []client.Object{extension("x", ptr.To(extensionsv1alpha1.ExtensionClassGarden))},
			"False NoExtensionObjects"},
		"another type":     {[]string{"Extension"}, []client.Object{extension("y", nil)}, "False NoExtensionObjects"},
		"another kind":     {[]string{"Worker"}, []client.Object{extension("x", nil)}, "False NoExtensionObjects"},
		"unknown kind":     {[]string{"Nothing"}, nil, "Unknown "},
		"unknown, besides": {[]string{"Nothing", "Extension"}, []client.Object{extension("x", nil)}, "True ExtensionObjectsExist"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			add := runtime.NewSchemeBuilder(corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme)
			if err := add.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "x-1"},
				Spec: corev1beta1.ControllerInstallationSpec{
					SeedRef: &corev1.ObjectReference{Name: "local"}, RegistrationRef: corev1.ObjectReference{Name: "x"}}}
			registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			for _, kind := range test.kinds {
				registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: "x"})
			}
			garden := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(installation).WithObjects(installation, registration).Build()
			seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.seed...).Build()
			r := &Reconciler{Base: controllerutils.Base{GardenClient: garden, SeedClient: seed, SeedName: "local",
				Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(installation)}); err != nil {
				t.Fatal(err)
			}
			if err := garden.Get(t.Context(), client.ObjectKeyFromObject(installation), installation); err != nil {
				t.Fatal(err)
			}
			got := conditions.Find(installation.Status.Conditions, corev1beta1.ControllerInstallationRequired)
			if string(got.Status)+" "+got.Reason != test.want {
				t.Errorf("%+v, not %s", got, test.want)
			}
			if asked := len(r.responsibleFor("Extension")(t.Context(), extension("x", nil))); asked != boolInt(
				len(test.kinds) > 0 && test.kinds[len(test.kinds)-1] == "Extension") {
				t.Errorf("%d installations are looked at", asked)
			}
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
