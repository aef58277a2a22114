package gardenapi

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Changes of a world by the administrator, with their effect on the paths.

// bind moves a shoot with the subresource binding.
func (w *accessWorld) bind(ctx context.Context, namespace, name, seed string) error {
	shoots := w.at("shoots", namespace)
	shoot, err := shoots.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(shoot.Object, seed, "spec", "seedName"); err != nil {
		return err
	}
	_, err = shoots.Update(ctx, shoot, metav1.UpdateOptions{}, "binding")
	return err
}

// move binds the shoot of a to b, while its status still has a, and moves the shoot of b to a completely. undo moves
// them back.
func (w *accessWorld) move(t *testing.T) (undo func()) {
	t.Helper()
	project := "garden-" + w.name
	shootA, shootB := "shoots "+project+"/"+w.a.name, "shoots "+project+"/"+w.b.name
	set := func(name, spec, status string) {
		eventually(t, waitTimeout, func(ctx context.Context) error {
			if err := w.bind(ctx, project, name, spec); err != nil {
				return fmt.Errorf("binding %s to %s: %w", name, spec, err)
			}
			return nil
		})
		w.patchStatus(t, "shoots", project, name, fmt.Sprintf(`{"status":{"seedName":%q}}`, status))
	}
	w.patchStatus(t, "shoots", project, w.a.name, fmt.Sprintf(`{"status":{"seedName":%q}}`, w.a.name))
	set(w.a.name, w.b.name, w.a.name)
	w.point(shootA, "seeds "+w.a.name, "seeds "+w.b.name)
	set(w.b.name, w.a.name, w.a.name)
	w.point(shootB, "seeds "+w.a.name)
	return func() {
		t.Helper()
		set(w.a.name, w.a.name, w.a.name)
		w.point(shootA, "seeds "+w.a.name)
		set(w.b.name, w.b.name, w.b.name)
		w.point(shootB, "seeds "+w.b.name)
	}
}

// removeSome deletes objects through which others have paths. again creates them again.
func (w *accessWorld) removeSome(t *testing.T) (again func()) {
	t.Helper()
	project := "garden-" + w.name
	var restore []func()
	for _, seed := range []accessSeed{w.a, w.b} {
		for _, o := range []accessObject{
			{"bastions", project, seed.name, ""},
			{"managedseeds", "garden", seed.name + "-s", ""},
			{"managedseeds", "garden", seed.name + "-t", ""},
			{"gardenlets", "garden", seed.name, ""},
			{"controllerinstallations", "", seed.name, ""},
			{"backupentries", project, seed.name, ""},
			{"serviceaccounts", "garden", "gardenlet-bootstrap-" + seed.name + "-s", ""},
			{"shoots", project, seed.name + "-2", ""},
		} {
			restore = append(restore, w.remove(t, o))
		}
	}
	slices.Reverse(restore)
	return func() {
		t.Helper()
		for _, f := range restore {
			f()
		}
	}
}

// remove deletes an object and its finalizers, which no controller handles here. again creates it again.
func (w *accessWorld) remove(t *testing.T, o accessObject) (again func()) {
	t.Helper()
	client := w.at(o.resource, o.namespace)
	obj, err := client.Get(t.Context(), o.name, metav1.GetOptions{})
	must(t, err)
	patch := []byte(`{"metadata":{"finalizers":null,"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)
	_, err = client.Patch(t.Context(), o.name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	must(t, err)
	must(t, client.Delete(t.Context(), o.name, metav1.DeleteOptions{}))
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if _, err := client.Get(ctx, o.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s is still there: %w", o.resource, o.name, err)
		}
		return nil
	})
	vertex := vertexName(o.resource, o.namespace, o.name)
	edges, caused := w.accessPaths.remove(vertex)
	at := slices.IndexFunc(w.objects, func(other accessObject) bool {
		return vertexName(other.resource, other.namespace, other.name) == vertex
	})
	of := w.objects[at].of
	w.objects = slices.Delete(w.objects, at, at+1)
	return func() {
		t.Helper()
		new := &unstructured.Unstructured{Object: withoutStatus(fresh(obj.Object))}
		if o.resource == "bastions" {
			new.SetOwnerReferences(nil) // its shoot has another UID by now
		}
		w.create(t, new, of)
		if caused {
			w.add(vertex, edges.from, edges.to)
		}
	}
}

func withoutStatus(object map[string]any) map[string]any {
	delete(object, "status")
	return object
}
