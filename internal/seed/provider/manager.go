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

// User is the user name of the simulator in a seed, like that of an extension of Gardener.
const User = "extensions.gardener.cloud:provider-local"

const (
	// Type is the type of extension resources that the simulator reconciles.
	Type = "local"
	// Delays of the exponential backoff after an operation has failed.
	retryBase, retryMax = time.Second, 5 * time.Minute
)

// Config configures a simulator. REST, for the seed cluster, is required.
type Config struct {
	REST *rest.Config
	// Clock defaults to the real clock.
	Clock clock.WithTicker
	Log   logr.Logger
	// Cloud contains the networks and instances. If it is nil, the simulator omits the kinds that need it.
	Cloud Cloud
	// APIServer returns the URL of the API server of a shoot by its namespace, "" if it does not run.
	APIServer func(namespace string) string

	guard *machines.Guard
}

// Cloud is the part of the cloud that the simulator needs.
type Cloud interface {
	bastionsim.Cloud
	EnsureNetwork(ctx context.Context, id string, cidr netip.Prefix) error
	DeleteNetwork(ctx context.Context, id string) error
}

var schemes = runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme)

// New creates a simulator. It discovers the API of the seed, and starts nothing.
func New(cfg Config) (*component.Manager, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	mgr, err := component.New(component.Config{
		Name: "provider simulator", REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log,
		AddToScheme: schemes,
		// Secrets are not cached, Clusters are large, and the number of machines to create depends on the existing ones.
		Uncached: []client.Object{
			&corev1.Secret{}, &corev1.Namespace{}, &extensionsv1alpha1.Cluster{}, &extensionsv1alpha1.Worker{},
			&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineSet{}, &machinev1alpha1.Machine{}, &machinev1alpha1.MachineClass{},
		},
	})
	if err != nil {
		return nil, err
	}
	cfg.guard = &machines.Guard{}
	for _, kind := range Kinds(cfg) {
		if err := (&Reconciler{Kind: kind, Clock: cfg.Clock}).AddToManager(mgr); err != nil {
			return nil, fmt.Errorf("adding the controller %s to the provider simulator: %w", kind.Name, err)
		}
	}
	if cfg.Cloud == nil {
		return mgr, nil
	}
	if err := machines.AddToManager(mgr, cfg.Cloud, cfg.Clock, cfg.guard, cfg.APIServer); err != nil {
		return nil, fmt.Errorf("adding the machine controller to the provider simulator: %w", err)
	}
	return mgr, nil
}
