package seed

import (
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletion(t *testing.T) {
	other := ptr.To("b")
	mine := ptr.To("a")
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "x"}
	}
	of := func(name string, seeds ...string) *corev1beta1.Shoot { // with the labels that the API server maintains
		shoot := &corev1beta1.Shoot{ObjectMeta: meta("p", name)}
		for _, seed := range seeds {
			metav1.SetMetaDataLabel(&shoot.ObjectMeta, "name.seed.gardener.cloud/"+seed, "true")
		}
		return shoot
	}
	shoot, leaving := of("on", "a"), of("leaving", "b", "a")
	bucket := &corev1beta1.BackupBucket{ObjectMeta: meta("", "extra"), Spec: corev1beta1.BackupBucketSpec{SeedName: mine}}
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: meta("", "local"),
		Spec: corev1beta1.ControllerInstallationSpec{SeedRef: &corev1.ObjectReference{Name: "a"}}}
	w := newWorld(t, someSeed(), shoot, leaving, bucket, installation,
		of("elsewhere", "b"),
		&corev1beta1.BackupBucket{ObjectMeta: meta("", "elsewhere"), Spec: corev1beta1.BackupBucketSpec{SeedName: other}},
		&corev1beta1.ControllerInstallation{ObjectMeta: meta("", "elsewhere"),
			Spec: corev1beta1.ControllerInstallationSpec{SeedRef: &corev1.ObjectReference{Name: "b"}}},
	)
	deployed := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: meta("garden", "m"), Spec: resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To("seed")}}
	w.must(w.seed.Create(t.Context(), deployed))
	w.after(time.Hour)
	w.must(w.garden.Delete(t.Context(), w.read()))
	for _, test := range []struct {
		says string
		gone func() error
	}{
		{"Shoots=[p/leaving p/on]", func() error { return w.garden.Delete(t.Context(), shoot) }},
		{"Shoots=[p/leaving]", func() error { return w.garden.Delete(t.Context(), leaving) }},
		{"BackupBuckets=[extra]", func() error { return w.garden.Delete(t.Context(), bucket) }},
		{"ControllerInstallations=[local]", func() error { return w.garden.Delete(t.Context(), installation) }},
		{"ManagedResources=[garden/m]", func() error { return w.seed.Delete(t.Context(), deployed) }},
	} {
		w.after(requeueDeletion)
		w.expectLast(deletes, processing, 0, "Can't delete Seed, because the following objects are still referencing it: "+test.says)
		if e := <-w.events.Events; !strings.HasPrefix(e, "Normal ResourceReferenced Can't delete Seed") || !strings.HasSuffix(e, test.says) {
			t.Errorf("the event is %q", e)
		}
		w.must(w.seed.Get(t.Context(), client.ObjectKeyFromObject(identityConfigMap()), identityConfigMap()))
		w.must(test.gone())
	}
	w.after(0)
	if err := w.garden.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1beta1.Seed{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Seed: %v", err)
	}
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(identityConfigMap()), identityConfigMap()); !apierrors.IsNotFound(err) {
		t.Errorf("the identity: %v", err)
	}
	w.after(0)
}

// The deletion of a Seed deletes its own BackupBucket and waits until it is gone.
func TestDeletionOfTheBackupBucket(t *testing.T) {
	w := newWorld(t, someSeed())
	w.after(time.Hour)
	bucket := &corev1beta1.BackupBucket{}
	w.must(w.garden.Get(t.Context(), client.ObjectKey{Name: "uid"}, bucket))
	bucket.Finalizers = []string{"gardener"}
	w.must(w.garden.Update(t.Context(), bucket))
	w.must(w.garden.Delete(t.Context(), w.read()))
	w.after(requeueDeletion)
	w.expectLast(deletes, processing, 0, "BackupBuckets=[uid]")
	w.must(w.garden.Get(t.Context(), client.ObjectKey{Name: "uid"}, bucket))
	if bucket.DeletionTimestamp == nil {
		t.Fatal("it was not deleted")
	}
	bucket.Finalizers = nil
	w.must(w.garden.Update(t.Context(), bucket))
	w.after(0)
	if err := w.garden.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1beta1.Seed{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Seed: %v", err)
	}
}
