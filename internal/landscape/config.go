package landscape

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/garden"
	gardenadmission "github.com/gardenlite/gardenlite/internal/garden/admission"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager"
	"github.com/gardenlite/gardenlite/internal/garden/registry/core/shootkubeconfig"
	"github.com/gardenlite/gardenlite/internal/garden/registry/operations"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackmanager"
	"github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

const (
	// DefaultName is the name of a landscape that is not given one.
	DefaultName = "default"
	// DefaultPort is the port of the garden's API server.
	DefaultPort = 6443
	// DefaultBindAddress makes the landscape reachable on this machine only.
	DefaultBindAddress = "127.0.0.1"
	// DefaultSeeds is how many seeds "gardenlite up" starts.
	DefaultSeeds = 1
	// DefaultReadyTimeout is how long a start may take.
	DefaultReadyTimeout = 2 * time.Minute
	// DefaultSeedMonitorPeriod is Gardener's default of SeedMonitorPeriod.
	DefaultSeedMonitorPeriod = controllermanager.DefaultSeedMonitorPeriod
	// DefaultMaxKubeconfigExpiration is how long kubeconfigs for Shoots are valid at most; Gardener's.
	DefaultMaxKubeconfigExpiration = shootkubeconfig.DefaultMaxExpiration
)

// The default lifetimes of a Bastion, after a heartbeat and in total. They are Gardener's.
const (
	DefaultBastionTimeToLive  = operations.DefaultTimeToLive
	DefaultBastionMaxLifetime = controllermanager.DefaultBastionMaxLifetime
)

// Reads says what gardenlets and extensions may read; ReadsAll is more than in Gardener.
type Reads = server.Reads

const ReadsAll = server.ReadsAll

