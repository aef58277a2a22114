package deployment

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// bootstrapToken returns a valid bootstrap token for an object. It tries to create the token first: the gardenlet may
// always create it, but may read it only after the garden's resource dependency graph has seen the object.
func (b *Bootstrapper) bootstrapToken(ctx context.Context, of client.Object) (string, error) {
	secret, err := b.newToken(of)
	if err != nil {
		return "", err
	}
	err = b.GardenClient.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return b.existingToken(ctx, secret)
	}
	if err != nil {
		return "", fmt.Errorf("creating the bootstrap token, Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return tokenOf(secret), nil
}

// existingToken returns the existing token. If that has expired or is not for this object, it is replaced by the wanted one.
func (b *Bootstrapper) existingToken(ctx context.Context, wanted *corev1.Secret) (string, error) {
	secret, key := &corev1.Secret{}, client.ObjectKeyFromObject(wanted)
	if err := b.GardenReader.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("reading the bootstrap token, Secret %s: %w", key, err)
	}
	if b.usable(secret, wanted) {
		return tokenOf(secret), nil
	}
	secret.Type, secret.Data, secret.StringData = wanted.Type, wanted.Data, nil
	if err := b.GardenClient.Update(ctx, secret); err != nil {
		return "", fmt.Errorf("replacing the bootstrap token that has expired, Secret %s: %w", key, err)
	}
	return tokenOf(secret), nil
}

func (b *Bootstrapper) usable(secret, wanted *corev1.Secret) bool {
	for _, key := range []string{
		bootstraptokenapi.BootstrapTokenDescriptionKey, bootstraptokenapi.BootstrapTokenIDKey,
		bootstraptokenapi.BootstrapTokenUsageAuthentication, bootstraptokenapi.BootstrapTokenUsageSigningKey,
	} {
		if string(secret.Data[key]) != string(wanted.Data[key]) {
			return false
		}
	}
	expires, err := time.Parse(time.RFC3339, string(secret.Data[bootstraptokenapi.BootstrapTokenExpirationKey]))
	return err == nil && b.Clock.Now().Before(expires) && secret.Type == wanted.Type &&
		len(secret.Data[bootstraptokenapi.BootstrapTokenSecretKey]) == tokenSecretLength
}

func (b *Bootstrapper) newToken(of client.Object) (*corev1.Secret, error) {
	description, err := tokenDescription(of)
	if err != nil {
		return nil, err
	}
	secret := tokenSecret(of)
	id := bootstraprules.TokenID(of.GetNamespace(), of.GetName())
	secret.Type = corev1.SecretTypeBootstrapToken
	secret.Data = map[string][]byte{
		bootstraptokenapi.BootstrapTokenDescriptionKey:      []byte(description),
		bootstraptokenapi.BootstrapTokenIDKey:               id[:],
		bootstraptokenapi.BootstrapTokenSecretKey:           []byte(strings.ToLower(rand.Text()[:tokenSecretLength])),
		bootstraptokenapi.BootstrapTokenExpirationKey:       []byte(b.Clock.Now().Add(tokenValidity).UTC().Format(time.RFC3339)),
		bootstraptokenapi.BootstrapTokenUsageAuthentication: []byte("true"),
		bootstraptokenapi.BootstrapTokenUsageSigningKey:     []byte("true"),
	}
	return secret, nil
}

// tokenDescription returns the description from which the garden recognizes which object a token is for.
func tokenDescription(of client.Object) (string, error) {
	var kind string
	switch of.(type) {
	case *seedmanagementv1alpha1.ManagedSeed:
		kind = "ManagedSeed"
	case *seedmanagementv1alpha1.Gardenlet:
		kind = "Gardenlet"
	default:
		return "", fmt.Errorf("there are no bootstrap tokens for a %T", of)
	}
	return fmt.Sprintf("A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.%s resource %s/%s.",
		kind, of.GetNamespace(), of.GetName()), nil
}

func (b *Bootstrapper) removeBootstrapToken(ctx context.Context, of client.Object) error {
	secret := tokenSecret(of)
	if err := b.GardenClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the bootstrap token, Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

func tokenSecret(of client.Object) *corev1.Secret {
	id := bootstraprules.TokenID(of.GetNamespace(), of.GetName())
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem,
		Name: bootstraptokenapi.BootstrapTokenSecretPrefix + string(id[:])}}
}

func tokenOf(secret *corev1.Secret) string {
	return string(secret.Data[bootstraptokenapi.BootstrapTokenIDKey]) + "." + string(secret.Data[bootstraptokenapi.BootstrapTokenSecretKey])
}

// tokenSecretLength is the length of the secret part of a token. Its base-32 digits have 80 bits.
const tokenSecretLength = 16
