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

// User is the user name of the resource manager in its seed.
const User = "gardener.cloud:system:resource-manager"

// Config configures a resource manager. REST, for the seed, is required.
type Config struct {
	REST *rest.Config
	// Clock defaults to the real clock.
	Clock clock.WithTicker
	Log   logr.Logger
	// Lease, if set, makes only one of several resource managers of a seed active at a time.
	Lease *client.ObjectKey
}

// New creates a resource manager. It discovers the API of the seed, and starts nothing.
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
