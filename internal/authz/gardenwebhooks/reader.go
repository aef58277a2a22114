package gardenwebhooks

import (
	"errors"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(corev1.AddToScheme(s), gardencorev1beta1.AddToScheme(s), securityv1alpha1.AddToScheme(s)))
	return s
}()

// NewReader returns a client for the webhooks, which has no cache: an answer must not be older than the request.
func NewReader(config *rest.Config) (client.Reader, error) {
	return client.New(config, client.Options{Scheme: scheme})
}
