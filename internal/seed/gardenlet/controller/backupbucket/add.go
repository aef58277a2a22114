package backupbucket

import (
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "backupbucket"

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupBucket{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.isResponsibleFor), Changed())).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupEntry{},
			handler.EnqueueRequestsFromMapFunc(bucketOf), controllerutils.Deletions())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &extensionsv1alpha1.BackupBucket{},
			&handler.EnqueueRequestForObject{}, operation.OperationEndedPredicate(operation.OfExtension))).
		Complete(r)
}

// Changed returns a predicate for new and deleted objects of the garden, and for changes of their spec, of their annotations
// for the provider simulator, of their operation annotation, and of the annotation for the forced deletion of a BackupEntry.
func Changed() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, controllerutils.Updates(func(old, new client.Object) bool {
		before, after := old.GetAnnotations(), new.GetAnnotations()
		return !injection.Same(old, new) ||
			after[constants.GardenerOperation] != "" && before[constants.GardenerOperation] != after[constants.GardenerOperation] ||
			before[corev1beta1.BackupEntryForceDeletion] != after[corev1beta1.BackupEntryForceDeletion]
	}))
}

func (r *Reconciler) isResponsibleFor(obj client.Object) bool {
	bucket, ok := obj.(*corev1beta1.BackupBucket)
	return ok && ptr.Deref(bucket.Spec.SeedName, "") == r.SeedName
}

func bucketOf(_ context.Context, obj client.Object) []reconcile.Request {
	entry, ok := obj.(*corev1beta1.BackupEntry)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: entry.Spec.BucketName}}}
}
