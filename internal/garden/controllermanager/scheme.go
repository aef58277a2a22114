package controllermanager

import (
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// schemes are Kubernetes' own types and Gardener's, in the versions that are served.
var schemes = runtime.NewSchemeBuilder(
	clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme, operationsv1alpha1.AddToScheme,
	securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
)
