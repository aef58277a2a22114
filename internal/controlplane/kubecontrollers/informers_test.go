package kubecontrollers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

func TestOnlyMetadataOfMostResources(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	informers := newSharedInformers(
		&client{Interface: kubernetes.NewForConfigOrDie(config), metadata: metadata.NewForConfigOrDie(config)}, nil)
	for resource, inFull := range map[schema.GroupVersionResource]bool{
		{Version: "v1", Resource: "pods"}:                                          true,
		{Version: "v1", Resource: "namespaces"}:                                    true,
		{Version: "v1", Resource: "secrets"}:                                       false,
		{Version: "v1", Resource: "configmaps"}:                                    false,
		{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}:     false,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}:     false,
		{Group: "apps", Version: "v1", Resource: "deployments"}:                    false,
		{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}:      true,
		{Group: "operations.gardener.cloud", Version: "v1", Resource: "not-there"}: false,
	} {
		informer, err := informers.ForResource(resource)
		if err != nil {
			t.Fatal(err)
		}
		if onlyMetadata := informer.Informer() == informers.metadata.ForResource(resource).Informer(); onlyMetadata == inFull {
			t.Errorf("%s: whole objects: %t, want %t", resource, !onlyMetadata, inFull)
		}
	}
}

func TestTransforms(t *testing.T) {
	object := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}}
	if _, err := dropUnowned(&object); err != nil || len(object.ManagedFields)+len(object.Labels)+len(object.Annotations) > 0 ||
		len(object.OwnerReferences) == 0 || len(object.Finalizers) == 0 {
		t.Errorf("%v is left of metadata, error %v", object.ObjectMeta, err)
	}
	if got, err := dropUnowned("no object"); got != "no object" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