// Config is the configuration of a landscape.
type Config struct {
	// Name tells landscapes apart: at most 40 characters, a DNS label.
	Name string
	// Dir is the state directory, DefaultDir(Name) if empty.
	Dir string
	// BindAddress and Port are where the garden's API server listens. Port 0 takes a free one, and the same one again at
	// the next start if it is still free.
	BindAddress string
	Port        int
	// Seeds is how many seeds are started.
	Seeds int
	// Datastore is sqlite, memory or an endpoint.
	Datastore string
	// Apply are folders or files with manifests that are applied once the landscape is ready.
	Apply []string
	// Images are mapped to programs, in addition to the images that are mapped while the landscape runs.
	Images []process.Image
	// Controllers selects controllers as kube-controller-manager's flag does: "*", "name", "-name". nil selects all, an
	// empty list none.
	Controllers []string
	// Admission enables and disables admission plugins of the garden, FeatureGates sets feature gates of gardener-apiserver.
	Admission    gardenadmission.Selection
	FeatureGates map[string]bool
	// Bare starts a garden with nothing but what gardener-apiserver creates by itself: no seeds, no default landscape, and no
	// controllers unless Controllers selects some.
	Bare bool
	// ReadyTimeout is how long the start may take.
	ReadyTimeout time.Duration
	// Options are the flags that the landscape was started with, by name. run.json keeps them.
	Options map[string]string
	// Log receives the log. If it is nil, the log goes to the file gardenlite.log in the state directory.
	Log io.Writer
	// LogFormat is text or json.
	LogFormat string
	// AuditLog, if set, is the file of the audit log of the garden's API server. The audit logs of seeds are in
	// files beside it, with the suffix .seed-NAME.
	AuditLog string
	// ResourceAdmission, if set, is a file with limits of resources: a resourceAdmissionConfiguration of Gardener's
	// admission controller.
	ResourceAdmission string
	// Reads says what gardenlets and extensions may read.
	Reads Reads
	// LoopbackRegistry allows packages of stacks from registries on loopback addresses: who may install stacks reaches
	// what listens there.
	LoopbackRegistry bool
	// SeedMonitorPeriod is the age of a gardenlet's lease from which on its Seed is Unknown.
	SeedMonitorPeriod time.Duration
	// Kubeconfigs configures the kubeconfigs that the garden issues for Shoots: their maximum validity and their
	// keys.
	Kubeconfigs shootkubeconfig.Options
	// BastionTimeToLive is how long a Bastion lives after a heartbeat, BastionMaxLifetime how long it lives in
	// total.
	BastionTimeToLive, BastionMaxLifetime time.Duration
	// Verbose writes the log to standard error as well.
	Verbose bool
	// From, if set, is the file of a snapshot: the landscape, which has no data yet, begins as the one that was saved.
	From string
	// Clock is the landscape's clock; one that can be moved if nil.
	Clock clock.WithTicker
	// OnEvent is called for every step of the start, from one goroutine at a time.
	OnEvent func(control.Event)

	limits *server.Limits // those of ResourceAdmission
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// Complete fills in defaults and checks the values.
func (c *Config) Complete() error {
	c.Name = cmp.Or(c.Name, DefaultName)
	if c.Dir == "" {
		dir, err := statedir.DefaultDir(c.Name)
		if err != nil {
			return err
		}
		c.Dir = dir
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	c.Dir = dir
	c.BindAddress = cmp.Or(c.BindAddress, DefaultBindAddress)
	if c.Bare && c.Controllers == nil {
		c.Controllers = []string{}
	}
	c.ReadyTimeout = cmp.Or(c.ReadyTimeout, DefaultReadyTimeout)
	if c.OnEvent == nil {
		c.OnEvent = func(control.Event) {}
	}
	return c.validate()
}

func (c *Config) validate() error {
	var errs []error
	check := func(valid bool, format string, args ...any) {
		if !valid {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(nameForm.MatchString(c.Name),
		"--name %q: at most 40 lower case letters, digits and dashes, beginning and ending with a letter or digit", c.Name)
	// The address of the datastore's socket contains the path.
	check(!strings.ContainsAny(c.Dir, "%?#,\"\n"), "--data-dir %q: must not contain %%, ?, #, a comma, a double quote or a line break", c.Dir)
	errs = append(errs, usage.CheckPort(c.Port), usage.CheckBindAddress(c.BindAddress))
	check(c.Seeds >= 0 && c.Seeds <= 100, "--seeds %d: between 0 and 100", c.Seeds)
	check(c.ReadyTimeout >= 0, "--ready-timeout %s: must not be negative", c.ReadyTimeout)
	check(c.SeedMonitorPeriod >= 0, "--seed-monitor-period %s: must not be negative", c.SeedMonitorPeriod)
	for i := range c.Images {
		err := c.Images[i].Complete()
		check(err == nil, "--run-image: %w", err)
	}
	errs = append(errs, c.Kubeconfigs.Validate(),
		checkRange("bastion-time-to-live", c.BastionTimeToLive, operations.MinTimeToLive, operations.MaxTimeToLive),
		checkRange("bastion-max-lifetime", c.BastionMaxLifetime, controllermanager.MinMaxLifetime, controllermanager.MaxMaxLifetime),
		control.ValidateLogFormat(c.LogFormat))
	err := c.Reads.Validate()
	check(err == nil, "--seed-authorizer-reads %w", err)
	if c.ResourceAdmission != "" {
		var err error
		c.limits, err = server.ReadLimits(c.ResourceAdmission)
		check(err == nil, "--resource-admission-configuration: %w", err)
	}
	err = datastore.Config{Endpoint: c.Datastore}.Validate()
	check(err == nil, "--datastore: %w", err)
	check(c.From == "" || DatastoreKind(c.Datastore) == datastore.SQLite, "--from: the data of a snapshot is in sqlite, not in %s",
		DatastoreKind(c.Datastore))
	errs = append(errs, c.Admission.Validate())
	err = corevalidation.CheckFeatureGates(c.FeatureGates)
	check(err == nil, "--feature-gates: %w", err)
	check(!c.Bare || c.Seeds == 0, "--seeds %d: a landscape with --bare has none", c.Seeds)
	err = kubecontrollers.ValidateSelect(c.Controllers, controllerNames()...)
	check(err == nil, "--controllers: %w", err)
	for _, path := range c.Apply {
		err := garden.CheckManifests(path)
		check(err == nil, "--apply: %w", err)
	}
	if err := errors.Join(errs...); err != nil {
		return &usage.Error{Err: err}
	}
	return nil
}

// checkRange validates a duration, where 0 stands for its default. The API has no fractions of a second.
func checkRange(flag string, d, least, most time.Duration) error {
	if d == 0 || d >= least && d <= most && d%time.Second == 0 {
		return nil
	}
	return fmt.Errorf("--%s %s: whole seconds, between %s and %s", flag, d, least, most)
}

// controllerNames returns the names that --controllers can contain, except those of Kubernetes' controllers.
func controllerNames() []string {
	return append([]string{admissionController, controllerManager, schedulerName, stackmanager.Name},
		append(seedhost.ComponentNames(), controllermanager.Names()...)...)
}

// ControllerNames returns the names that Config.Controllers can contain.
func ControllerNames() []string { return slices.Concat(kubecontrollers.Names(), controllerNames()) }

// DatastoreKind returns the kind of a datastore, without the password that its endpoint can contain.
func DatastoreKind(endpoint string) string {
	kind, _, _ := strings.Cut(endpoint, "://")
	if kind == "" {
		return datastore.SQLite
	}
	return kind
}
