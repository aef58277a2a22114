package bootstraptoken

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/csrapprover"
)

// TestDelete checks that the tokens of one seed are deleted, whatever their IDs.
func TestDelete(t *testing.T) {
	token := func(id, seed string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id},
			Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{"description": []byte(csrapprover.TokenDescription(seed))}}
	}
	client := fake.NewClientset(token("aaaaaa", "a"), token("bbbbbb", "a"), token("cccccc", "b"))
	if err := Delete(t.Context(), client, "a"); err != nil {
		t.Fatal(err)
	}
	left, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != "bootstrap-token-cccccc" {
		t.Errorf("%v, %v", left, err)
	}
}
