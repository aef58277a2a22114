package backupentry

import (
	"cmp"
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/backupbucket"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "backupentry"

// Fields by which BackupEntries are indexed.
const (
	byBucket = "spec.bucketName"
	byName   = "metadata.name"
)

var indexes = map[string]client.IndexerFunc{
	byBucket: func(obj client.Object) []string { return []string{obj.(*corev1beta1.BackupEntry).Spec.BucketName} },
	byName:   func(obj client.Object) []string { return []string{obj.GetName()} },
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	for field, index := range indexes {
		if err := garden.GetFieldIndexer().IndexField(context.Background(), &corev1beta1.BackupEntry{}, field, index); err != nil {
			return fmt.Errorf("indexing BackupEntries by %s: %w", field, err)
		}
	}
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupEntry{},
			&handler.EnqueueRequestForObject{}, r.changed())).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupBucket{},
			handler.EnqueueRequestsFromMapFunc(r.entries(byBucket)), operation.OperationEndedPredicate(ofBucket))).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &extensionsv1alpha1.BackupEntry{},
			handler.EnqueueRequestsFromMapFunc(r.entries(byName)), operation.OperationEndedPredicate(operation.OfExtension))).
		Complete(r)
}

// changed returns a predicate for changes of entries that this gardenlet reconciles. It also passes an entry that another
// seed has just released, which changes only the status.
func (r *Reconciler) changed() predicate.Predicate {
	released := component.UpdatesIf(func(before, _ client.Object) bool { return !r.isResponsibleFor(before) })
	return predicate.And(predicate.NewPredicateFuncs(r.isResponsibleFor), predicate.Or(backupbucket.Changed(), predicate.Predicate(released)))
}

// isResponsibleFor reports whether this gardenlet has to reconcile an entry. A migrated entry is not reconciled until its
// restoration is requested, or it is deleted.
func (r *Reconciler) isResponsibleFor(obj client.Object) bool {
	entry, ok := obj.(*corev1beta1.BackupEntry)
	if !ok || responsible(entry) != r.SeedName {
		return false
	}
	migrated := entry.Status.SeedName == nil && // else that seed has not released it
		operation.Is(entry.Status.LastOperation, corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationStateSucceeded)
	return !migrated || operation.RequestedOperation(entry) == constants.GardenerOperationRestore || entry.DeletionTimestamp != nil
}

// responsible returns the seed whose gardenlet reconciles an entry: the seed in the status until that seed has released
// the entry, then the one in the spec. It is empty if the spec names no seed.
func responsible(entry *corev1beta1.BackupEntry) string {
	if entry.Spec.SeedName == nil {
		return ""
	}
	return *cmp.Or(entry.Status.SeedName, entry.Spec.SeedName)
}

func ofBucket(obj client.Object) *corev1beta1.LastOperation {
	if bucket, ok := obj.(*corev1beta1.BackupBucket); ok {
		return bucket.Status.LastOperation
	}
	return nil
}

// entries returns a map function from an object to the entries of this seed whose indexed field is the name of the
// object.
func (r *Reconciler) entries(field string) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		entries := &corev1beta1.BackupEntryList{}
		if err := r.GardenClient.List(ctx, entries, client.MatchingFields{field: obj.GetName()}); err != nil {
			logf.FromContext(ctx).Error(err, "Listing BackupEntries", field, obj.GetName())
			return nil
		}
		for i := range entries.Items {
			if r.isResponsibleFor(&entries.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&entries.Items[i])})
			}
		}
		return requests
	}
}
