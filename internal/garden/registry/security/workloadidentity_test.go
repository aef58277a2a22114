package security

import (
	"testing"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSubject(t *testing.T) {
	def := workloadIdentities()
	w := &gardensecurity.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "garden-dev", UID: "u"}}
	def.PrepareForCreate(t.Context(), w)
	if w.Status.Sub != "gardener.cloud:workloadidentity:garden-dev:w:u" {
		t.Errorf("subject %s", w.Status.Sub)
	}
	w.Status.Sub = "own" // which validation refuses, so that nobody believes it was taken
	def.PrepareForCreate(t.Context(), w)
	if w.Status.Sub != "own" {
		t.Errorf("subject %s", w.Status.Sub)
	}
}
