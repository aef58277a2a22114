package shootclient

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/retry"
)

// Hibernate hibernates a Shoot, or wakes it up.
func (c *Client) Hibernate(ctx context.Context, key Key, enabled bool) error {
	shoot, err := c.Shoot(ctx, key)
	if err != nil {
		return err
	}
	before := shoot.DeepCopy()
	if shoot.Spec.Hibernation == nil {
		shoot.Spec.Hibernation = &corev1beta1.Hibernation{}
	}
	shoot.Spec.Hibernation.Enabled = ptr.To(enabled)
	if err := c.Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("setting the hibernation of the shoot %s: %w", key, err)
	}
	return nil
}

// Retry requests that the failed operation of a Shoot is tried again. A Shoot that has not failed is an error.
func (c *Client) Retry(ctx context.Context, key Key) error {
	shoot, err := c.Shoot(ctx, key)
	if err != nil {
		return err
	}
	if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateFailed {
		return fmt.Errorf("shoot %s has not failed (%s): there is nothing to retry", key, ProgressOf(shoot))
	}
	return c.RequestOperation(ctx, key, constants.ShootOperationRetry)
}

// Migrate requests that the control plane of a Shoot is moved to another seed.
func (c *Client) Migrate(ctx context.Context, key Key, seed string) error {
	return retry.OnConflict(ctx, func() error {
		shoot, err := c.Shoot(ctx, key)
		if err != nil {
			return err
		}
		if ptr.Deref(shoot.Spec.SeedName, "") == seed {
			return fmt.Errorf("shoot %s is on seed %s already, or on its way there", key, seed)
		}
		shoot.Spec.SeedName = &seed
		if err := c.SubResource("binding").Update(ctx, shoot); err != nil {
			return fmt.Errorf("binding the shoot %s to seed %s: %w", key, seed, err)
		}
		return nil
	})
}
