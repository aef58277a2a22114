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
	// Shoot is whose cluster it is, nil if a gardenlet deploys itself into the cluster that it runs in.
	Shoot *types.NamespacedName
	// Kubeconfig is for the Shoot's cluster. Where there is none, the Deployer has a cluster for the seed.
	Kubeconfig []byte
}

// Gardenlet is a gardenlet as it is to be run.
type Gardenlet struct {
	Target
	Config     *gardenletconfigv1alpha1.GardenletConfiguration
	Deployment seedmanagementv1alpha1.GardenletDeployment
	// ImageVectorOverwrite and ComponentImageVectorOverwrite are those of a Gardenlet object.
	ImageVectorOverwrite, ComponentImageVectorOverwrite *string
	// Bootstrap is a kubeconfig to get an identity in the garden with, nil if it is not to get one that way.
	Bootstrap []byte
	// Renew throws the identity away that it has, so that it gets a new one with Bootstrap.
	Renew bool
	// Owner is the ManagedSeed or Gardenlet that it is of.
	Owner corev1.ObjectReference
}

// Checksum tells gardenlets apart that have to be run differently.
func (g *Gardenlet) Checksum() (string, error) {
	raw, err := json.Marshal([]any{g.Config, g.Deployment, g.ImageVectorOverwrite, g.ComponentImageVectorOverwrite})
	if err != nil {
		return "", fmt.Errorf("writing the configuration of the gardenlet of seed %s: %w", g.SeedName, err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Status is what is in a target.
type Status struct {
	// Deployed is whether there is a gardenlet, running or not yet, or still.
	Deployed bool
	// SeedName is the seed that this gardenlet is of, "" if that is not known.
	SeedName string
	// IdentityExpires is when the certificate expires that it has in the garden, nil if it has none.
	IdentityExpires *time.Time
}

// Deployer runs gardenlets in targets, as a cluster runs those that Gardener's chart brings there.
type Deployer interface {
	// Deploy runs a gardenlet, or runs it as it is now wanted, and does not wait until it does: the caller may be the
	// gardenlet that is replaced, whose requests are given time to end. It keeps one running whose Checksum is the same, and
	// remembers what is deployed over a restart of the process. It puts the bootstrap kubeconfig into the target with
	// PutBootstrap, if there is one, before it runs a gardenlet there.
	Deploy(context.Context, Gardenlet) error
	// Delete ends the gardenlet of a target and removes what it came with, its identity too. It need not wait until that is
	// done: Status tells.
	Delete(context.Context, Target) error
	// Status is what is there now.
	Status(context.Context, Target) (Status, error)
}
