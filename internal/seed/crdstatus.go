package seed

import (
	"context"
	"fmt"
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// establishedBefore is how long before its creation a definition is marked as established. It exceeds the 2 s for which an
// API server delays every creation of an object of a newly established kind, for the sake of other API servers that may
// not know the kind yet.
const establishedBefore = 3 * time.Second

// establish marks a new definition as established for a while. The seed is not used until all its kinds are served, so its
// API server need not delay requests for them.
func establish(ctx context.Context, client crdclient.CustomResourceDefinitionInterface,
	crd *apiextensionsv1.CustomResourceDefinition) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		setEstablished(crd)
		_, err := client.UpdateStatus(ctx, crd, metav1.UpdateOptions{FieldManager: fieldManager})
		if err == nil {
			return nil
		}
		// The API server's own controllers may have been faster.
		if current, errGet := client.Get(ctx, crd.Name, metav1.GetOptions{}); errGet == nil {
			crd = current
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("establishing it: %w", err)
	}
	return nil
}

// setEstablished sets the conditions as the controllers of the API server would, so that these do not change them. It does
// nothing if the names were refused because they belong to another definition.
func setEstablished(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, refused := range []apiextensionsv1.CustomResourceDefinitionConditionType{
		apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		if apiextensionshelpers.IsCRDConditionFalse(crd, refused) && apiextensionshelpers.FindCRDCondition(crd, refused).Reason != "Installing" {
			return
		}
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	at := metav1.NewTime(crd.CreationTimestamp.Add(-establishedBefore))
	for _, condition := range []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensionsv1.Established, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	} {
		condition.Status = apiextensionsv1.ConditionTrue
		apiextensionshelpers.SetCRDCondition(crd, condition)
		apiextensionshelpers.FindCRDCondition(crd, condition.Type).LastTransitionTime = at
	}
}
