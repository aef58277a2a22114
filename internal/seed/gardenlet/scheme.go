package gardenlet

import (
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// gardenTypes are the types of the garden, in the versions that are served.
var gardenTypes = runtime.NewSchemeBuilder(
	clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme, operationsv1alpha1.AddToScheme,
	securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
)

// seedTypes are the types of a seed.
var seedTypes = runtime.NewSchemeBuilder(
	clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
)
