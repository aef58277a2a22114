package finalizers

import (
	"math"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestCloudProfileStatus(t *testing.T) {
	at := func(after time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(start.Add(after))) }
	profile := &corev1beta1.CloudProfile{ObjectMeta: objectMeta("", "x")}
	profile.Spec.Kubernetes.Versions = []corev1beta1.ExpirableVersion{
		{Version: "1.33.0", ExpirationDate: at(time.Hour)},
		{Version: "1.34.0", Classification: ptr.To(corev1beta1.ClassificationPreview)},
		{Version: "1.32.0", ExpirationDate: at(-time.Hour)},
		{Version: "1.31.0", ExpirationDate: &metav1.Time{Time: start.AddDate(7900, 0, 0)}}, // more than a time.Duration can hold
	}
	profile.Spec.MachineImages = []corev1beta1.MachineImage{
		{Name: "image", Versions: []corev1beta1.MachineImageVersion{{ExpirableVersion: corev1beta1.ExpirableVersion{
			Version: "1.0.0", Lifecycle: []corev1beta1.LifecycleStage{
				{Classification: corev1beta1.ClassificationSupported, StartTime: at(2 * time.Hour)}},
		}}}}}
	w := newWorld(t, "cloudprofile", profile)
	want := func(again time.Duration, kubernetes []corev1beta1.VersionClassification, image corev1beta1.VersionClassification) {
		t.Helper()
		result := w.reconcile(profile)
		if result.RequeueAfter.Truncate(time.Second) != again {
			t.Errorf("again after %s, want %s", result.RequeueAfter, again)
		}
		w.exists(profile)
		for i, version := range profile.Status.Kubernetes.Versions {
			if version.Version != profile.Spec.Kubernetes.Versions[i].Version || version.Classification != kubernetes[i] {
				t.Errorf("%s is %s, want %s", version.Version, version.Classification, kubernetes[i])
			}
		}
		if got := profile.Status.MachineImages[0]; got.Name != "image" || got.Versions[0].Classification != image {
			t.Errorf("image %+v, want %s", got, image)
		}
	}
	type all = []corev1beta1.VersionClassification
	want(time.Hour, all{"supported", "preview", "expired", "supported"}, "unavailable")
	w.clock.SetTime(start.Add(time.Hour + time.Second))
	want(time.Hour-time.Second, all{"expired", "preview", "expired", "supported"}, "unavailable")
	w.clock.SetTime(start.Add(2*time.Hour + time.Second))
	want(math.MaxInt64/time.Second*time.Second, all{"expired", "preview", "expired", "supported"}, "supported")
}

func TestNamespacedCloudProfileStatus(t *testing.T) {
	parent := &corev1beta1.CloudProfile{ObjectMeta: objectMeta("", "parent")}
	parent.Spec.Type, parent.Spec.CABundle = "local", ptr.To("a")
	parent.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small"}}
	child := &corev1beta1.NamespacedCloudProfile{ObjectMeta: objectMeta("p", "x")}
	child.Generation = 4
	child.Spec.Parent = corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "parent"}
	child.Spec.CABundle, child.Spec.MachineTypes = ptr.To("b"), []corev1beta1.MachineType{{Name: "large"}}
	w := newWorld(t, "namespacedcloudprofile", child)
	w.reconcile(child) // has no parent yet
	if err := w.Client.Create(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	if got := childrenOf(t.Context(), w.Client, parent); len(got) != 1 || got[0].Name != "x" {
		t.Errorf("children %v", got)
	}
	w.reconcile(child)
	w.exists(child)
	spec := child.Status.CloudProfileSpec
	if spec.Type != "local" || *spec.CABundle != "ab" || len(spec.MachineTypes) != 2 || child.Status.ObservedGeneration != 4 {
		t.Errorf("status %+v", child.Status)
	}
	before := child.ResourceVersion
	if w.reconcile(child); w.exists(child) && child.ResourceVersion != before {
		t.Error("it is written although nothing has changed")
	}
}
