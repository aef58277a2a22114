package bootstrap

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/kubeconfig"
)

const (
	kubeconfigKey = "kubeconfig"
	// pendingKey holds the key of a requested certificate. The write that stores the certificate removes it.
	pendingKey = "pending.key"
	// bootstrappedBy is the annotation with the user that bootstrapped the identity, until its objects are deleted.
	bootstrappedBy = "gardenlite.dev/bootstrapped-by"
)

// store is the Secret in the seed that holds the identity, as it was read. Its writes fail if the Secret has changed.
type store struct {
	client client.Client
	secret corev1.Secret
}

func readStore(ctx context.Context, c client.Client) (*store, error) {
	s := &store{client: c}
	if err := c.Get(ctx, KubeconfigSecret, &s.secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the gardenlet's kubeconfig, Secret %s in the seed: %w", KubeconfigSecret, err)
	}
	return s, nil
}

// credential returns the stored credential, or an error if it is not one of the seed.
func (s *store) credential(seedName string, clk clock.PassiveClock) (*credential, error) {
	if len(s.secret.Data[kubeconfigKey]) == 0 {
		return nil, fmt.Errorf("there is no kubeconfig in it under %q", kubeconfigKey)
	}
	return parseCredential(s.secret.Data[kubeconfigKey], seedName, clk)
}

func (s *store) pending() []byte { return s.secret.Data[pendingKey] }

// renews reports whether a user has requested a new certificate.
func (s *store) renews() bool {
	return s.secret.Annotations[constants.GardenerOperation] == constants.KubeconfigSecretOperationRenew
}

// setPending stores the key of a request, or removes it if it is nil.
func (s *store) setPending(ctx context.Context, keyPEM []byte) error {
	return s.write(ctx, func(secret *corev1.Secret) {
		if keyPEM == nil {
			delete(secret.Data, pendingKey)
		} else {
			secret.Data[pendingKey] = keyPEM
		}
	})
}

// setCredential stores a credential in place of the pending key, with the user that bootstrapped it, which is empty after
// a rotation.
func (s *store) setCredential(ctx context.Context, c *credential, by string) error {
	kubeconfig, err := c.kubeconfig()
	if err != nil {
		return fmt.Errorf("writing the gardenlet's kubeconfig: %w", err)
	}
	return s.write(ctx, func(secret *corev1.Secret) {
		delete(secret.Annotations, constants.GardenerOperation)
		secret.Data = map[string][]byte{kubeconfigKey: kubeconfig}
		if by != "" {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, bootstrappedBy, by)
		}
	})
}

// setCleaned records that the objects that bootstrapped the identity are deleted.
func (s *store) setCleaned(ctx context.Context) error {
	return s.write(ctx, func(secret *corev1.Secret) { delete(secret.Annotations, bootstrappedBy) })
}

func (s *store) write(ctx context.Context, change func(*corev1.Secret)) error {
	secret := s.secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	change(secret)
	write := func() error { return s.client.Update(ctx, secret) }
	if secret.ResourceVersion == "" {
		secret.Namespace, secret.Name = KubeconfigSecret.Namespace, KubeconfigSecret.Name
		write = func() error { return s.client.Create(ctx, secret) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("storing the gardenlet's kubeconfig, Secret %s in the seed: %w", KubeconfigSecret, err)
	}
	s.secret = *secret
	return nil
}

// readBootstrap returns the bootstrap kubeconfig in the seed, nil if there is none.
func readBootstrap(ctx context.Context, c client.Client) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, BootstrapKubeconfigSecret, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the bootstrap kubeconfig, Secret %s in the seed: %w", BootstrapKubeconfigSecret, err)
	}
	data := secret.Data[kubeconfigKey]
	if len(data) == 0 {
		return nil, nil
	}
	if _, err := kubeconfig.Load(data); err != nil {
		return nil, fmt.Errorf("the bootstrap kubeconfig, Secret %s in the seed: %w", BootstrapKubeconfigSecret, err)
	}
	return data, nil
}

// deleteBootstrap deletes the bootstrap kubeconfig in the seed if it belongs to the user.
func deleteBootstrap(ctx context.Context, c client.Client, user string) error {
	secret := &corev1.Secret{}
	err := c.Get(ctx, BootstrapKubeconfigSecret, secret)
	if err == nil {
		config, invalid := kubeconfig.RESTConfig(secret.Data[kubeconfigKey])
		if invalid != nil || userOf(config) != user {
			return nil
		}
		err = c.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the bootstrap kubeconfig, Secret %s in the seed: %w", BootstrapKubeconfigSecret, err)
	}
	return nil
}
