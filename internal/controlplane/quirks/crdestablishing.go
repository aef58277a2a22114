package quirks

import (
	"context"
	"fmt"
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// EstablishAfterStart establishes CRDs whose names were accepted, but which were not established when the API server ended.
// kube-apiserver establishes a CRD when it changes, and nothing changes it after a start until the informer's resync: it is not
// served for five minutes. A change of the status makes kube-apiserver establish it.
//
// Upstream: createCustomResourceDefinition and updateCustomResourceDefinition in
// github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go
func EstablishAfterStart(crds informers.CustomResourceDefinitionInformer, client clientset.Interface, after time.Duration) error {
	lister := crds.Lister()
	touch := func(added *apiextensionsv1.CustomResourceDefinition) {
		if crd, err := lister.Get(added.Name); err != nil || crd.ResourceVersion != added.ResourceVersion {
			return // kube-apiserver has seen a change
		}
		changed := added.DeepCopy()
		apiextensionshelpers.FindCRDCondition(changed, apiextensionsv1.NamesAccepted).LastTransitionTime = metav1.Now()
		_, err := client.ApiextensionsV1().CustomResourceDefinitions().UpdateStatus(context.Background(), changed, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			utilruntime.HandleError(fmt.Errorf("establishing the CRD %s: %w", added.Name, err))
		}
	}
	_, err := crds.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		crd := object.(*apiextensionsv1.CustomResourceDefinition)
		if apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) &&
			!apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			time.AfterFunc(after, func() { touch(crd) })
		}
	}})
	return err
}
