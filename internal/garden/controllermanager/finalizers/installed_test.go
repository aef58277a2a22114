package finalizers

import (
	"slices"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func installation(registration, seed string) *corev1beta1.ControllerInstallation {
	i := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "i"}}
	i.Spec.RegistrationRef.Name = registration
	if seed != "" {
		i.Spec.SeedRef = &corev1.ObjectReference{Name: seed}
	}
	return i
}

func TestInstalled(t *testing.T) {
	for _, kind := range Kinds() {
		if kind.Finalizer != installedFinalizer {
			continue
		}
		object := func(change func(client.Object)) client.Object {
			obj := kind.object()
			obj.SetName("a")
			change(obj)
			return obj
		}
		inDeletion := func(obj client.Object) {
			obj.SetDeletionTimestamp(&metav1.Time{Time: kittest.Start})
			obj.SetFinalizers([]string{"other", installedFinalizer})
		}
		for name, test := range map[string]struct {
			object       client.Object
			installation *corev1beta1.ControllerInstallation
			keeps        bool
		}{
			"new":                           {object(func(client.Object) {}), nil, true},
			"in deletion, used":             {object(inDeletion), installation("a", "a"), true},
			"in deletion, another is used":  {object(inDeletion), installation("b", "b"), false},
			"in deletion, without any":      {object(inDeletion), nil, false},
			"in deletion, a shoot's is not": {object(inDeletion), installation("b", ""), false},
		} {
			objects := []client.Object{test.object}
			if test.installation != nil {
				objects = append(objects, test.installation)
			}
			g := kittest.New(t, objects...)
			g.MustReconcile(&Reconciler{Base: g.Base(), Kind: kind}, test.object)
			if slices.Contains(test.object.GetFinalizers(), installedFinalizer) != test.keeps {
				t.Errorf("%s, %s: %v", kind.Name, name, test.object.GetFinalizers())
			}
		}
		// The deletion of an installation triggers the reconciliation of the objects that it refers to.
		if got := kind.uses[0].refers(installation("a", "a")); len(got) != 1 || got[0].Name != "a" {
			t.Errorf("%s: %v", kind.Name, got)
		}
	}
}
