package testenv

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

const (
	// defaultProject is the project of the default landscape.
	defaultProject = "dev"
	// credentialsLife is how long the credentials of Shoot.Config are valid.
	credentialsLife = time.Hour
)

// Shoot is a Shoot of a landscape, which may or may not be there.
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

// InProject creates it in a project; the default is "dev".
func InProject(project string) ShootOption { return func(o *shootOptions) { o.Project = project } }

// WithWorkers says how many nodes it has; the default is 2. With 0 it has no worker pools.
func WithWorkers(count int32) ShootOption { return func(o *shootOptions) { o.Workers = &count } }

// WithKubernetesVersion says which version of Kubernetes it has, one of the CloudProfile "local".
func WithKubernetesVersion(version string) ShootOption {
	return func(o *shootOptions) { o.KubernetesVersion = version }
}

// OnSeed says which seed runs it, instead of the scheduler.
func OnSeed(seed string) ShootOption { return func(o *shootOptions) { o.Seed = seed } }

// WithChange changes the Shoot before it is created, in whatever the other options leave open: its annotations, with which
// it fails or takes its time (docs/shoots.md), whether it is hibernated, its pools.
func WithChange(change func(shoot *corev1beta1.Shoot)) ShootOption {
	return func(o *shootOptions) { o.Change = change }
}

// WithoutWaiting returns as soon as the Shoot is created.
func WithoutWaiting() ShootOption { return func(o *shootOptions) { o.dontWait = true } }

// CreateShoot creates a Shoot like the sample and waits until it is ready, or the test ends. The test fails if it does not
// become so. It goes with the landscape.
func (e *Env) CreateShoot(t testing.TB, name string, opts ...ShootOption) *Shoot {
	t.Helper()
	shoot, err := e.NewShoot(t.Context(), name, opts...)
	if err != nil {
		t.Fatalf("creating a shoot: %v", err)
	}
	return shoot
}

// NewShoot is CreateShoot for those who have no test at hand, or a deadline. A Shoot that is there already and is like it
// is all right.
func (e *Env) NewShoot(ctx context.Context, name string, opts ...ShootOption) (*Shoot, error) {
	o := shootOptions{Spec: shootclient.Spec{Key: shootclient.Key{Project: defaultProject, Name: name}}}
	for _, opt := range opts {
		opt(&o)
	}
	client, err := shootclient.New(e.config)
	if err != nil {
		return nil, err
	}
	if _, _, err := client.Create(ctx, o.Spec); err != nil {
		return nil, err
	}
	shoot := e.Shoot(o.Project, name)
	if o.dontWait {
		return shoot, nil
	}
	return shoot, shoot.Wait(ctx)
}

// Shoot is a Shoot by its project and name. Nothing is asked yet.
func (e *Env) Shoot(project, name string) *Shoot {
	return &Shoot{env: e, key: shootclient.Key{Project: project, Name: name}}
}

// Get reads the Shoot from the garden.
func (s *Shoot) Get(ctx context.Context) (*corev1beta1.Shoot, error) {
	client, err := shootclient.New(s.env.config)
	if err != nil {
		return nil, err
	}
	return client.Shoot(ctx, s.key)
}

// Wait returns when the Shoot is as it is specified, also after changes of its specification. It fails when the Shoot has
// failed for good, or with the context.
func (s *Shoot) Wait(ctx context.Context) error {
	client, err := shootclient.New(s.env.config)
	if err != nil {
		return err
	}
	_, err = client.Wait(ctx, s.key, nil)
	return err
}

// Config is a client config for the administrator of the Shoot's cluster, by shoots/adminkubeconfig: valid for an hour. It
// waits until the Shoot is ready.
func (s *Shoot) Config(ctx context.Context) (*rest.Config, error) { return s.config(ctx, false) }

// ViewerConfig is Config for one who may only read, and no secrets.
func (s *Shoot) ViewerConfig(ctx context.Context) (*rest.Config, error) { return s.config(ctx, true) }

func (s *Shoot) config(ctx context.Context, viewer bool) (*rest.Config, error) {
	client, err := shootclient.New(s.env.config)
	if err != nil {
		return nil, err
	}
	if _, err := client.Wait(ctx, s.key, nil); err != nil {
		return nil, err
	}
	data, _, err := client.Kubeconfig(ctx, s.key, viewer, credentialsLife)
	if err != nil {
		return nil, err
	}
	return clientcmd.RESTConfigFromKubeConfig(data)
}

// Delete deletes the Shoot and waits until it is gone. One that is not there is all right.
func (s *Shoot) Delete(ctx context.Context) error {
	client, err := shootclient.New(s.env.config)
	if err != nil {
		return err
	}
	if err := client.Delete(ctx, s.key); errors.Is(err, shootclient.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return client.WaitGone(ctx, s.key, nil)
}
