package seed

import (
	"testing"
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSetEstablished checks that requests for a new kind are not delayed, and that a refused name stays refused.
func TestSetEstablished(t *testing.T) {
	crd := wantedCRDs(t)[0].DeepCopy()
	crd.CreationTimestamp = metav1.Now()
	setEstablished(crd)
	established := apiextensionshelpers.FindCRDCondition(crd, apiextensionsv1.Established)
	if !apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) ||
		time.Since(established.LastTransitionTime.Time) < 2*time.Second {
		t.Errorf("%+v", crd.Status)
	}
	apiextensionshelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "Conflict"})
	setEstablished(crd)
	if apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) {
		t.Errorf("names of another definition: %+v", crd.Status)
	}
}
