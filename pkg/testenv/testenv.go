// Package testenv gives tests a Gardener landscape of their own: a garden with the real API, in this process, with its
// data in memory, on a free port. It is to Gardener what controller-runtime's envtest is to Kubernetes.
//
//	func TestSomething(t *testing.T) {
//		env := testenv.Start(t)
//		shoots := &gardencorev1beta1.ShootList{}
//		err := env.Client().List(t.Context(), shoots)
//		…
//	}
//
// A Shoot with a real API server and simulated machines is a call away:
//
//	shoot := env.CreateShoot(t, "my-shoot", testenv.WithWorkers(1))
//	config, err := shoot.Config(t.Context())
//
// With the variable USE_EXISTING_CLUSTER=true, as envtest has it, tests use the landscape that runs already.
//
// A module that imports it needs no replace directives.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/landscape"
	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// Env is a running landscape.
type Env struct {
	landscape *landscape.Landscape // nil if it is not the test's own
	dir       string
	ownsDir   bool
	context   string // in its kubeconfig
	log       string // of WithLog, or where the log was kept
	logFile   io.Closer
	config    *rest.Config
	scheme    *runtime.Scheme
	client    client.Client
	shoots    *shootclient.Client
	webhooks  envtest.WebhookInstallOptions
}

type options struct {
	landscape.Config
	crds, manifests, webhooks []string
	log                       string
	existing                  bool
	existingName              string
	// forStart are the options that a landscape has to be started with, and that a running one cannot be given.
	forStart []string
}

// Option changes a default of Start.
type Option func(*options)

// WithManifests applies the manifests of a file or directory before Start returns.
func WithManifests(path string) Option {
	return func(o *options) { o.manifests = append(o.manifests, path) }
}

// WithCRDs installs the CustomResourceDefinitions of files or directories into the garden, as envtest does, before all
// manifests are applied.
func WithCRDs(paths ...string) Option {
	return func(o *options) { o.crds = append(o.crds, paths...) }
}

// WithWebhooks installs the MutatingWebhookConfigurations and ValidatingWebhookConfigurations of files or directories
// into the garden, as envtest does, after all manifests are applied. They lead to the webhook server of the test,
// which Env.WebhookServerOptions is for.
func WithWebhooks(paths ...string) Option {
	return func(o *options) { o.webhooks = append(o.webhooks, paths...) }
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
		o.forStart = append(o.forStart, "WithImage")
	}
}

// WithAllReads lets gardenlets and extensions read all Bastions, ControllerInstallations, Gardenlets, ManagedSeeds,
// Seeds and Shoots. By default they read those of their seed, as in Gardener.
func WithAllReads() Option {
	return func(o *options) {
		o.Reads = landscape.ReadsAll
		o.forStart = append(o.forStart, "WithAllReads")
	}
}

// WithAdmissionPlugins enables and disables admission plugins of the garden: gardener-apiserver's and kube-apiserver's, by the
// names of their flags.
func WithAdmissionPlugins(enable, disable []string) Option {
	return func(o *options) {
		o.Admission.Enable, o.Admission.Disable = append(o.Admission.Enable, enable...), append(o.Admission.Disable, disable...)
		o.forStart = append(o.forStart, "WithAdmissionPlugins")
	}
}

// WithFeatureGates sets feature gates of gardener-apiserver. Landscapes that run in one process have the same.
func WithFeatureGates(gates map[string]bool) Option {
	return func(o *options) {
		o.FeatureGates = gates
		o.forStart = append(o.forStart, "WithFeatureGates")
	}
}

// WithControllers selects the controllers that run, as the flag --controllers of "gardenlite up" does: "*", "name", "-name".
// Without any, none runs.
func WithControllers(controllers ...string) Option {
	return func(o *options) {
		o.Controllers = append([]string{}, controllers...)
		o.forStart = append(o.forStart, "WithControllers")
	}
}

