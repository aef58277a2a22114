package backupbucket

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

const (
	// finalizer protects the credentials of a bucket, and those that were generated for it, in the garden.
	finalizer = "core.gardener.cloud/backupbucket"

	// DefaultRequeue is the delay before the next check whether an object in deletion is gone. An event of the seed
	// triggers the check earlier.
	DefaultRequeue = 5 * time.Second
	// DefaultRefresh is the age of the extension's last operation after which the next reconciliation of the bucket
	// requests another operation.
	DefaultRefresh = 12 * time.Hour
)

// Reconciler reconciles the BackupBuckets of a seed.
type Reconciler struct {
	GardenClient, SeedClient client.Client
	// GardenReader reads directly from the garden, not from a cache.
	GardenReader client.Reader
	Clock        clock.WithTicker
	SeedName     string
	Recorder     events.EventRecorder
	// Requeue and Refresh default to DefaultRequeue and DefaultRefresh.
	Requeue, Refresh time.Duration

	gone operation.DeletedObjects
}

// Reconcile reconciles one BackupBucket.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bucket := &corev1beta1.BackupBucket{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, bucket); err != nil {
		r.gone.Forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.gone.Is(bucket) {
		return reconcile.Result{}, nil
	}
	if !r.own(bucket) {
		return reconcile.Result{}, nil
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
		"Reconciliation of BackupBucket state initialized.", nil); err != nil {
		return err
	}
	credentials, err := r.credentials(ctx, bucket)
	if err != nil {
		return r.fail(ctx, bucket, &corev1beta1.LastError{Description: "Failed to get backup credentials: " + err.Error()}, err)
	}
	changed, since, err := r.copier().Copy(ctx, secretName(bucket), credentials, bucket)
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
		if err := r.fail(ctx, bucket, failure, nil); err != nil {
			return err
		}
	}
	if due || changed || r.old(extension) {
		return r.extensions().RequestOperation(ctx, bucket, extension, constants.GardenerOperationReconcile, func() {
			metav1.SetMetaDataAnnotation(&extension.ObjectMeta, constants.AnnotationBackupBucketGeneratedSecretNamespace, constants.GardenNamespace)
			extension.Spec = spec
		})
	}
	if err := r.extensions().SyncInjectionAnnotations(ctx, bucket, extension); err != nil || failure != nil || !done(extension) {
		return err // the next event of the extension resource triggers a reconciliation
	}
	if err := r.bringBack(ctx, bucket, extension); err != nil {
		return err
	}
	return r.report(ctx, bucket, corev1beta1.LastOperationStateSucceeded, "Backup Bucket has been successfully reconciled.", nil)
}

// credentials reads the bucket's credentials from the garden, and adds the finalizer to their Secret.
func (r *Reconciler) credentials(ctx context.Context, bucket *corev1beta1.BackupBucket) (client.Object, error) {
	credentials, err := r.copier().Read(ctx, bucket.Spec.CredentialsRef)
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
		SecretRef:   r.copier().Ref(secretName(bucket)),
	}
}

// old reports whether the last operation of the extension succeeded longer than Refresh ago.
func (r *Reconciler) old(extension *extensionsv1alpha1.BackupBucket) bool {
	refresh := r.Refresh
	if refresh == 0 {
		refresh = DefaultRefresh
	}
	return done(extension) && r.Clock.Since(extension.Status.LastOperation.LastUpdateTime.Time) > refresh
}

func done(extension *extensionsv1alpha1.BackupBucket) bool {
	last := extension.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}

// fail reports a failure in an event and in the status. It returns the cause, or the error of writing the status.
func (r *Reconciler) fail(ctx context.Context, bucket *corev1beta1.BackupBucket, failure *corev1beta1.LastError, cause error) error {
	reason, action := corev1beta1.EventReconcileError, corev1beta1.EventActionReconcile
	description := failure.Description
	if bucket.DeletionTimestamp != nil {
		reason, action = corev1beta1.EventDeleteError, corev1beta1.EventActionDelete
		description += " Operation will be retried."
	}
	r.Recorder.Eventf(bucket, nil, corev1.EventTypeWarning, reason, action, "%s", failure.Description)
	if err := r.report(ctx, bucket, corev1beta1.LastOperationStateError, description, failure); err != nil {
		return err
	}
	return cause
}

func (r *Reconciler) report(ctx context.Context, bucket *corev1beta1.BackupBucket, state corev1beta1.LastOperationState,
	description string, failure *corev1beta1.LastError) error {
	reporter := extensionops.Reporter[*corev1beta1.BackupBucket]{Garden: r.GardenClient, Clock: r.Clock,
		Of: func(b *corev1beta1.BackupBucket) extensionops.Status {
			return extensionops.Status{Operation: &b.Status.LastOperation, Error: &b.Status.LastError, Observed: &b.Status.ObservedGeneration}
		}}
	return reporter.Report(ctx, bucket, operation.DueOperationType(bucket, bucket.Status.LastOperation), state, description, failure)
}

func (r *Reconciler) copier() extensionops.Copier {
	return extensionops.Copier{Garden: r.GardenReader, Seed: r.SeedClient, Clock: r.Clock, Namespace: constants.GardenNamespace}
}

func (r *Reconciler) extensions() extensionops.Extensions {
	return extensionops.Extensions{Seed: r.SeedClient, Clock: r.Clock}
}

func emptyExtension(bucket *corev1beta1.BackupBucket) *extensionsv1alpha1.BackupBucket {
	return &extensionsv1alpha1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: bucket.Name}}
}

func secretName(bucket *corev1beta1.BackupBucket) string { return "bucket-" + bucket.Name }
