package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	schedulerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/scheduler/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// User is the user name of the scheduler in the garden.
const User = "gardener.cloud:system:scheduler"

// retryBase and retryMax are the first and the longest delay of the exponential backoff for a Shoot without an eligible
// seed, if nothing changes before.
const (
	retryBase = 100 * time.Millisecond
	retryMax  = 1000 * time.Second
)

// Config configures a scheduler. Only REST is required.
type Config struct {
	// REST is the client configuration for the garden, for User or a user with the same rights.
	REST *rest.Config
	// Clock is used for the times in the status of Shoots, and for retries; the real clock if nil.
	Clock clock.WithTicker
	Log   logr.Logger
	// LeaderElection ensures that only one of several schedulers of a garden is active at a time.
	LeaderElection bool
	// Strategy is Gardener's default, SameRegion, if empty.
	Strategy Strategy
}

// New returns a scheduler, which assigns Shoots to seeds until its context ends. New does not access the garden.
func New(cfg Config) (*component.Manager, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	cfg.Strategy = cmp.Or(cfg.Strategy, schedulerconfigv1alpha1.Default)
	if !slices.Contains(schedulerconfigv1alpha1.Strategies, cfg.Strategy) {
		return nil, fmt.Errorf("strategy %q is not known to the scheduler; configure one of %v", cfg.Strategy, schedulerconfigv1alpha1.Strategies)
	}
	var lease *client.ObjectKey
	if cfg.LeaderElection {
		lease = &client.ObjectKey{Namespace: schedulerconfigv1alpha1.SchedulerDefaultLockObjectNamespace,
			Name: schedulerconfigv1alpha1.SchedulerDefaultLockObjectName}
	}
	mgr, err := component.New(component.Config{
		Name: "scheduler", REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log, Lease: lease,
		AddToScheme:    runtime.SchemeBuilder{corev1.AddToScheme, gardencorev1beta1.AddToScheme},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return newMapper(), nil },
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{v1beta1constants.GardenNamespace: {}},
			Label:      labels.SelectorFromSet(labels.Set(regionConfigLabels)),
		}},
	})
	if err != nil {
		return nil, err
	}
	// The informers start without leader election, so that a scheduler that stands by is ready when it becomes the leader.
	for _, object := range []client.Object{
		&gardencorev1beta1.Shoot{}, &gardencorev1beta1.Seed{}, &gardencorev1beta1.CloudProfile{},
		&gardencorev1beta1.NamespacedCloudProfile{}, &gardencorev1beta1.Project{}, &corev1.ConfigMap{},
	} {
		if _, err := mgr.GetCache().GetInformer(context.Background(), object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watching %T: %w", object, err)
		}
	}
	r := &reconciler{
		client: mgr.GetClient(), recorder: mgr.GetEventRecorder("gardener-scheduler"), clock: cfg.Clock, strategy: cfg.Strategy,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax),
	}
	if err := r.addToManager(mgr); err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	return mgr, nil
}

// newMapper returns a mapper for the few types of the scheduler, which saves discovery requests to the garden.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(gv schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds { // a cache that is limited to namespaces also asks for the scope of lists
			mapper.Add(gv.WithKind(kind), scope)
			mapper.Add(gv.WithKind(kind+"List"), scope)
		}
	}
	add(gardencorev1beta1.SchemeGroupVersion, meta.RESTScopeNamespace, "Shoot", "NamespacedCloudProfile")
	add(gardencorev1beta1.SchemeGroupVersion, meta.RESTScopeRoot, "Seed", "CloudProfile", "Project")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "ConfigMap")
	return mapper
}
