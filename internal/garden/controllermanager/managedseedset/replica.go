package managedseedset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	seedconstants "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootstatuslabel"
)

// status is the progress of a replica, in the order in which replicas are removed. During its creation a replica passes
// shootReconciling, shootReconciled, managedSeedPreparing and managedSeedRegistered, and during its removal
// managedSeedDeleting, shootReconciled and shootDeleting.
type status int

const (
	shootReconcileFailed status = iota
	shootDeleteFailed
	shootReconciling
	shootDeleting
	shootReconciled
	managedSeedPreparing
	managedSeedDeleting
	managedSeedRegistered
)

// String returns the name of the status.
func (s status) String() string {
	return [...]string{
		"ShootReconcileFailed", "ShootDeleteFailed", "ShootReconciling", "ShootDeleting", "ShootReconciled",
		"ManagedSeedPreparing", "ManagedSeedDeleting", "ManagedSeedRegistered",
	}[s]
}

// statusOf returns the status of a replica; managedSeed is nil if the replica has no ManagedSeed.
func statusOf(shoot *corev1beta1.Shoot, managedSeed *seedmanagementv1alpha1.ManagedSeed) status {
	if managedSeed != nil {
		seen := managedSeed.Generation == managedSeed.Status.ObservedGeneration
		switch {
		case managedSeed.DeletionTimestamp != nil:
			return managedSeedDeleting
		case seen && conditions.IsTrue(managedSeed.Status.Conditions, seedmanagementv1alpha1.SeedRegistered):
			return managedSeedRegistered
		}
		return managedSeedPreparing
	}
	deleting, operation := shoot.DeletionTimestamp != nil, shoot.Status.LastOperation
	if operation != nil && shoot.Generation == shoot.Status.ObservedGeneration {
		reconciles := operation.Type == corev1beta1.LastOperationTypeCreate || operation.Type == corev1beta1.LastOperationTypeReconcile
		failed := operation.State == corev1beta1.LastOperationStateFailed
		switch {
		case deleting && operation.Type == corev1beta1.LastOperationTypeDelete && failed:
			return shootDeleteFailed
		case !deleting && reconciles && failed:
			return shootReconcileFailed
		case !deleting && reconciles && operation.State == corev1beta1.LastOperationStateSucceeded:
			return shootReconciled
		}
	}
	if deleting {
		return shootDeleting
	}
	return shootReconciling
}

// health returns the health of a Shoot from its status label.
func health(shoot *corev1beta1.Shoot) string {
	if label, ok := shoot.Labels[constants.ShootStatus]; ok {
		return label
	}
	return shootstatuslabel.Progressing
}

func isSeedReady(seed *corev1beta1.Seed) bool {
	buckets := conditions.Get(seed.Status.Conditions, corev1beta1.SeedBackupBucketsReady)
	return seed.Generation == seed.Status.ObservedGeneration && seed.DeletionTimestamp == nil && kit.CheckSeedConditions(seed) == nil &&
		(buckets == nil || buckets.Status == corev1beta1.ConditionTrue)
}

// replica is a replica of a set: a Shoot with its ManagedSeed and the state of its Seed.
type replica struct {
	shoot *corev1beta1.Shoot
	// managedSeed is nil if it does not exist.
	managedSeed *seedmanagementv1alpha1.ManagedSeed
	seedReady   bool
	// used is set if Shoots are scheduled to the Seed.
	used bool
}

func (r *replica) status() status { return statusOf(r.shoot, r.managedSeed) }

func (r *replica) isReady() bool {
	return r.status() == managedSeedRegistered && r.seedReady && health(r.shoot) == shootstatuslabel.Healthy
}

// mayGo reports whether the replica may be removed.
func (r *replica) mayGo() bool {
	if r.used || r.shoot.Annotations[seedconstants.AnnotationProtectFromDeletion] == "true" {
		return false
	}
	return r.managedSeed == nil || r.managedSeed.Annotations[seedconstants.AnnotationProtectFromDeletion] != "true"
}

// ordinal returns the number at the end of a replica's name, and -1 if the name does not have the form of the set.
func ordinal(set *seedmanagementv1alpha1.ManagedSeedSet, name string) int32 {
	number, ok := strings.CutPrefix(name, set.Name+"-")
	if !ok {
		return -1
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return -1
	}
	return int32(n)
}

// lessWorthy returns a comparison that orders replicas by their removal: those with less progress first, then those
// that are not ready, less healthy, and older, that is, with a lower ordinal.
func lessWorthy(set *seedmanagementv1alpha1.ManagedSeedSet) func(a, b *replica) int {
	worth := func(r *replica) []int {
		ready := 0
		if r.seedReady {
			ready = 1
		}
		return []int{int(r.status()), ready, shootstatuslabel.Rank(health(r.shoot)), int(ordinal(set, r.shoot.Name))}
	}
	return func(a, b *replica) int { return slices.Compare(worth(a), worth(b)) }
}

// errOutdated is returned if the cache does not contain recent changes yet.
var errOutdated = errors.New("the cache of Shoots is not up to date yet: it is tried again")

// replicas returns the existing replicas of a set.
func (r *Reconciler) replicas(ctx context.Context, set *seedmanagementv1alpha1.ManagedSeedSet) ([]*replica, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector: %w", err)
	}
	selected, here := client.MatchingLabelsSelector{Selector: selector}, client.InNamespace(set.Namespace)
	shoots, managedSeeds, seeds := &corev1beta1.ShootList{}, &seedmanagementv1alpha1.ManagedSeedList{}, &corev1beta1.SeedList{}
	if err := errors.Join(r.Client.List(ctx, shoots, here, selected), r.Client.List(ctx, managedSeeds, here, selected),
		r.Client.List(ctx, seeds)); err != nil {
		return nil, fmt.Errorf("listing the replicas: %w", err)
	}
	if current, err := r.shootCount(ctx, here, selected); err != nil {
		return nil, fmt.Errorf("listing the Shoots of the replicas: %w", err)
	} else if current != len(shoots.Items) {
		return nil, errOutdated
	}
	var all []*replica
	for i := range shoots.Items {
		one := &replica{shoot: &shoots.Items[i]}
		for k := range managedSeeds.Items {
			if managedSeeds.Items[k].Name == one.shoot.Name {
				one.managedSeed = &managedSeeds.Items[k]
			}
		}
		for k := range seeds.Items {
			if seeds.Items[k].Name != one.shoot.Name {
				continue
			}
			one.seedReady = isSeedReady(&seeds.Items[k])
			if one.used, err = r.isUsed(ctx, one.shoot.Name); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// shootCount returns the number of Shoots according to the API server of the garden, without the cache.
func (r *Reconciler) shootCount(ctx context.Context, options ...client.ListOption) (int, error) {
	list := kit.MetadataList(corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	err := r.Reader.List(ctx, list, options...)
	return len(list.Items), err
}

// isUsed reports whether Shoots are scheduled to a Seed, according to the API server of the garden.
func (r *Reconciler) isUsed(ctx context.Context, seed string) (bool, error) {
	shoots := &corev1beta1.ShootList{}
	if err := r.Reader.List(ctx, shoots, client.MatchingFields{core.ShootSeedName: seed}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("looking for Shoots that are scheduled to the Seed %s: %w", seed, err)
	}
	return len(shoots.Items) > 0, nil
}
