package backupentry

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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// requeueExtension is the delay before the next check whether an extension is done. An event of the seed triggers the check
// earlier.
const requeueExtension = 5 * time.Second

// Reconciler reconciles the BackupEntries of a seed.
type Reconciler struct {
	controllerutils.Base
	// DeletionGracePeriod is how long an entry is kept after its deletion, none by default. It applies to entries of
	// shoots with one of DeletionGracePeriodShootPurposes or without a purpose, and to all entries if there are no such
	// purposes.
	DeletionGracePeriod              time.Duration
	DeletionGracePeriodShootPurposes []corev1beta1.ShootPurpose

	deleted operation.DeletedObjects
}

// Reconcile reconciles one BackupEntry.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	entry := &corev1beta1.BackupEntry{}
	if found, err := r.deleted.Read(ctx, r.GardenClient, request.NamespacedName, entry); !found || !r.isResponsibleFor(entry) {
		return reconcile.Result{}, err
	}
	var wait time.Duration
	var err error
	switch {
	case entry.DeletionTimestamp != nil:
		wait, err = r.delete(ctx, entry)
	case entry.Status.SeedName != nil && *entry.Status.SeedName != *entry.Spec.SeedName:
		wait, err = r.migrate(ctx, entry)
	default:
		wait, err = r.reconcile(ctx, entry)
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// reconcile reconciles an entry step by step, and returns the delay before the next step.
func (r *Reconciler) reconcile(ctx context.Context, entry *corev1beta1.BackupEntry) (time.Duration, error) {
	if err := operation.AddFinalizer(ctx, r.GardenClient, entry, corev1beta1.GardenerName); err != nil {
		return 0, err
	}
	t := operation.DueOperationType(entry, entry.Status.LastOperation)
	if err := r.start(ctx, entry, t); err != nil {
		return 0, err
	}
	bucket, since, changed, err := r.prepare(ctx, entry, t)
	if err != nil || bucket == nil {
		return 0, err
	}
	extension := emptyExtension(entry)
	if err := r.SeedClient.Get(ctx, client.ObjectKeyFromObject(extension), extension); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("reading the extension's BackupEntry %s: %w", entry.Name, err)
	}
	spec := r.desiredSpec(entry, bucket)
	due, failure := extensionops.Evaluate(extension, extensionops.Same(extension.Spec, spec), since)
	if failure != nil {
		if err := r.fail(ctx, entry, t, failure); err != nil {
			return 0, err
		}
	}
	if due || changed || waitsForState(extension) {
		return requeueExtension, r.requestOperation(ctx, entry, extension, t, spec)
	}
	if err := r.extensions().SyncInjectionAnnotations(ctx, entry, extension); err != nil || failure != nil {
		return 0, err
	}
	if last := extension.Status.LastOperation; last.State != corev1beta1.LastOperationStateSucceeded ||
		operation.RequestedOperation(extension) != "" {
		return requeueExtension, nil
	}
	return 0, r.succeed(ctx, entry, t)
}

// prepare copies the credentials of the entry's bucket into the seed. It returns no bucket if the bucket is not ready: the entry waits
// while the bucket is being reconciled, and fails otherwise. The end of the bucket's next operation triggers a reconciliation of the entry.
func (r *Reconciler) prepare(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType) (
	bucket *corev1beta1.BackupBucket, since time.Time, changed bool, err error) {
	bucket = &corev1beta1.BackupBucket{}
	failure, err := r.bucket(ctx, entry, bucket)
	if err != nil {
		return nil, since, false, err
	}
	if failure != nil {
		return nil, since, false, r.fail(ctx, entry, t, failure)
	}
	if inProgress(bucket) {
		return nil, since, false, r.report(ctx, entry, t, corev1beta1.LastOperationStateProcessing,
			fmt.Sprintf("Waiting until the BackupBucket %s has been reconciled.", bucket.Name))
	}
	ref := bucket.Spec.CredentialsRef
	if generated := bucket.Status.GeneratedSecretRef; generated != nil {
		ref = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: generated.Namespace, Name: generated.Name}
	}
	credentials, err := r.extensions().ReadCredentials(ctx, ref)
	if err != nil {
		return nil, since, false, fmt.Errorf("BackupBucket %s of BackupEntry %s: %w", bucket.Name, client.ObjectKeyFromObject(entry), err)
	}
	changed, since, err = r.extensions().CopyCredentials(ctx, secretName(entry), credentials, entry)
	return bucket, since, changed, err
}

