package managedseed

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func (s *step) delete(ctx context.Context) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(s.managedSeed, corev1beta1.GardenerName) {
		return 0, nil
	}
	waitFor, err := s.unregister(ctx)
	if err != nil {
		return 0, s.failed(ctx, corev1beta1.EventDeleteError, corev1beta1.EventActionDelete, err)
	}
	if waitFor != "" {
		return s.WaitSyncPeriod, s.report(ctx, condition(seedmanagementv1alpha1.SeedRegistered, false, corev1beta1.EventDeleting, waitFor))
	}
	return 0, s.deleted.RemoveFinalizers(ctx, s.GardenClient, s.managedSeed, corev1beta1.GardenerName)
}

// unregister takes the next step of the deletion: of the Seed, then the gardenlet, then its bootstrap credentials. It
// returns what it waits for, empty if everything is gone.
func (s *step) unregister(ctx context.Context) (waitFor string, err error) {
	installer, name, target := s.installer(), s.managedSeed.Name, s.target()
	has, err := s.Deployer.Status(ctx, target)
	if err != nil {
		return "", fmt.Errorf("looking for the gardenlet of seed %s: %w", name, err)
	}
	deployed := has.Deployed && !has.IsOfOther(name)
	seed, err := installer.Seed(ctx, name)
	switch {
	case err != nil:
		return "", err
	case seed != nil:
		return fmt.Sprintf("Waiting for seed %q to be deleted", name), s.deleteSeed(ctx, seed, deployed)
	case deployed:
		s.event(corev1.EventTypeNormal, corev1beta1.EventDeleting, corev1beta1.EventActionDelete, "Deleting gardenlet from target cluster")
		if err := s.Deployer.Delete(ctx, target); err != nil {
			return "", fmt.Errorf("deleting the gardenlet of seed %s: %w", name, err)
		}
		return "Waiting for gardenlet to be deleted from target cluster", nil
	}
	return "", installer.Remove(ctx, s.managedSeed, s.bootstrap())
}

// deleteSeed deletes the Seed, whose finalizer its gardenlet has to remove. A gardenlet that registered its Seed while
// the gardenlet was being deleted is deployed once more for that.
func (s *step) deleteSeed(ctx context.Context, seed *corev1beta1.Seed, deployed bool) error {
	if seed.DeletionTimestamp == nil {
		s.event(corev1.EventTypeNormal, corev1beta1.EventDeleting, corev1beta1.EventActionDelete, fmt.Sprintf("Deleting seed %s", seed.Name))
		if err := s.GardenClient.Delete(ctx, seed, client.Preconditions{UID: &seed.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Seed %s: %w", seed.Name, err)
		}
		return nil
	}
	s.event(corev1.EventTypeNormal, corev1beta1.EventDeleting, corev1beta1.EventActionDelete,
		fmt.Sprintf("Waiting for seed %q to be deleted", seed.Name))
	if deployed {
		return nil
	}
	return s.install(ctx)
}
