package quirks

import (
	"context"
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	informers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// EstablishAfterStart establishes CRDs whose names were accepted, but which were not established when the API server ended.
// kube-apiserver establishes a CRD when it changes, and nothing changes it after a start until the informer's resync: it is not
// served for five minutes. A change of the status makes kube-apiserver establish it.
//
// Upstream: createCustomResourceDefinition and updateCustomResourceDefinition in
// github.com/kubernetes/kubernetes/blob/v1.36.4/staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go
func EstablishAfterStart(crds informers.CustomResourceDefinitionInformer, client clientset.Interface, after time.Duration) error {
	touch := func(added *apiextensionsv1.CustomResourceDefinition) error {
		changed := added.DeepCopy()
		apiextensionshelpers.FindCRDCondition(changed, apiextensionsv1.NamesAccepted).LastTransitionTime = metav1.Now()
		_, err := client.ApiextensionsV1().CustomResourceDefinitions().UpdateStatus(context.Background(), changed, metav1.UpdateOptions{})
		return err
	}
	_, err := crds.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		crd := object.(*apiextensionsv1.CustomResourceDefinition)
		if apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) &&
			!apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			unlessChanged(crds, crd, after, touch)
		}
	}})
	return err
}
