package provider

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim"
	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/provider/machines"
)

// User is who the simulator is to a seed, as an extension of Gardener is.
const User = "extensions.gardener.cloud:provider-local"

const (
	// DefaultProvider is the type of extension resources that the simulator reconciles.
	DefaultProvider = "local"
	// DefaultRetryBase and DefaultRetryMax are the times after which an operation that failed is tried again: the first time,
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
	// Cloud is where infrastructures and machines are; nil for a simulator that looks after neither.
	Cloud Cloud
	// Lease, if set, lets one of several simulators of a seed work at a time.
	Lease *client.ObjectKey

	guard *machines.Guard
}

// Cloud is what is needed of a cloud.
type Cloud interface {
	bastionsim.Cloud
	EnsureNetwork(ctx context.Context, id string, cidr netip.Prefix) error
	DeleteNetwork(ctx context.Context, id string) error
}

// uncached is what is read from the seed itself: Secrets are not for a cache, Clusters are large, and who decides how many
// machines to make must see those that there are.
var uncached = []client.Object{
	&corev1.Secret{}, &corev1.Namespace{}, &extensionsv1alpha1.Cluster{}, &extensionsv1alpha1.Worker{},
	&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineSet{}, &machinev1alpha1.Machine{}, &machinev1alpha1.MachineClass{},
}

// schemes are the types that the simulator knows.
var schemes = runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme)

// New makes a simulator. It asks the seed for its API, and starts nothing.
func New(cfg Config) (*component.Manager, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	cfg.Provider = cmp.Or(cfg.Provider, DefaultProvider)
	mgr, err := component.New(component.Config{
		Name: "provider simulator", REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log, Lease: cfg.Lease,
		Uncached:    uncached,
		AddToScheme: schemes,
	})
	if err != nil {
		return nil, err
	}
	cfg.guard = &machines.Guard{}
	for _, kind := range Kinds(cfg) {
		r := &Reconciler{Kind: kind, Provider: cfg.Provider, Clock: cfg.Clock, RetryBase: cfg.RetryBase, RetryMax: cfg.RetryMax}
		if err := r.AddToManager(mgr); err != nil {
			return nil, fmt.Errorf("adding the controller %s to the provider simulator: %w", kind.Name, err)
		}
	}
	if cfg.Cloud == nil {
		return mgr, nil
	}
	if err := machines.AddToManager(mgr, cfg.Cloud, cfg.Clock, cfg.guard); err != nil {
		return nil, fmt.Errorf("adding the machine controller to the provider simulator: %w", err)
	}
	return mgr, nil
}
