package extensions

import (
	"fmt"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component"
)

// User is who the simulator is to a seed, as an extension of Gardener is.
const User = "extensions.gardener.cloud:provider-local"

const (
	// DefaultProvider is the type of extension resources that the simulator looks after.
	DefaultProvider = "local"
	// DefaultRetryBase and DefaultRetryMax are after what time an operation that failed is tried again: the first time,
	// and at most, after doubling with each failure.
	DefaultRetryBase = time.Second
	DefaultRetryMax  = 5 * time.Minute
)

// Config is what a simulator is made of. REST, for the seed cluster, is required.
type Config struct {
	REST *rest.Config
	// Clock is the real one by default.
	Clock clock.WithTicker
	Log   logr.Logger
	// Provider is DefaultProvider by default.
	Provider string
	// RetryBase and RetryMax are DefaultRetryBase and DefaultRetryMax by default.
	RetryBase, RetryMax time.Duration
	// Lease, if set, lets one of several simulators of a seed work at a time.
	Lease *client.ObjectKey
}

// schemes are the types that the simulator knows.
var schemes = runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme)

// New makes a simulator. It asks the seed for its API, and starts nothing.
func New(cfg Config) (*component.Manager, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.Provider == "" {
		cfg.Provider = DefaultProvider
	}
	mgr, err := component.New(component.Config{
		Name: "provider simulator", REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log, Lease: cfg.Lease,
		Uncached:    []client.Object{&corev1.Secret{}, &corev1.Namespace{}},
		AddToScheme: schemes,
	})
	if err != nil {
		return nil, err
	}
	for _, kind := range Kinds() {
		r := &Reconciler{Kind: kind, Provider: cfg.Provider, Clock: cfg.Clock, RetryBase: cfg.RetryBase, RetryMax: cfg.RetryMax}
		if err := r.AddToManager(mgr); err != nil {
			return nil, fmt.Errorf("adding the controller %s to the provider simulator: %w", kind.Name, err)
		}
	}
	return mgr, nil
}
