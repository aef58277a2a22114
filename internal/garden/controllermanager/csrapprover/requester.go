package csrapprover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// These are the descriptions of bootstrap tokens and the names of ServiceAccounts with which Gardener bootstraps
// gardenlets.
const (
	descriptionPrefix    = "A bootstrap token for the Gardenlet for "
	descriptionSuffix    = "."
	managedSeedReference = "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource "
	gardenletReference   = "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource "
	// manualPrefix and manualSuffix form the description of a token that is created by hand, as in Gardener's
	// documentation.
	manualPrefix = "Token to be used by the gardenlet for Seed `"
	manualSuffix = "`."

	bootstrapAccountPrefix = "system:serviceaccount:" + constants.GardenNamespace + ":" + bootstraprules.AccountPrefix
)

// TokenDescription returns the description of a bootstrap token with which only the certificate of this seed can be
// requested.
func TokenDescription(seed string) string { return manualPrefix + seed + manualSuffix }

// DescribedSeed returns the seed that a bootstrap token is for, and "" if its description names none. A ManagedSeed and
// a Gardenlet have the name of their seed.
func DescribedSeed(description string) string {
	if seed, ok := strings.CutPrefix(description, manualPrefix); ok {
		seed, ended := strings.CutSuffix(seed, manualSuffix)
		if !ended {
			return ""
		}
		return seed
	}
	reference, ok := strings.CutPrefix(description, descriptionPrefix)
	reference, ended := strings.CutSuffix(reference, descriptionSuffix)
	if !ok || !ended {
		return ""
	}
	for _, kind := range []string{managedSeedReference, gardenletReference} {
		if name, ok := strings.CutPrefix(reference, kind+constants.GardenNamespace+"/"); ok {
			return name
		}
	}
	return ""
}

// refusal returns the reason why the author of a request may not request a certificate for this seed, and "" if there
// is none.
func (r *Reconciler) refusal(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, seed string) (string, error) {
	if id, ok := strings.CutPrefix(csr.Spec.Username, bootstraptokenapi.BootstrapUserPrefix); ok {
		return r.tokenRefusal(ctx, id, seed)
	}
	if name, ok := strings.CutPrefix(csr.Spec.Username, bootstrapAccountPrefix); ok && name != seed {
		return fmt.Sprintf("the ServiceAccount bootstraps seed %q, not %q", name, seed), nil
	}
	if !slices.Contains(csr.Spec.Groups, constants.SeedsGroup) {
		return "", nil
	}
	if csr.Spec.Username != constants.SeedUserNamePrefix+seed {
		return fmt.Sprintf("%s is not the gardenlet of seed %q", csr.Spec.Username, seed), nil
	}
	// A certificate that is issued after the deletion of the Seed is not revoked with it.
	err := r.Reader.Get(ctx, types.NamespacedName{Name: seed}, &corev1beta1.Seed{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("there is no Seed %q: its gardenlet has to be bootstrapped again", seed), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Seed %s: %w", seed, err)
	}
	return "", nil
}

func (r *Reconciler) tokenRefusal(ctx context.Context, id, seed string) (string, error) {
	token := &corev1.Secret{}
	name := types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: bootstraptokenapi.BootstrapTokenSecretPrefix + id}
	if err := r.Reader.Get(ctx, name, token); apierrors.IsNotFound(err) {
		return "the bootstrap token is gone", nil
	} else if err != nil {
		return "", fmt.Errorf("reading the bootstrap token %s: %w", id, err)
	}
	described := DescribedSeed(string(token.Data[bootstraptokenapi.BootstrapTokenDescriptionKey]))
	switch {
	case token.Type != corev1.SecretTypeBootstrapToken || token.DeletionTimestamp != nil:
		return "the bootstrap token is gone", nil
	case r.expired(token):
		return "the bootstrap token has expired", nil
	case described == "":
		return fmt.Sprintf("the bootstrap token's description says for no seed that it is for it; for this one it would be %q",
			TokenDescription(seed)), nil
	case described != seed:
		return fmt.Sprintf("the bootstrap token is for seed %q, not %q", described, seed), nil
	}
	return "", nil
}

// expired reports whether a token has expired. An invalid expiration counts as expired.
func (r *Reconciler) expired(token *corev1.Secret) bool {
	expiration := string(token.Data[bootstraptokenapi.BootstrapTokenExpirationKey])
	if expiration == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, expiration)
	return err != nil || !r.Clock.Now().Before(at)
}
