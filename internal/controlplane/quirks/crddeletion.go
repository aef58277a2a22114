package quirks

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

const (
	// RetryAfter is how long kube-apiserver may take to retry by itself.
	RetryAfter              = time.Second
	deletionRetryAnnotation = "gardenlite.dev/deletion-retry"
)

// deletionFailures are the reasons that kube-apiserver's finalizer sets if it could not delete the instances of a CRD.
var deletionFailures = []string{"InstanceDeletionFailed", "InstanceDeletionCheck"}

// RetryDeletions retries the deletion of a CRD whose instances could not be deleted the first time, for example because
// their watch cache was not ready yet. kube-apiserver retries after 5 ms. If its cache then still has the CRD from
// before the failure, it meets a conflict, expects an event for the change, and ignores that event because only the
// condition Terminating differs: nothing happens for five minutes. A change of the metadata makes it retry.
//
// Upstream: updateCustomResourceDefinition in
// github.com/kubernetes/kubernetes/blob/v1.36.4/staging/src/k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go
func RetryDeletions(crds informers.CustomResourceDefinitionInformer, client clientset.Interface, after time.Duration) error {
	retry := func(failed *apiextensionsv1.CustomResourceDefinition) error {
		patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:%[1]q}}}`, failed.ResourceVersion, deletionRetryAnnotation)
		_, err := client.ApiextensionsV1().CustomResourceDefinitions().Patch(context.Background(), failed.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
		return err
	}
	_, err := crds.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		crd := object.(*apiextensionsv1.CustomResourceDefinition)
		condition := apiextensionshelpers.FindCRDCondition(crd, apiextensionsv1.Terminating)
		if !crd.DeletionTimestamp.IsZero() && condition != nil && slices.Contains(deletionFailures, condition.Reason) {
			unlessChanged(crds, crd, after, retry)
		}
	}})
	return err
}

// unlessChanged calls a function after a time, unless the CRD has changed by then: kube-apiserver has gone on by itself.
func unlessChanged(crds informers.CustomResourceDefinitionInformer, crd *apiextensionsv1.CustomResourceDefinition, after time.Duration,
	do func(*apiextensionsv1.CustomResourceDefinition) error) {
	time.AfterFunc(after, func() {
		if now, err := crds.Lister().Get(crd.Name); err != nil || now.ResourceVersion != crd.ResourceVersion {
			return
		}
		if err := do(crd); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			utilruntime.HandleError(fmt.Errorf("making the API server handle the CRD %s: %w", crd.Name, err))
		}
	})
}
