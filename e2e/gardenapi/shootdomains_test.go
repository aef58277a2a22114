package gardenapi

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestShootDomains creates Shoots with domains that others have had since a moment before.
func TestShootDomains(t *testing.T) {
	t.Parallel()
	prepareProject(t, "domains")
	var sample *unstructured.Unstructured
	for _, obj := range validObjects(t, "domains") {
		if obj.GetKind() == "Shoot" {
			sample = obj // what refers to it is behind it
			break
		}
		_, err := client(obj, infoOf(t, obj.GetKind())).Create(t.Context(), obj, created)
		must(t, err)
	}
	shoots := client(sample, infoOf(t, "Shoot"))
	create := func(name, domain string, options metav1.CreateOptions) error {
		shoot := sample.DeepCopy()
		shoot.SetName(name)
		must(t, unstructured.SetNestedField(shoot.Object, domain, "spec", "dns", "domain"))
		_, err := shoots.Create(t.Context(), shoot, options)
		return err
	}
	for i := range 20 {
		name := fmt.Sprintf("d%d", i)
		domain := name + ".domains.test"
		must(t, create(name+"-dry", domain, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
		must(t, create(name, domain, created))
		for other, says := range map[string]string{domain: "Duplicate value", "x." + domain: "must not contain",
			"y.x." + domain: "must not contain",
			"domains.test":  "must not contain"} {
			if err := create(name+"-x", other, created); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
				t.Fatalf("the domain %s beside %s: %v", other, domain, err)
			}
		}
	}
	shoot, err := shoots.Get(t.Context(), "d0", metav1.GetOptions{})
	must(t, err)
	shoot.SetAnnotations(map[string]string{"confirmation.gardener.cloud/deletion": "true"})
	shoot.SetFinalizers(nil)
	_, err = shoots.Update(t.Context(), shoot, metav1.UpdateOptions{})
	must(t, err)
	must(t, shoots.Delete(t.Context(), "d0", metav1.DeleteOptions{}))
	if err := create("again", "d0.domains.test", created); err != nil {
		t.Errorf("the domain of a Shoot that is deleted: %v", err)
	}
}
