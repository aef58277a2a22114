package controllermanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// seedBackupBucketsCheckName is the name of the controller, which is Gardener's.
const seedBackupBucketsCheckName = "seed-backupbuckets-check"

// DefaultSeedCheckSyncPeriod is the period of the checks of BackupBuckets and of extensions, which also happen when one of
// them changes. It is the same as in Gardener.
const DefaultSeedCheckSyncPeriod = 30 * time.Second

// SeedBackupBucketsCheck reports in the condition BackupBucketsReady of a Seed whether its BackupBuckets have errors.
type SeedBackupBucketsCheck struct {
	kit.Base
	// Threshold is how long the condition is Progressing before it is False or Unknown.
	Threshold time.Duration
}

// AddToManager adds the controller to the manager.
func (r *SeedBackupBucketsCheck) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, seedBackupBucketsCheckName)
	return component.NewControllerBuilder(mgr, seedBackupBucketsCheckName).
		Watches(&corev1beta1.BackupBucket{}, handler.EnqueueRequestsFromMapFunc(kit.SeedsOf(kit.OfBucket)),
			builder.WithPredicates(component.CreationsAndUpdatesIf(bucketChanged))).
		Complete(reconcile.AsReconciler(r.Client, r))
}

func bucketChanged(before, after *corev1beta1.BackupBucket) bool {
	b, a := before.Status.LastError, after.Status.LastError
	return (b == nil) != (a == nil) || a != nil && a.Description != b.Description
}

// Reconcile checks the BackupBuckets of one Seed.
func (r *SeedBackupBucketsCheck) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	buckets := &corev1beta1.BackupBucketList{}
	if err := r.Client.List(ctx, buckets, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the BackupBuckets of the Seed %q: %w", seed.Name, err)
	}
	of := slices.DeleteFunc(slices.Clone(buckets.Items), func(b corev1beta1.BackupBucket) bool {
		return ptr.Deref(b.Spec.SeedName, "") != seed.Name
	})
	err := conditions.WriteSeed(ctx, r.Client, r.Clock, seed, bucketsVerdict(of), r.Threshold)
	return component.RequeueAfter(DefaultSeedCheckSyncPeriod, err)
}

// bucketsVerdict returns the condition of a Seed with these buckets. The reasons are the same as in Gardener.
func bucketsVerdict(buckets []corev1beta1.BackupBucket) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.SeedBackupBucketsReady, Status: corev1beta1.ConditionTrue,
		Reason: "BackupBucketsAvailable", Message: "The backup buckets are available.",
	}
	var bad []string
	for _, bucket := range buckets {
		if bucket.Status.LastError != nil {
			bad = append(bad, bucket.Name+": "+bucket.Status.LastError.Description)
		}
	}
	switch {
	case len(bad) > 0:
		slices.Sort(bad)
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "BackupBucketsError"
		condition.Message = "Some backup buckets have errors: " + strings.Join(bad, "; ")
	case len(buckets) == 0:
		condition.Status, condition.Reason = corev1beta1.ConditionUnknown, "BackupBucketsGone"
		condition.Message = "There are no backup buckets any more."
	}
	return condition
}