// WithBareGarden starts a garden with nothing but what gardener-apiserver creates by itself: no seeds, no default landscape, and
// no controllers unless WithControllers selects some.
func WithBareGarden() Option {
	return func(o *options) {
		o.Bare, o.Seeds = true, 0
		o.forStart = append(o.forStart, "WithBareGarden")
	}
}

// WithReadyTimeout sets how long the start may take; the default is two minutes.
func WithReadyTimeout(timeout time.Duration) Option {
	return func(o *options) { o.ReadyTimeout = timeout }
}

// WithLog appends the log to a file. By default the log is deleted with the landscape, unless the start or the test
// fails. A process has one log: with several landscapes, the one that was started last has it.
func WithLog(path string) Option {
	return func(o *options) { o.log = path }
}

// WithExisting uses a landscape that runs already instead of a new one, and leaves it running. Without a name it is
// the one of "gardenlite exec", or else the one that "gardenlite up" starts. USE_EXISTING_CLUSTER=true in the
// environment does so, too. WithDatastore has no effect then, and WithSeeds is how many seeds the landscape has to
// have at least. CRDs, manifests and Shoots of NewShoot stay; Shoots of CreateShoot and webhooks go with the test.
func WithExisting(name string) Option {
	return func(o *options) { o.existing, o.existingName = true, name }
}

// existingEnv is the variable of envtest for what WithExisting does.
const existingEnv = "USE_EXISTING_CLUSTER"

// Start starts a landscape, which is stopped when the test ends. The test fails if it does not start. If the test
// fails otherwise, the log is kept, and its end is printed with what Shoots wait for.
func Start(t testing.TB, opts ...Option) *Env {
	t.Helper()
	env, err := New(t.Context(), opts...)
	if err != nil {
		t.Fatalf("starting a landscape: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(env.Report())
		}
		if err := env.Stop(); err != nil {
			t.Errorf("stopping the landscape: %v", err)
		}
	})
	return env
}

// New is Start for callers without a test, such as TestMain. They have to call Stop, and before that may print the
// Report.
func New(ctx context.Context, opts ...Option) (*Env, error) {
	const unset = -1
	o := options{Config: landscape.Config{Datastore: "memory", Seeds: unset},
		existing: strings.EqualFold(os.Getenv(existingEnv), "true")}
	for _, opt := range opts {
		opt(&o)
	}
	for _, path := range o.manifests {
		if err := manifest.Check(path); err != nil {
			return nil, fmt.Errorf("WithManifests: %w", err)
		}
	}
	for option, paths := range map[string][]string{"WithCRDs": o.crds, "WithWebhooks": o.webhooks} {
		for _, path := range paths {
			if _, err := os.Stat(path); err != nil {
				return nil, fmt.Errorf("%s: %w", option, err)
			}
		}
	}
	env := &Env{log: o.log}
	use := env.start
	switch {
	case o.existing:
		use = env.connect
	case o.Seeds == unset:
		o.Seeds = landscape.DefaultSeeds
	}
	err := use(ctx, &o)
	if err == nil {
		err = env.prepare(ctx, &o)
	}
	if err != nil {
		end := env.endOfLog()
		text := strings.ReplaceAll(optionNames.Replace(err.Error()), filepath.Join(env.dir, statedir.LogFile), env.log)
		err = &startError{err, text + end}
		return nil, errors.Join(err, env.Stop())
	}
	return env, nil
}

// start starts a landscape of the test's own.
func (e *Env) start(ctx context.Context, o *options) (err error) {
	if o.log != "" {
		file, err := os.OpenFile(o.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return fmt.Errorf("WithLog: %w", err)
		}
		o.Log, e.logFile = file, file
	}
	if e.dir, err = os.MkdirTemp("", "gardenlite-test-"); err != nil {
		return err
	}
	e.ownsDir = true
	o.Name, o.Dir = "test-"+strings.ToLower(e.dir[strings.LastIndexByte(e.dir, '-')+1:]), e.dir
	e.context = landscape.ContextName(o.Name)
	e.landscape, err = landscape.Start(ctx, o.Config)
	return err
}

