package machines

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/node"
)

// shootAccessSecret has the token of machine-controller-manager for a shoot of Gardener's gardenlet.
const shootAccessSecret = "shoot-access-" + constants.DeploymentNameMachineControllerManager

// kubeconfig returns the kubeconfig for the shoot of a namespace. It returns errNoAccess if there is none.
func (s *Shoots) kubeconfig(ctx context.Context, namespace string) ([]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: constants.DeploymentNameMachineControllerManager}
	err := s.Seed.Get(ctx, key, secret)
	if err == nil {
		return secret.Data[KubeconfigKey], nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the kubeconfig for the shoot in Secret %s: %w", key, err)
	}
	access := &corev1.Secret{}
	if err := s.Seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: shootAccessSecret}, access); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: Secret %s is not there", errNoAccess, key)
	} else if err != nil {
		return nil, fmt.Errorf("reading the token for the shoot in Secret %s/%s: %w", namespace, shootAccessSecret, err)
	}
	token := string(access.Data["token"])
	if token == "" {
		return nil, fmt.Errorf("%w: Secret %s/%s has no token yet", errNoAccess, namespace, shootAccessSecret)
	}
	server := s.APIServer(namespace)
	if server == "" {
		return nil, fmt.Errorf("%w: its API server does not run", errNoAccess)
	}
	ca, err := s.authority(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return node.KubeconfigWithToken(server, ca, token)
}

// authority returns the CA in the kubeconfig without a token that Gardener's gardenlet makes for components and extensions.
func (s *Shoots) authority(ctx context.Context, namespace string) ([]byte, error) {
	cluster := &extensionsv1alpha1.Cluster{}
	if err := s.Seed.Get(ctx, client.ObjectKey{Name: namespace}, cluster); err != nil {
		return nil, fmt.Errorf("reading the Cluster %s: %w", namespace, err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: cluster.Annotations[constants.AnnotationKeyGenericTokenKubeconfigSecretName]}
	if err := s.Seed.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig for components in Secret %s: %w", key, err)
	}
	config, err := clientcmd.Load(secret.Data[KubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("secret %s has no kubeconfig", key)
	}
	for _, cluster := range config.Clusters {
		return cluster.CertificateAuthorityData, nil
	}
	return nil, fmt.Errorf("the kubeconfig in Secret %s has no cluster", key)
}
