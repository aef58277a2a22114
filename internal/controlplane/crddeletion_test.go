package controlplane

import (
	"context"
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestRetryDeletions: only the deletion that has failed, and that nothing happened to since, is tried again.
func TestRetryDeletions(t *testing.T) {
	crd := func(name, version string, deleted bool, reason string) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
		if deleted {
			crd.DeletionTimestamp, crd.Finalizers = &metav1.Time{}, []string{apiextensionsv1.CustomResourceCleanupFinalizer}
			crd.DeletionTimestamp.Time = metav1.Now().Time
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: reason}}
		}
		return crd
	}
	client := fake.NewSimpleClientset(crd("running", "1", true, ""), crd("kept", "1", false, ""), crd("failed", "1", true, ""))
	factory := informers.NewSharedInformerFactory(client, 0)
	crds := factory.Apiextensions().V1().CustomResourceDefinitions()
	if err := retryDeletions(crds, client, 0); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for _, changed := range []*apiextensionsv1.CustomResourceDefinition{
		crd("running", "2", true, "InstanceDeletionInProgress"), crd("kept", "2", false, ""), crd("failed", "2", true, "InstanceDeletionFailed"),
	} {
		if _, err := client.ApiextensionsV1().CustomResourceDefinitions().Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		failed, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, "failed", metav1.GetOptions{})
		if err == nil && failed.Annotations[deletionRetryAnnotation] != "2" {
			err = errors.New("the deletion is not tried again")
		}
		return err
	})
	for _, action := range client.Actions() {
		if patch, ok := action.(interface{ GetName() string }); ok && action.GetVerb() == "patch" && patch.GetName() != "failed" {
			t.Errorf("%s is changed", patch.GetName())
		}
	}
}
