package bootstrap

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	kubeconfigKey = "kubeconfig"
	// pendingKey is the key of a certificate that is asked for. It goes in the write that brings the certificate.
	pendingKey = "pending.key"
	// bootstrappedBy is an annotation with the user that the identity was bootstrapped by, until what it needed is deleted.
	bootstrappedBy = "gardenlite.dev/bootstrapped-by"
)

// store is the Secret in the seed that the identity lives in, as it was read. Its writes fail if it has changed since.
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

// credential is what is stored, or why it is none of that seed.
func (s *store) credential(seedName string) (*credential, error) {
	if len(s.secret.Data[kubeconfigKey]) == 0 {
		return nil, fmt.Errorf("there is no kubeconfig in it under %q", kubeconfigKey)
	}
	return parseCredential(s.secret.Data[kubeconfigKey], seedName)
}

func (s *store) pending() []byte { return s.secret.Data[pendingKey] }

// renews says whether a user has requested a new certificate.
func (s *store) renews() bool {
	return s.secret.Annotations[constants.GardenerOperation] == constants.KubeconfigSecretOperationRenew
}

// setPending keeps the key of a request, or forgets it if it is nil.
func (s *store) setPending(ctx context.Context, keyPEM []byte) error {
	return s.write(ctx, func(secret *corev1.Secret) {
		if keyPEM == nil {
			delete(secret.Data, pendingKey)
		} else {
			secret.Data[pendingKey] = keyPEM
		}
	})
}

// setCredential stores a credential in place of the key that waited for it, and by what it was bootstrapped, "" if it is
// the last one's successor.
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

// setCleaned says that what bootstrapped the identity is deleted.
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

// readBootstrap returns the bootstrap kubeconfig that is in the seed, nil if there is none.
func readBootstrap(ctx context.Context, c client.Client) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, BootstrapKubeconfigSecret, secret); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the bootstrap kubeconfig, Secret %s in the seed: %w", BootstrapKubeconfigSecret, err)
	}
	return secret.Data[kubeconfigKey], nil
}

// deleteBootstrap deletes the bootstrap kubeconfig that is in the seed if it is that user's.
func deleteBootstrap(ctx context.Context, c client.Client, user string) error {
	secret := &corev1.Secret{}
	err := c.Get(ctx, BootstrapKubeconfigSecret, secret)
	if err == nil {
		config, invalid := parseBootstrap(secret.Data[kubeconfigKey])
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
