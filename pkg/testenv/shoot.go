package testenv

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

const (
	// defaultProject is the project of the default landscape.
	defaultProject = "dev"
	// credentialsLife is how long the credentials of Shoot.Config are valid.
	credentialsLife = time.Hour
	// deleteTimeout is how long a Shoot in a landscape that runs already may take to go.
	deleteTimeout = 5 * time.Minute
)

// Shoot refers to a Shoot of a landscape, which need not exist.
type Shoot struct {
	env *Env
	key shootclient.Key
}

type shootOptions struct {
	shootclient.Spec
	dontWait bool
}

// ShootOption changes a default of CreateShoot.
type ShootOption func(*shootOptions)

// InProject creates the Shoot in a project; the default is "dev".
func InProject(project string) ShootOption { return func(o *shootOptions) { o.Project = project } }

// WithWorkers sets the number of nodes; the default is 2. With 0, the Shoot has no worker pools.
func WithWorkers(count int32) ShootOption { return func(o *shootOptions) { o.Workers = &count } }

// WithKubernetesVersion sets the version of Kubernetes, which has to be one of the CloudProfile "local".
func WithKubernetesVersion(version string) ShootOption {
	return func(o *shootOptions) { o.KubernetesVersion = version }
}

// OnSeed sets the seed that runs the Shoot. By default the scheduler chooses one.
func OnSeed(seed string) ShootOption { return func(o *shootOptions) { o.Seed = seed } }

// WithChange changes the Shoot before it is created, in fields that no other option sets: annotations that make it
// fail or take its time (docs/shoots.md), hibernation, worker pools.
func WithChange(change func(shoot *corev1beta1.Shoot)) ShootOption {
	return func(o *shootOptions) { o.Change = change }
}

// WithoutWaiting makes CreateShoot return as soon as the Shoot is created.
func WithoutWaiting() ShootOption { return func(o *shootOptions) { o.dontWait = true } }

// CreateShoot creates a Shoot like the sample and waits until it is ready. The test fails if the Shoot does not
// become ready. The Shoot is not deleted when the test ends, but goes with the landscape. In one that runs already, it is
// deleted, if it is new.
func (e *Env) CreateShoot(t testing.TB, name string, opts ...ShootOption) *Shoot {
	t.Helper()
	shoot, isNew, err := e.newShoot(t.Context(), name, opts)
	if isNew && e.landscape == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
			defer cancel()
			if err := shoot.Delete(ctx); err != nil {
				t.Errorf("deleting the shoot %s: %v", shoot.key, err)
			}
		})
	}
	if err != nil {
		t.Fatalf("creating a shoot: %v", err)
	}
	return shoot
}

// NewShoot is CreateShoot for callers without a test, or with a deadline. If the Shoot exists already and is as the
// options say, that is no error.
func (e *Env) NewShoot(ctx context.Context, name string, opts ...ShootOption) (*Shoot, error) {
	shoot, _, err := e.newShoot(ctx, name, opts)
	return shoot, err
}

func (e *Env) newShoot(ctx context.Context, name string, opts []ShootOption) (shoot *Shoot, isNew bool, err error) {
	o := shootOptions{Spec: shootclient.Spec{Key: shootclient.Key{Project: defaultProject, Name: name}}}
	for _, opt := range opts {
		opt(&o)
	}
	if _, isNew, err = e.shoots.Create(ctx, o.Spec); err != nil {
		return nil, false, err
	}
	shoot = e.Shoot(o.Project, name)
	if o.dontWait {
		return shoot, isNew, nil
	}
	return shoot, isNew, shoot.Wait(ctx)
}

// Shoot returns the Shoot with this project and name. It sends no request.
func (e *Env) Shoot(project, name string) *Shoot {
	return &Shoot{env: e, key: shootclient.Key{Project: project, Name: name}}
}

// Get reads the Shoot from the garden.
func (s *Shoot) Get(ctx context.Context) (*corev1beta1.Shoot, error) {
	return s.env.shoots.Shoot(ctx, s.key)
}

// Wait waits until the Shoot is as it is specified, also after changes of its specification. It returns an error
// when the Shoot has failed for good, or when the context ends.
func (s *Shoot) Wait(ctx context.Context) error {
	_, err := s.env.shoots.Wait(ctx, s.key, nil)
	return err
}

// Config returns a client configuration for the administrator of the Shoot's cluster, of shoots/adminkubeconfig,
// which is valid for an hour. It waits until the Shoot is ready.
func (s *Shoot) Config(ctx context.Context) (*rest.Config, error) { return s.config(ctx, false) }

// ViewerConfig is Config for a user who may only read, and no Secrets.
func (s *Shoot) ViewerConfig(ctx context.Context) (*rest.Config, error) { return s.config(ctx, true) }

func (s *Shoot) config(ctx context.Context, viewer bool) (*rest.Config, error) {
	if _, err := s.env.shoots.Wait(ctx, s.key, nil); err != nil {
		return nil, err
	}
	return s.env.shoots.ShootConfig(ctx, s.key, viewer, credentialsLife)
}

// Delete deletes the Shoot and waits until it is gone. It is no error if the Shoot does not exist.
func (s *Shoot) Delete(ctx context.Context) error {
	if err := s.env.shoots.Delete(ctx, s.key); errors.Is(err, shootclient.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return s.env.shoots.WaitGone(ctx, s.key, nil)
}
