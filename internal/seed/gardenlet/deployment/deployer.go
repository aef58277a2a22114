package deployment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Target is the cluster that a gardenlet is deployed into.
type Target struct {
	SeedName string
	// Shoot is the Shoot of the cluster, nil if a gardenlet deploys itself into the cluster that it runs in.
	Shoot *types.NamespacedName
}

// Gardenlet is the desired state of a gardenlet.
type Gardenlet struct {
	Target
	Config     *gardenletconfigv1alpha1.GardenletConfiguration
	Deployment seedmanagementv1alpha1.GardenletDeployment
	// ImageVectorOverwrite and ComponentImageVectorOverwrite are those of a Gardenlet object.
	ImageVectorOverwrite, ComponentImageVectorOverwrite *string
	// Bootstrap is a kubeconfig for TLS bootstrapping, nil if the gardenlet must not bootstrap.
	Bootstrap []byte
	// Renew discards the existing identity, so that the gardenlet gets a new one with Bootstrap.
	Renew bool
	// Owner is the ManagedSeed or Gardenlet that the gardenlet belongs to.
	Owner corev1.ObjectReference
}

// Checksum returns a checksum that changes when the gardenlet has to be run differently.
func (g *Gardenlet) Checksum() (string, error) {
	raw, err := json.Marshal([]any{g.Config, g.Deployment, g.ImageVectorOverwrite, g.ComponentImageVectorOverwrite})
	if err != nil {
		return "", fmt.Errorf("writing the configuration of the gardenlet of seed %s: %w", g.SeedName, err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Status is the state of a target.
type Status struct {
	// Deployed says whether there is a gardenlet, even if it does not run yet or is being deleted.
	Deployed bool
	// SeedName is the seed of the gardenlet, empty if it is unknown.
	SeedName string
	// IdentityExpires is when the gardenlet's certificate for the garden expires, nil if it has none.
	IdentityExpires *time.Time
}

// Deployer runs gardenlets in targets, as a cluster runs the ones that are installed with Gardener's chart.
type Deployer interface {
	// Deploy starts or updates a gardenlet, and does not wait until it runs: the caller may be the gardenlet that is
	// replaced, whose requests are given time to end. It keeps a running gardenlet with the same Checksum, and remembers
	// what is deployed over a restart of the process. It writes the bootstrap kubeconfig, if there is one, with PutBootstrap
	// into the target before it starts the gardenlet.
	Deploy(context.Context, Gardenlet) error
	// Delete stops the gardenlet of a target and removes what belongs to it, including its identity. It need not wait for
	// completion: Status reports it.
	Delete(context.Context, Target) error
	// Status returns the current state of a target.
	Status(context.Context, Target) (Status, error)
}
