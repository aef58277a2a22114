package shoot

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

const forceAnnotation = "confirmation.gardener.cloud/force-deletion"

// TestForceDeletion checks that failing extensions block the deletion of a Shoot until its user confirms a forced
// deletion, and that each extension then still has some time.
func TestForceDeletion(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	failure := &corev1beta1.LastError{Description: "who are you?", Codes: []corev1beta1.ErrorCode{"ERR_INFRA_UNAUTHENTICATED"}}
	w.fails = map[string]*corev1beta1.LastError{"Worker": failure, "Infrastructure": failure}
	secret := get(w, w.seed, id, "cloudprovider", &corev1.Secret{})
	secret.Finalizers = []string{"extension"}
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "b"},
		Spec: operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "y"}}}
	for _, err := range []error{w.seed.Update(t.Context(), secret), w.garden.Delete(t.Context(), w.shoot())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if shoot := w.settle(); shoot == nil || shoot.Status.LastOperation.State != "Failed" ||
		!slices.Equal(shoot.Status.LastErrors[0].Codes, failure.Codes) {
		t.Fatalf("%+v", shoot)
	}
	if err := w.garden.Create(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	w.change(func(s *corev1beta1.Shoot) {
		s.Generation++
		s.Annotations = map[string]string{forceAnnotation: "true"}
	})
	w.clock.Step(time.Minute)
	w.must(requeueWaiting)
	cluster, told := get(w, w.seed, "", id, &extensionsv1alpha1.Cluster{}), &corev1beta1.Shoot{}
	if err := json.Unmarshal(cluster.Spec.Shoot.Raw, told); err != nil || told.Annotations[forceAnnotation] != "true" {
		t.Errorf("the Cluster says %s: %v", cluster.Spec.Shoot.Raw, err)
	}
	if b := get(w, w.garden, key.Namespace, "b", &operationsv1alpha1.Bastion{}); b.Annotations[forceAnnotation] != "true" {
		t.Errorf("%v", b.Annotations)
	}
	if err := w.garden.Delete(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	// The deletion waits for an extension that may still answer.
	for range 5 {
		w.must(requeueWaiting)
		w.simulate()
		w.clock.Step(time.Second)
	}
	if worker := get(w, w.seed, id, "y", &extensionsv1alpha1.Worker{}); worker.Annotations[forceAnnotation] != "true" ||
		len(worker.Finalizers) == 0 {
		t.Errorf("%v, %v", worker.Annotations, worker.Finalizers)
	}
	for range 10 {
		w.clock.Step(operation.ForceGrace / 2)
		if w.settleDeletion() {
			break
		}
	}
	if namespace, cluster := w.inSeed(); w.shoot() != nil || namespace.Name != "" || cluster.Name != "" || w.fresh() != nil {
		t.Errorf("left: %v, %q, %q, %v", w.shoot() != nil, namespace.Name, cluster.Name, w.fresh())
	}
	if secret := get(w, w.seed, id, "cloudprovider", &corev1.Secret{}); len(secret.Finalizers) > 0 {
		t.Error("a Secret keeps the namespace")
	}
}

// settleDeletion reconciles a few times, and reports whether the Shoot is gone.
func (w *world) settleDeletion() bool {
	w.Helper()
	for range 5 {
		if _, err := w.reconcile(); err != nil {
			w.Fatal(err)
		}
		if w.shoot() == nil {
			return true
		}
		w.simulate()
	}
	return false
}
