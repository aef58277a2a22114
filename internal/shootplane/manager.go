package shootplane

import (
	"fmt"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// User is the name of the user as which the runner authenticates at its seed.
const User = "gardenlite:control-planes"

// Config configures a Runner. REST (for the seed), Host and Seed are required.
type Config struct {
	REST *rest.Config
	// Host is the Host of the process.
	Host *Host
	// Seed is the name of the seed. No two Runners with the same name run at the same time.
	Seed string
	// Clock is the real clock by default.
	Clock clock.WithTicker
	Log   logr.Logger
}

// Runner runs the control planes of a seed.
type Runner struct{ *component.Manager }

// New creates a Runner. Its controller starts with Run, which leaves the control planes running: the caller stops those
// of the seed, or the next Runner takes them over.
func New(cfg Config) (*Runner, error) {
	mgr, err := component.New(component.Config{
		Name: "runner of control planes", REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log,
		AddToScheme: runtime.NewSchemeBuilder(clientgoscheme.AddToScheme),
		Uncached:    []client.Object{&corev1.Secret{}},
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Label: labels.SelectorFromSet(labels.Set{spec.LabelGardenRole: spec.GardenRoleControlPlane})},
			&corev1.Service{}:    {Field: fields.OneTermEqualSelector("metadata.name", spec.ServiceName)},
		},
	})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{Client: mgr.GetClient(), Host: cfg.Host, Seed: cfg.Seed, Clock: component.ClockOf(mgr)}
	if err := r.AddToManager(mgr); err != nil {
		return nil, fmt.Errorf("adding the controller %s to the runner of control planes: %w", ControllerName, err)
	}
	return &Runner{mgr}, nil
}
