// Package scheme contains the scheme of the Gardener API groups that the garden serves, in their internal and
// versioned forms, and its codecs. It may import the API modules only.
package scheme

import (
	"fmt"

	authenticationinstall "github.com/gardener/gardener/pkg/apis/authentication/install"
	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/core"
	coreinstall "github.com/gardener/gardener/pkg/apis/core/install"
	corev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsinstall "github.com/gardener/gardener/pkg/apis/operations/install"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityinstall "github.com/gardener/gardener/pkg/apis/security/install"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementinstall "github.com/gardener/gardener/pkg/apis/seedmanagement/install"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	autoscalinginstall "k8s.io/kubernetes/pkg/apis/autoscaling/install"
)

var (
	// Scheme knows every type of the Gardener API groups.
	Scheme = runtime.NewScheme()
	// Codecs encode and decode the types of Scheme.
	Codecs = serializer.NewCodecFactory(Scheme)
	// ParameterCodec decodes the query parameters of requests to the Gardener API.
	ParameterCodec = runtime.NewParameterCodec(Scheme)

	// GroupVersions are the served group versions. Objects are stored in the first version of their group.
	GroupVersions = []schema.GroupVersion{
		corev1beta1.SchemeGroupVersion,
		corev1.SchemeGroupVersion,
		operationsv1alpha1.SchemeGroupVersion,
		securityv1alpha1.SchemeGroupVersion,
		seedmanagementv1alpha1.SchemeGroupVersion,
	}
)

func init() {
	coreinstall.Install(Scheme)
	operationsinstall.Install(Scheme)
	securityinstall.Install(Scheme)
	seedmanagementinstall.Install(Scheme)
	authenticationinstall.Install(Scheme)
	autoscalinginstall.Install(Scheme) // for the scale subresource of ManagedSeedSets

	for _, gv := range append(GroupVersions, authenticationv1alpha1.SchemeGroupVersion) {
		metav1.AddToGroupVersion(Scheme, gv)
	}
	// The API module registers the selectable fields of all resources but this one.
	utilruntime.Must(Scheme.AddFieldLabelConversionFunc(corev1beta1.SchemeGroupVersion.WithKind("NamespacedCloudProfile"),
		func(label, value string) (string, string, error) {
			switch label {
			case "metadata.name", "metadata.namespace", core.NamespacedCloudProfileParentRefName:
				return label, value, nil
			}
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}))
	// As in k8s.io/sample-apiserver, list and get options and errors are registered in the unversioned group as well.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(Scheme, unversioned)
	Scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
}
