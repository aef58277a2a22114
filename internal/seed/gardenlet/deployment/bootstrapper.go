package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// tokenValidity is how long a bootstrap token is valid, as in Gardener.
const tokenValidity = 24 * time.Hour

// accountTokenValidity is the requested validity of the token of a bootstrap ServiceAccount, as in Gardener.
const accountTokenValidity = 10 * time.Minute

// Bootstrapper creates and removes the credentials that gardenlets use to get their identity.
type Bootstrapper struct {
	*controllerutils.Base
	// GardenConfig has the address and CA of the garden. Credentials in it are ignored.
	GardenConfig *rest.Config
}

// errBootstrapped says that a gardenlet has no identity, but its Seed counts as bootstrapped. The gardenlet may be about to
// get its identity with the credentials that it already has.
var errBootstrapped = errors.New("its gardenlet has no client certificate, but its Seed says that it has: unless it " +
	"gets one soon, annotate this object with gardener.cloud/operation=renew-kubeconfig")

// kubeconfig returns a bootstrap kubeconfig for the gardenlet of a ManagedSeed or Gardenlet, nil if it needs none. It also
// returns whether the existing identity must be replaced.
func (b *Bootstrapper) kubeconfig(ctx context.Context, of client.Object, method seedmanagementv1alpha1.Bootstrap,
	has Status, connection *gardenletconfigv1alpha1.GardenClientConnection) (kubeconfig []byte, renew bool, err error) {
	if method == seedmanagementv1alpha1.BootstrapNone {
		return nil, false, nil
	}
	now := b.Clock.Now()
	renew = bootstraprules.RequestsNewKubeconfig(of) || has.IdentityExpires != nil && has.IdentityExpires.Before(now)
	if has.IdentityExpires != nil && !renew {
		return nil, false, nil
	}
	seed, err := b.Seed(ctx, of.GetName())
	if err != nil {
		return nil, false, err
	}
	if bootstraprules.IsBootstrapped(of, seed, now) {
		return nil, false, errBootstrapped
	}
	token, err := b.token(ctx, of, method)
	if err != nil {
		return nil, false, err
	}
	kubeconfig, err = b.withToken(token, connection.GardenClusterAddress)
	return kubeconfig, renew, err
}

func (b *Bootstrapper) token(ctx context.Context, of client.Object, method seedmanagementv1alpha1.Bootstrap) (string, error) {
	switch method {
	case seedmanagementv1alpha1.BootstrapToken:
		return b.bootstrapToken(ctx, of)
	case seedmanagementv1alpha1.BootstrapServiceAccount:
		return b.accountToken(ctx, of)
	}
	return "", fmt.Errorf("spec.gardenlet.bootstrap is %q: it must be BootstrapToken, ServiceAccount or None", method)
}

// Seed returns the current Seed with the given name, nil if there is none. It reads live: a cache has only the Seeds that it
// knows to belong to this gardenlet, and the admission refuses bootstrap credentials for a Seed that exists.
func (b *Bootstrapper) Seed(ctx context.Context, name string) (*corev1beta1.Seed, error) {
	seed := &corev1beta1.Seed{}
	if err := b.GardenReader.Get(ctx, client.ObjectKey{Name: name}, seed); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Seed %s: %w", name, err)
	}
	return seed, nil
}

// Remove removes bootstrap credentials that a gardenlet did not use. Its Seed must be gone, otherwise the garden refuses.
func (b *Bootstrapper) Remove(ctx context.Context, of client.Object, method seedmanagementv1alpha1.Bootstrap) error {
	switch method {
	case seedmanagementv1alpha1.BootstrapToken:
		return b.removeBootstrapToken(ctx, of)
	case seedmanagementv1alpha1.BootstrapServiceAccount:
		return b.disarmAccount(ctx, of)
	}
	return nil
}

func (b *Bootstrapper) withToken(token string, address *string) ([]byte, error) {
	garden := rest.AnonymousClientConfig(b.GardenConfig)
	if err := rest.LoadTLSFiles(garden); err != nil {
		return nil, fmt.Errorf("reading the garden's certificate authority: %w", err)
	}
	if address != nil && *address != "" {
		garden.Host = *address
	}
	return controllerutils.Kubeconfig(garden, "gardenlet", &clientcmdapi.AuthInfo{Token: token})
}