// connect uses a landscape that runs already.
func (e *Env) connect(ctx context.Context, o *options) error {
	if len(o.forStart) > 0 {
		return fmt.Errorf("%s: a landscape that runs already, which WithExisting or %s asks for, cannot be given that",
			o.forStart[0], existingEnv)
	}
	dir, err := os.Getenv("GARDENLITE_DATA_DIR"), error(nil)
	if dir == "" || o.existingName != "" {
		o.Name = o.existingName
		if err = o.Complete(); err != nil {
			return err
		}
		dir = o.Dir
	}
	status, err := control.WaitReady(ctx, dir)
	if errors.Is(err, statedir.ErrNotRunning) {
		return fmt.Errorf("no landscape runs in %s: start it with \"gardenlite up\"", dir)
	}
	if err != nil {
		return fmt.Errorf("the landscape in %s: %w", dir, err)
	}
	if seeds := statedir.LocalSeeds(dir); len(seeds) < o.Seeds {
		return fmt.Errorf("WithSeeds(%d): the landscape in %s has %d seeds: \"gardenlite seed add NAME\" adds one",
			o.Seeds, dir, len(seeds))
	}
	e.dir, e.context = dir, landscape.ContextName(status.Name)
	return nil
}

// prepare makes the clients, and has the garden have what the test brings along.
func (e *Env) prepare(ctx context.Context, o *options) error {
	admin, err := e.admin()
	if err == nil {
		e.config, err = clientcmd.NewDefaultClientConfig(*admin, nil).ClientConfig()
	}
	if err == nil {
		e.shoots, err = shootclient.New(e.config)
	}
	if err == nil {
		e.scheme, err = newScheme()
	}
	if err == nil {
		e.client, err = client.New(e.Config(), client.Options{Scheme: e.scheme})
	}
	if err != nil {
		return err
	}
	return e.install(ctx, o)
}

// admin returns the administrator's kubeconfig for the garden. Users may have added contexts to the file.
func (e *Env) admin() (*clientcmdapi.Config, error) {
	config, err := clientcmd.LoadFromFile(e.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.CurrentContext = e.context
	return config, nil
}

// Config returns a client configuration for the garden's administrator; the caller may change it.
func (e *Env) Config() *rest.Config { return rest.CopyConfig(e.config) }

// Client returns a client for the garden's administrator, which knows the types of Scheme.
func (e *Env) Client() client.Client { return e.client }

// Scheme returns the scheme of Client: the types of Kubernetes, of CustomResourceDefinitions and of Gardener. The test
// may add others before it uses the client.
func (e *Env) Scheme() *runtime.Scheme { return e.scheme }

// Kubeconfig returns the path of a kubeconfig file for the garden's administrator.
func (e *Env) Kubeconfig() string { return filepath.Join(e.dir, statedir.KubeconfigFile) }

// ConfigFor returns a client configuration for another user of the garden, with a certificate that is valid for an
// hour.
func (e *Env) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	admin, err := e.admin()
	if err != nil {
		return nil, err
	}
	config, err := landscape.UserKubeconfig(e.dir, statedir.GardenCluster, admin, user, groups, time.Hour)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
}

// Seed returns a client configuration for the administrator of a seed's cluster; the caller may change it.
func (e *Env) Seed(name string) (*rest.Config, error) {
	file, seeds := statedir.SeedKubeconfigPath(e.dir, name), statedir.LocalSeeds(e.dir)
	switch _, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist) && len(seeds) == 0:
		return nil, fmt.Errorf("there is no seed %q: the landscape has no seeds, see WithSeeds", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no seed %q: the landscape has %s, see WithSeeds", name, strings.Join(seeds, ", "))
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("seed %q: %w", name, err)
	}
	return config, nil
}

// Stop stops the landscape and deletes its data. Of a landscape that runs already, it only removes webhooks.
func (e *Env) Stop() error {
	errs := []error{e.removeWebhooks()}
	if e.landscape != nil {
		errs = append(errs, e.landscape.Stop())
	}
	if e.logFile != nil {
		errs = append(errs, e.logFile.Close())
	}
	if e.ownsDir {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}