// bucket reads the entry's bucket, and returns what is wrong with it, nil if nothing is.
func (r *Reconciler) bucket(ctx context.Context, entry *corev1beta1.BackupEntry, bucket *corev1beta1.BackupBucket) (
	*corev1beta1.LastError, error) {
	problem := func(format string, args ...any) *corev1beta1.LastError {
		return &corev1beta1.LastError{Description: fmt.Sprintf(format, args...)}
	}
	err := r.GardenClient.Get(ctx, client.ObjectKey{Name: entry.Spec.BucketName}, bucket)
	status := bucket.Status
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading BackupBucket %s of BackupEntry %s: %w", entry.Spec.BucketName, client.ObjectKeyFromObject(entry), err)
	case err != nil:
		return problem("failed getting associated BackupBucket %q: %v", entry.Spec.BucketName, err), nil
	case status.LastError != nil:
		failure := problem("error during reconciliation of associated BackupBucket: %s", status.LastError.Description)
		failure.Codes = status.LastError.Codes
		return failure, nil
	case !inProgress(bucket) && status.LastOperation.State != corev1beta1.LastOperationStateSucceeded:
		return problem("associated BackupBucket state is not Succeeded but %s", status.LastOperation.State), nil
	}
	return nil, nil
}

// inProgress reports whether a bucket is being reconciled, or is about to be.
func inProgress(bucket *corev1beta1.BackupBucket) bool {
	last := bucket.Status.LastOperation
	return last == nil || last.State == corev1beta1.LastOperationStateProcessing || last.State == corev1beta1.LastOperationStatePending ||
		bucket.Status.ObservedGeneration != bucket.Generation
}

func (r *Reconciler) desiredSpec(entry *corev1beta1.BackupEntry, bucket *corev1beta1.BackupBucket) extensionsv1alpha1.BackupEntrySpec {
	return extensionsv1alpha1.BackupEntrySpec{
		DefaultSpec:                extensionsv1alpha1.DefaultSpec{Type: bucket.Spec.Provider.Type, ProviderConfig: bucket.Spec.ProviderConfig},
		Region:                     bucket.Spec.Provider.Region,
		SecretRef:                  r.extensions().CredentialsRef(secretName(entry)),
		BucketName:                 entry.Spec.BucketName,
		BackupBucketProviderStatus: bucket.Status.ProviderStatus,
	}
}

func (r *Reconciler) extensions() extensionops.Extensions {
	return extensionops.Extensions{Base: &r.Base, Namespace: constants.GardenNamespace}
}

// noun maps the type of an operation to its name in descriptions of the status.
var noun = map[corev1beta1.LastOperationType]string{
	"Create": "Reconciliation", "Reconcile": "Reconciliation", "Restore": "Restoration", "Migrate": "Migration", "Delete": "Deletion",
}

// start reports that an operation has begun on this seed.
func (r *Reconciler) start(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType) error {
	return r.report(ctx, entry, t, corev1beta1.LastOperationStateProcessing, noun[t]+" of BackupEntry state initialized.",
		func(entry *corev1beta1.BackupEntry) {
			entry.Status.SeedName = cmp.Or(entry.Status.SeedName, entry.Spec.SeedName)
		})
}

// succeed reports that an operation has succeeded. After a migration the status names no seed.
func (r *Reconciler) succeed(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType) error {
	err := r.report(ctx, entry, t, corev1beta1.LastOperationStateSucceeded, noun[t]+" of BackupEntry succeeded.",
		func(entry *corev1beta1.BackupEntry) {
			if t == corev1beta1.LastOperationTypeMigrate {
				entry.Status.SeedName = nil
			}
		})
	if err != nil || t != corev1beta1.LastOperationTypeRestore {
		return err
	}
	return operation.Patch(ctx, r.GardenClient, entry, func(entry *corev1beta1.BackupEntry) {
		delete(entry.Annotations, constants.GardenerOperation)
	})
}

// fail reports a failure of the extension or of the bucket in an event and in the status.
func (r *Reconciler) fail(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType,
	failure *corev1beta1.LastError) error {
	return r.reporter().Fail(ctx, entry, t, failure.Description, failure)
}

func (r *Reconciler) report(ctx context.Context, entry *corev1beta1.BackupEntry, t corev1beta1.LastOperationType,
	state corev1beta1.LastOperationState, description string, also ...func(*corev1beta1.BackupEntry)) error {
	return r.reporter().Report(ctx, entry, t, state, description, also...)
}

func (r *Reconciler) reporter() extensionops.Reporter[*corev1beta1.BackupEntry] {
	return extensionops.Reporter[*corev1beta1.BackupEntry]{Base: &r.Base, Of: func(e *corev1beta1.BackupEntry) extensionops.Status {
		return extensionops.Status{Operation: &e.Status.LastOperation, Error: &e.Status.LastError, Observed: &e.Status.ObservedGeneration}
	}}
}

func emptyExtension(entry *corev1beta1.BackupEntry) *extensionsv1alpha1.BackupEntry {
	return &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: entry.Name}}
}

func secretName(entry *corev1beta1.BackupEntry) string { return "entry-" + entry.Name }
