package seed

import (
	"context"
	"fmt"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/registration"
)

const (
	// DefaultSync is how often the Seed is looked after without an occasion; Gardener's.
	DefaultSync = time.Hour
	// DefaultWait is the delay before it is checked again whether a Seed that is being deleted is still needed; Gardener's
	// for BackupBuckets.
	DefaultWait = 5 * time.Second
	// conflictRetry is the delay before an object is read again after a conflict.
	conflictRetry = 50 * time.Millisecond
	// namespaceRetry is the delay before it is checked again whether a Seed that is as new as newSeed has its namespace.
	namespaceRetry = 100 * time.Millisecond
	newSeed        = time.Minute
)

// Reconciler reconciles a Seed.
type Reconciler struct {
	GardenClient, SeedClient client.Client
	// GardenReader and SeedReader ask the garden and the seed themselves.
	GardenReader, SeedReader client.Reader
	Clock                    clock.WithTicker
	SeedName                 string
	Recorder                 events.EventRecorder
	// Identity is who the gardenlet is, with its version.
	Identity *corev1beta1.Gardener
	// Resources is how much room there is, if it is limited.
	Resources *gardenletconfigv1alpha1.ResourcesConfiguration
	// Version is the version of the seed's API server, which is asked by default.
	Version func(context.Context) (string, error)
	// CertificateExpiration is until when the gardenlet's certificate for the garden is valid; zero if it has none.
	CertificateExpiration func() time.Time
	// Renewed, if there is one, brings an Occasion when the certificate has changed.
	Renewed <-chan event.GenericEvent
	// Sync and Wait are DefaultSync and DefaultWait by default.
	Sync, Wait time.Duration

	gone operation.Gone
}

// Reconcile reconciles the Seed once.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, seed); err != nil {
		r.gone.Forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.gone.Is(seed) {
		return reconcile.Result{}, nil
	}
	if !r.own(seed) {
		return reconcile.Result{}, nil
	}
	after, err := r.reconcileIfPrepared(ctx, seed)
	if apierrors.IsConflict(err) { // others write conditions at any time
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil {
		return reconcile.Result{}, r.reportFailure(ctx, seed, err)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// reconcileIfPrepared waits for what the controller-manager makes for a new Seed. One that has had enough time for it,
// and waits still, says so.
func (r *Reconciler) reconcileIfPrepared(ctx context.Context, seed *corev1beta1.Seed) (time.Duration, error) {
	if seed.DeletionTimestamp != nil {
		return r.reconcileSeed(ctx, seed)
	}
	there, err := registration.HasNamespace(ctx, live{r.GardenClient, r.GardenReader}, seed.Name)
	switch {
	case err != nil:
		return 0, fmt.Errorf("looking for the namespace of Seed %s in the garden: %w", seed.Name, err)
	case there:
		return r.reconcileSeed(ctx, seed)
	case r.Clock.Since(seed.CreationTimestamp.Time) < newSeed:
		return namespaceRetry, nil
	}
	return 0, fmt.Errorf("the garden has no namespace %s for Seed %s: see whether the controller-manager runs, which makes it",
		registration.NamespaceOf(seed.Name), seed.Name)
}

// live is a client that reads the garden itself.
type live struct {
	client.Client
	reader client.Reader
}

// Get asks the garden itself.
func (l live) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return l.reader.Get(ctx, key, obj, opts...)
}

// reconcileSeed does what there is to do, and returns the delay before the next time.
func (r *Reconciler) reconcileSeed(ctx context.Context, seed *corev1beta1.Seed) (time.Duration, error) {
	version, err := r.Version(ctx)
	if err != nil {
		return 0, err
	}
	if err := r.reportStart(ctx, seed, version); err != nil {
		return 0, err
	}
	if seed.DeletionTimestamp != nil {
		return r.delete(ctx, seed)
	}
	if err := r.reconcile(ctx, seed); err != nil {
		return 0, err
	}
	return orDefault(r.Sync, DefaultSync), r.reportSuccess(ctx, seed)
}

func (r *Reconciler) reconcile(ctx context.Context, seed *corev1beta1.Seed) error {
	if err := operation.AddFinalizer(ctx, r.GardenClient, seed, corev1beta1.GardenerName); err != nil {
		return err
	}
	return r.run(ctx, seed, []step{
		{"Labeling the namespaces of the seed", r.ensureNamespaces},
		{"Deploying cluster-identity", r.ensureIdentity},
		{"Deploying BackupBucket for seed", r.ensureBackupBucket},
		{"Renewing credentials", r.renew},
	})
}

// step is a part of what is done for a Seed.
type step struct {
	name string
	do   func(context.Context, *corev1beta1.Seed) error
}

// run does the steps one by one. If they take long, the Seed's status says how far they are.
func (r *Reconciler) run(ctx context.Context, seed *corev1beta1.Seed, steps []step) error {
	for i, s := range steps {
		if err := r.reportProgress(ctx, seed, s.name, int32(100*i/len(steps))); err != nil {
			return err
		}
		if err := s.do(ctx, seed); err != nil {
			return fmt.Errorf("task %q failed: %w", s.name, err)
		}
	}
	return nil
}

func orDefault(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}
