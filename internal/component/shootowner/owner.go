// Package shootowner says which seed may use what a process has for a Shoot: the data of its control plane, its network
// in the cloud. Each has its owner recorded beside it. Another seed becomes the owner only if the garden has the Shoot
// there, so that no administrator of a seed gets what belongs to a Shoot of another one by the name of a namespace.
package shootowner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is the owner of something that belongs to a Shoot. The zero value is for what no seed has claimed.
type Owner struct {
	Seed string `json:"seed,omitempty"`
	// Shoot is the UID of the Shoot; empty if there is no garden to ask.
	Shoot types.UID `json:"shoot,omitempty"`
}

// ErrForeign says that the garden does not have the Shoot on the seed.
var ErrForeign = errors.New("the garden has no such Shoot on this seed")

// Garden reads the Shoot with a technical ID.
type Garden interface {
	// Shoot returns nil if there is none.
	Shoot(ctx context.Context, technicalID string) (*corev1beta1.Shoot, error)
}

// Claim returns the owner after a claim of a seed: the seed if the garden has the Shoot there, in spec or status, or else the
// recorded one if it is that seed. Without a garden every claim is granted.
func Claim(ctx context.Context, g Garden, technicalID, seed string, recorded Owner) (Owner, error) {
	if g == nil {
		if recorded.Seed == seed {
			return recorded, nil
		}
		return Owner{Seed: seed}, nil
	}
	shoot, err := g.Shoot(ctx, technicalID)
	switch {
	case err == nil && shoot != nil && (ptr.Deref(shoot.Spec.SeedName, "") == seed || ptr.Deref(shoot.Status.SeedName, "") == seed):
		return Owner{Seed: seed, Shoot: shoot.UID}, nil // another UID is that of a new Shoot with the same name
	case recorded.Seed == seed:
		return recorded, nil
	case err != nil:
		return recorded, fmt.Errorf("asking the garden which seed %s belongs to: %w", technicalID, err)
	}
	return recorded, fmt.Errorf("%s: %w, %s", technicalID, ErrForeign, seed)
}

// IsOtherShoot reports whether the owner is another Shoot than the one before, which had the same name. What that one
// has left must not get to it.
func (o Owner) IsOtherShoot(before Owner) bool {
	return before.Shoot != "" && o.Shoot != "" && before.Shoot != o.Shoot
}

// prefix is the prefix of the technical ID of every Shoot, "shoot--PROJECT--NAME".
const prefix = "shoot--"

// Reader is a Garden that reads with a client.
type Reader struct{ Client client.Reader }

// Shoot implements Garden.
func (r Reader) Shoot(ctx context.Context, technicalID string) (*corev1beta1.Shoot, error) {
	project, name, found := strings.Cut(strings.TrimPrefix(technicalID, prefix), "--")
	if !found || !strings.HasPrefix(technicalID, prefix) {
		return nil, nil
	}
	of := &corev1beta1.Project{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: project}, of); err != nil || of.Spec.Namespace == nil {
		return nil, client.IgnoreNotFound(err)
	}
	shoot := &corev1beta1.Shoot{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: *of.Spec.Namespace, Name: name}, shoot); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if shoot.Status.TechnicalID != "" && shoot.Status.TechnicalID != technicalID {
		return nil, nil
	}
	return shoot, nil
}
