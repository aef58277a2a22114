package quirks

import (
	"context"
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	"k8s.io/apiextensions-apiserver/pkg/controller/finalizer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// definition returns a CRD. A deleted one has a condition with the reason why it still exists.
func definition(name, version string, deleted bool, reason string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	if deleted {
		crd.DeletionTimestamp, crd.Finalizers = &metav1.Time{}, []string{apiextensionsv1.CustomResourceCleanupFinalizer}
		crd.DeletionTimestamp.Time = metav1.Unix(1_800_000_000, 0).Time
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: reason}}
	}
	return crd
}

// TestRetryDeletions checks that only a failed deletion of a CRD that has not changed since is retried.
func TestRetryDeletions(t *testing.T) {
	client := fake.NewSimpleClientset(definition("running", "1", true, ""), definition("kept", "1", false, ""),
		definition("failed", "1", true, ""))
	factory := informers.NewSharedInformerFactory(client, 0)
	crds := factory.Apiextensions().V1().CustomResourceDefinitions()
	if err := RetryDeletions(crds, client, 0); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for _, changed := range []*apiextensionsv1.CustomResourceDefinition{
		definition("running", "2", true, "InstanceDeletionInProgress"), definition("kept", "2", false, ""),
		definition("failed", "2", true, "InstanceDeletionFailed"),
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

// TestRetryDeletionsIsNeeded fails if kube-apiserver's finalizer handles a change of the condition Terminating after a
// conflict, or no longer handles a change of the metadata.
func TestRetryDeletionsIsNeeded(t *testing.T) {
	client := fake.NewSimpleClientset(definition("stuck", "1", true, ""), definition("other", "1", true, ""))
	attempts := make(chan string, 10)
	client.PrependReactor("update", "customresourcedefinitions", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.UpdateAction).GetObject().(*apiextensionsv1.CustomResourceDefinition).Name
		attempts <- name
		return true, nil, apierrors.NewConflict(apiextensionsv1.Resource("customresourcedefinitions"), name, nil)
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := finalizer.NewCRDFinalizer(factory.Apiextensions().V1().CustomResourceDefinitions(), client.ApiextensionsV1(), nil)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(1, t.Context().Done())
	}()
	t.Cleanup(func() { <-ended })
	<-attempts
	<-attempts
	update := func(crd *apiextensionsv1.CustomResourceDefinition) {
		if err := client.Tracker().Update(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"), crd, ""); err != nil {
			t.Fatal(err)
		}
	}
	annotated := func(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
		crd.Annotations = map[string]string{deletionRetryAnnotation: crd.ResourceVersion}
		return crd
	}
	update(definition("stuck", "2", true, "InstanceDeletionFailed"))
	update(annotated(definition("other", "2", true, "")))
	if name := <-attempts; name != "other" {
		t.Errorf("the finalizer looks at %q after its condition has changed: RetryDeletions is not needed any more", name)
	}
	update(annotated(definition("stuck", "3", true, "InstanceDeletionFailed")))
	if name := <-attempts; name != "stuck" {
		t.Errorf("the finalizer looks at %q", name)
	}
}
