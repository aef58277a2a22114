package backupbucket

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "backupbucket"

const (
	// finalizer protects the credentials of a bucket, and those that were generated for it, in the garden.
	finalizer = "core.gardener.cloud/backupbucket"
	// requeueDeletion is the delay before the next check whether an object in deletion is gone. An event of the seed
	// triggers the check earlier.
	requeueDeletion = time.Second
	// refreshPeriod is the age of the extension's last operation after which the next reconciliation of the bucket
	// requests another operation.
	refreshPeriod = 12 * time.Hour
)

// Reconciler reconciles the BackupBuckets of a seed.
type Reconciler struct {
	controllerutils.Base
	deleted operation.DeletedObjects
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupBucket{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.isResponsibleFor), Changed())).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.BackupEntry{},
			handler.EnqueueRequestsFromMapFunc(bucketOf), component.Deletions())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &extensionsv1alpha1.BackupBucket{},
			&handler.EnqueueRequestForObject{}, operation.OperationEndedPredicate(operation.OfExtension))).
		Complete(r)
}

// Changed returns a predicate for new and deleted objects of the garden, and for changes of their spec, of their annotations
// for the provider simulator, of their operation annotation, and of the annotation for the forced deletion of a BackupEntry.
func Changed() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, component.ChangesIf(func(old, new client.Object) bool {
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

// Reconcile reconciles one BackupBucket.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bucket := &corev1beta1.BackupBucket{}
	if found, err := r.deleted.Read(ctx, r.GardenClient, request.NamespacedName, bucket); !found || !r.isResponsibleFor(bucket) {
		return reconcile.Result{}, err
	}
	if bucket.DeletionTimestamp != nil {
		wait, err := r.delete(ctx, bucket)
		return reconcile.Result{RequeueAfter: wait}, err
	}
	return reconcile.Result{}, r.reconcile(ctx, bucket)
}

func (r *Reconciler) reconcile(ctx context.Context, bucket *corev1beta1.BackupBucket) error {
	if err := operation.AddFinalizer(ctx, r.GardenClient, bucket, corev1beta1.GardenerName); err != nil {
		return err
	}
	if err := r.report(ctx, bucket, corev1beta1.LastOperationStateProcessing,
		"Reconciliation of BackupBucket state initialized."); err != nil {
		return err
	}
	credentials, err := r.credentials(ctx, bucket)
	if err != nil {
		return r.failCredentials(ctx, bucket, err)
	}
	changed, since, err := r.extensions().CopyCredentials(ctx, secretName(bucket), credentials, bucket)
	if err != nil {
		return err
	}
	extension := emptyExtension(bucket)
	if err := r.SeedClient.Get(ctx, client.ObjectKeyFromObject(extension), extension); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the extension's BackupBucket %s: %w", bucket.Name, err)
	}
	spec := r.desiredSpec(bucket)
	due, failure := extensionops.Evaluate(extension, extensionops.Same(extension.Spec, spec), since)
	if failure != nil {
		if err := r.fail(ctx, bucket, failure); err != nil {
			return err
		}
	}
	if due || changed || r.isOutdated(extension) {
		return r.extensions().RequestOperation(ctx, bucket, extension, constants.GardenerOperationReconcile, func() {
			metav1.SetMetaDataAnnotation(&extension.ObjectMeta, constants.AnnotationBackupBucketGeneratedSecretNamespace, constants.GardenNamespace)
			extension.Spec = spec
		})
	}
	if err := r.extensions().SyncInjectionAnnotations(ctx, bucket, extension); err != nil || failure != nil || !succeeded(extension) {
		return err // the next event of the extension resource triggers a reconciliation
	}
	if err := r.copyStatus(ctx, bucket, extension); err != nil {
		return err
	}
	return r.report(ctx, bucket, corev1beta1.LastOperationStateSucceeded, "Backup Bucket has been successfully reconciled.")
}

// credentials reads the bucket's credentials from the garden, and adds the finalizer to their Secret.
func (r *Reconciler) credentials(ctx context.Context, bucket *corev1beta1.BackupBucket) (client.Object, error) {
	credentials, err := r.extensions().ReadCredentials(ctx, bucket.Spec.CredentialsRef)
	if err != nil {
		return nil, err
	}
	// A gardenlet may not change WorkloadIdentities, so they get no finalizer.
	if secret, ok := credentials.(*corev1.Secret); ok {
		return secret, operation.AddFinalizer(ctx, r.GardenClient, secret, finalizer)
	}
	return credentials, nil
}

func (r *Reconciler) desiredSpec(bucket *corev1beta1.BackupBucket) extensionsv1alpha1.BackupBucketSpec {
	return extensionsv1alpha1.BackupBucketSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: bucket.Spec.Provider.Type, ProviderConfig: bucket.Spec.ProviderConfig},
		Region:      bucket.Spec.Provider.Region,
		SecretRef:   r.extensions().CredentialsRef(secretName(bucket)),
	}
}

// isOutdated reports whether the last operation of the extension succeeded longer than refreshPeriod ago.
func (r *Reconciler) isOutdated(extension *extensionsv1alpha1.BackupBucket) bool {
	return succeeded(extension) && r.Clock.Since(extension.Status.LastOperation.LastUpdateTime.Time) > refreshPeriod
}

func succeeded(extension *extensionsv1alpha1.BackupBucket) bool {
	last := extension.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}

// fail reports a failure in an event and in the status.
func (r *Reconciler) fail(ctx context.Context, bucket *corev1beta1.BackupBucket, failure *corev1beta1.LastError) error {
	description := failure.Description
	if bucket.DeletionTimestamp != nil {
		description += " Operation will be retried."
	}
	t := operation.DueOperationType(bucket, bucket.Status.LastOperation)
	return r.reporter().Fail(ctx, bucket, t, description, failure)
}

// failCredentials reports that the bucket's credentials cannot be read, and returns the cause, or the error of the report.
func (r *Reconciler) failCredentials(ctx context.Context, bucket *corev1beta1.BackupBucket, cause error) error {
	return cmp.Or(r.fail(ctx, bucket, &corev1beta1.LastError{Description: "Failed to get backup credentials: " + cause.Error()}), cause)
}

func (r *Reconciler) report(ctx context.Context, bucket *corev1beta1.BackupBucket, state corev1beta1.LastOperationState,
	description string) error {
	t := operation.DueOperationType(bucket, bucket.Status.LastOperation)
	return r.reporter().Report(ctx, bucket, t, state, description)
}

func (r *Reconciler) reporter() extensionops.Reporter[*corev1beta1.BackupBucket] {
	return extensionops.Reporter[*corev1beta1.BackupBucket]{Base: &r.Base, Of: func(b *corev1beta1.BackupBucket) extensionops.Status {
		return extensionops.Status{Operation: &b.Status.LastOperation, Error: &b.Status.LastError, Observed: &b.Status.ObservedGeneration}
	}}
}

func (r *Reconciler) extensions() extensionops.Extensions {
	return extensionops.Extensions{Base: &r.Base, Namespace: constants.GardenNamespace}
}

func emptyExtension(bucket *corev1beta1.BackupBucket) *extensionsv1alpha1.BackupBucket {
	return &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: bucket.Name}}
}

func secretName(bucket *corev1beta1.BackupBucket) string { return "bucket-" + bucket.Name }
