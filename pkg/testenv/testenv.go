// Package testenv gives tests a Gardener landscape of their own: a garden with the real API, in this process, with its
// data in memory, on a free port. It is to Gardener what controller-runtime's envtest is to Kubernetes.
//
//	func TestSomething(t *testing.T) {
//		env := testenv.Start(t)
//		client, err := kubernetes.NewForConfig(env.Config())
//		…
//	}
//
// A Shoot with a real API server and simulated machines is a call away:
//
//	shoot := env.CreateShoot(t, "my-shoot", testenv.WithWorkers(1))
//	config, err := shoot.Config(t.Context())
//
// A module that imports it needs no replace directives.
package testenv

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/node/process"
)

// Env is a running landscape.
type Env struct {
	landscape *landscape.Landscape
	config    *rest.Config
	shoots    *shootclient.Client
	dir       string
}

type options struct{ landscape.Config }

// Option changes a default of Start.
type Option func(*options)

// WithManifests applies the manifests of a file or directory before Start returns.
func WithManifests(path string) Option {
	return func(o *options) { o.Apply = append(o.Apply, path) }
}

// WithDatastore sets the datastore: sqlite (in a directory that is deleted), or the URL of one. By default the data
// is in memory.
func WithDatastore(datastore string) Option {
	return func(o *options) { o.Datastore = datastore }
}

// WithSeeds sets the number of seeds, each with its gardenlet: "local", "local-2" and so on. The default is 1; with
// 0 there is the garden alone, which starts in less than half the time.
func WithSeeds(count int) Option {
	return func(o *options) { o.Seeds = count }
}

// WithImage runs containers of an image as a process: program with args, followed by the arguments of the container.
// A reference without tag and digest stands for all versions of the image. Containers of other images are simulated.
func WithImage(reference, program string, args ...string) Option {
	return func(o *options) {
		o.Images = append(o.Images, process.Image{Reference: reference, Program: program, Args: args})
	}
}

// WithAllReads lets gardenlets and extensions read all Bastions, ControllerInstallations, Gardenlets, ManagedSeeds,
// Seeds and Shoots. By default they read those of their seed, as in Gardener.
func WithAllReads() Option { return func(o *options) { o.Reads = landscape.ReadsAll } }

// WithReadyTimeout sets how long the start may take; the default is two minutes.
func WithReadyTimeout(timeout time.Duration) Option {
	return func(o *options) { o.ReadyTimeout = timeout }
}

// Start starts a landscape, which is stopped when the test ends. The test fails if it does not start.
func Start(t testing.TB, opts ...Option) *Env {
	t.Helper()
	env, err := New(t.Context(), opts...)
	if err != nil {
		t.Fatalf("starting a landscape: %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stopping the landscape: %v", err)
		}
	})
	return env
}

// New is Start for callers without a test, such as TestMain. They have to call Stop.
func New(ctx context.Context, opts ...Option) (*Env, error) {
	o := options{landscape.Config{Datastore: "memory", Seeds: landscape.DefaultSeeds}}
	for _, opt := range opts {
		opt(&o)
	}
	dir, err := os.MkdirTemp("", "gardenlite-test-")
	if err != nil {
		return nil, err
	}
	o.Name, o.Dir = "test-"+strings.ToLower(dir[strings.LastIndexByte(dir, '-')+1:]), dir
	l, err := landscape.Start(ctx, o.Config)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	env := &Env{landscape: l, dir: dir}
	if env.config, err = clientcmd.BuildConfigFromFlags("", l.KubeconfigPath()); err == nil {
		env.shoots, err = shootclient.New(env.config)
	}
	if err != nil {
		_ = env.Stop()
		return nil, err
	}
	return env, nil
}

// Config returns a client configuration for the garden's administrator; the caller may change it.
func (e *Env) Config() *rest.Config { return rest.CopyConfig(e.config) }

// Kubeconfig returns the path of a kubeconfig file for the garden's administrator.
func (e *Env) Kubeconfig() string { return e.landscape.KubeconfigPath() }

// ConfigFor returns a client configuration for another user of the garden, with a certificate that is valid for an
// hour.
func (e *Env) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	admin, err := clientcmd.LoadFromFile(e.landscape.KubeconfigPath())
	if err != nil {
		return nil, err
	}
	config, err := landscape.UserKubeconfig(e.dir, admin, user, groups, time.Hour)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
}

// Seed returns a client configuration for the administrator of a seed's cluster; the caller may change it.
func (e *Env) Seed(name string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", e.landscape.SeedKubeconfigPath(name))
	if err != nil {
		return nil, fmt.Errorf("seed %q: %w", name, err)
	}
	return config, nil
}

// Stop stops the landscape and deletes its data.
func (e *Env) Stop() error {
	err := e.landscape.Stop()
	if removeErr := os.RemoveAll(e.dir); err == nil {
		err = removeErr
	}
	return err
}
