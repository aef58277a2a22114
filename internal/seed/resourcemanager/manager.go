package resourcemanager

import (
	"fmt"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component"
)

// User is who the resource manager is to its seed.
const User = "gardener.cloud:system:resource-manager"

// Config is what a resource manager is made of. REST, for the seed, is required.
type Config struct {
	REST *rest.Config
	// Clock is the real one by default.
	Clock clock.WithTicker
	Log   logr.Logger
	// Lease, if set, lets one of several resource managers of a seed work at a time.
	Lease *client.ObjectKey
}

// New makes a resource manager. It asks the seed for its API, and starts nothing.
func New(cfg Config) (*component.Manager, error) {
	mgr, err := component.New(component.Config{
		Name: "resource manager", REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log, Lease: cfg.Lease, Uncached: []client.Object{&corev1.Secret{}},
		AddToScheme: runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme),
	})
	if err != nil {
		return nil, err
	}
	if err := (&Reconciler{Clock: cfg.Clock}).AddToManager(mgr); err != nil {
		return nil, fmt.Errorf("adding the controller %s to the resource manager: %w", ControllerName, err)
	}
	return mgr, nil
}
