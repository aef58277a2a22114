package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/authz/inspect"
	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garbage"
	"github.com/gardenlite/gardenlite/internal/garden"
	"github.com/gardenlite/gardenlite/internal/node/process"
	shootplane "github.com/gardenlite/gardenlite/internal/shoot"
	"github.com/gardenlite/gardenlite/internal/version"
)

const gardenCluster = "garden"

// Landscape is a running landscape, held by this process.
type Landscape struct {
	cfg       Config
	board     board
	garden    *garden.Garden
	admission admission
	deployer  *deployer
	shoots    *shootplane.Host
	cloud     *cloud.Cloud
	images    *process.Images
	processes *process.Runner
	// events is held while OnEvent is called: clusters start beside each other.
	events sync.Mutex

	// stop ends the landscape; done is closed when everything has ended, and err says why if it was not asked for.
	stop func()
	done chan struct{}
	err  error

	// closers are what was started, undone in reverse order.
	closers []func() error
}

// Start takes the landscape's directory, starts everything and returns when it is ready. The context covers the start
// only. If it fails, everything is stopped again. ErrLocked says that another process holds the landscape.
func Start(ctx context.Context, cfg Config) (*Landscape, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	stopping := make(chan struct{})
	l := &Landscape{cfg: cfg, done: make(chan struct{}), stop: sync.OnceFunc(func() { close(stopping) })}

	startCtx, cancel := context.WithTimeout(ctx, cfg.ReadyTimeout)
	defer cancel()
	startCtx, giveUp := context.WithCancelCause(startCtx)
	defer giveUp(nil)
	go func() { // a stop that is asked for during the start ends the start
		select {
		case <-stopping:
			giveUp(errStopped)
		case <-startCtx.Done():
		}
	}()
	// A start that is given up has begun to end.
	goesOn := context.AfterFunc(startCtx, controlplane.BeginEnding)
	if err := l.start(startCtx); err != nil {
		if goesOn() {
			controlplane.BeginEnding()
		}
		defer controlplane.EndEnding()
		l.board.update(func(s *Status) { s.State = StateFailed })
		klog.Background().Error(err, "The landscape did not start")
		return nil, errors.Join(l.explainStart(startCtx, err), l.close())
	}
	if !goesOn() { // just when it was ready
		defer controlplane.EndEnding()
	}
	go l.run(stopping)
	return l, nil
}

// errStopped says that "gardenlite down" stopped the landscape while it started.
var errStopped = errors.New("it was stopped with \"gardenlite down\" before it was ready")

func (l *Landscape) explainStart(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStopped) {
		return errStopped // the log has what was going on
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not ready within %s (--ready-timeout): %w; the log has more: %s", l.cfg.ReadyTimeout, err, l.logPath())
	}
	return err
}

func (l *Landscape) start(ctx context.Context) error {
	begin := time.Now()
	garbage.Working()
	if err := prepareDir(l.cfg.Dir); err != nil {
		return err
	}
	if err := l.takeLock(); err != nil {
		return err
	}
	if err := checkDisk(&l.cfg); err != nil {
		return err
	}
	logs, err := startLogging(&l.cfg)
	if err != nil {
		return err
	}
	l.onClose(logs.Close)
	run, previous, err := l.announce()
	if err != nil {
		return err
	}
	if err := l.startProcesses(); err != nil {
		return err
	}
	seeds := l.beginSeeds(ctx, previous)
	if err := l.startGarden(ctx, run); err != nil {
		return err
	}
	if err := l.startAdmission(ctx); err != nil {
		return fmt.Errorf("starting the admission controller: %w", err)
	}
	if err := l.startControllerManager(ctx); err != nil {
		return err
	}
	if err := l.startScheduler(ctx); err != nil {
		return err
	}
	if err := l.startStackManager(ctx); err != nil {
		return err
	}
	if err := seeds.wait(); err != nil {
		return err
	}
	run.SeedPorts = seeds.ports()
	if err := writeRun(l.cfg.Dir, run); err != nil {
		return err
	}
	if err := l.applyManifests(ctx); err != nil {
		return err
	}
	if err := l.startGardenlets(ctx, seeds); err != nil {
		return err
	}
	garbage.Resting()
	l.board.update(func(s *Status) {
		s.State = StateReady
		s.ReadyAfter = time.Since(begin)
	})
	return nil
}

// takeLock is refused while another process holds the landscape.
func (l *Landscape) takeLock() error {
	held, err := lock(l.cfg.Dir)
	if err != nil {
		return err
	}
	l.onClose(held.Unlock)
	return nil
}

// announce opens the control socket and writes run.json, so that other commands find this process from now on.
func (l *Landscape) announce() (run, previous *Run, err error) {
	previous, err = ReadRun(l.cfg.Dir)
	if err != nil && !errors.Is(err, ErrNotRunning) {
		klog.Background().Error(err, "Could not read what the last process left; going on without")
	}
	chosen := l.cfg.Port == 0
	if chosen && previous != nil {
		l.cfg.Port = freePort(l.cfg.BindAddress, previous.Port)
	}
	if !chosen && isTaken(l.cfg.BindAddress, l.cfg.Port) {
		return nil, nil, fmt.Errorf("another program listens on port %d of %s: choose another one with --port, or --port 0 for a free one",
			l.cfg.Port, l.cfg.BindAddress)
	}
	if previous != nil && previous.Datastore != "" && previous.Datastore != DatastoreKind(l.cfg.Datastore) && l.dataIsLocal(previous) {
		return nil, nil, fmt.Errorf(
			"this landscape's data is in %s, not in %s: use the same --datastore, another --name, or start anew with \"gardenlite reset\"",
			previous.Datastore, DatastoreKind(l.cfg.Datastore))
	}
	socket, err := fsutil.ListenSocket(l.cfg.Dir, controlSocket)
	if err != nil {
		return nil, nil, fmt.Errorf("having a way for other commands to talk to this landscape: %w", err)
	}
	l.onClose(socket.Close)
	if err := l.listenAdmission(previous); err != nil {
		return nil, nil, err
	}
	run = &Run{Name: l.cfg.Name, PID: os.Getpid(), Version: version.Version(), StartedAt: l.cfg.Clock.Now().UTC(), AdmissionPort: l.admission.
		port(), PortChosen: chosen, Options: l.cfg.Options, Control: socket.Addr().String(), Datastore: DatastoreKind(l.cfg.Datastore)}
	l.board.update(func(s *Status) {
		*s = Status{Run: *run, Dir: l.cfg.Dir, State: StateStarting, Kubeconfig: l.KubeconfigPath(), Log: l.logPath()}
	})
	server := startControl(socket, l.status, l.stop, inspect.Handler(l.inspector), imagesHandler(func() *process.Images { return l.images }))
	l.onClose(func() error { server.stop(); return nil })
	return run, previous, writeRun(l.cfg.Dir, run)
}

func (l *Landscape) dataIsLocal(previous *Run) bool {
	_, err := os.Stat(filepath.Join(l.cfg.Dir, dataFolder, gardenCluster, datastore.FileName))
	return err == nil && previous.Datastore == datastore.SQLite
}

func (l *Landscape) startGarden(ctx context.Context, run *Run) error {
	l.board.component(gardenCluster, StateStarting, "")
	g, err := garden.Start(ctx, garden.Config{
		PKIDir:      filepath.Join(l.cfg.Dir, pkiFolder, gardenCluster),
		DataDir:     filepath.Join(l.cfg.Dir, dataFolder, gardenCluster),
		Datastore:   l.cfg.Datastore,
		Prefix:      l.prefix(gardenCluster),
		BindAddress: l.cfg.BindAddress,
		Port:        l.cfg.Port,
		Controllers: l.cfg.Controllers,
		Prepare:     l.prepareAdmission,
		Services:    l.admission.services(),
		AuditLog:    l.cfg.AuditLog,
		Kubeconfigs: l.cfg.Kubeconfigs,
		Clock:       l.cfg.Clock,
		OnPhase:     func(name string, took time.Duration) { l.step("garden: "+name, took) },

		BastionTimeToLive: l.cfg.BastionTimeToLive,
		Region:            region, Zone: zones[0], Processes: l.processes,
	})
	if err != nil {
		return fmt.Errorf("starting the garden: %w", err)
	}
	l.garden = g
	l.onClose(func() error {
		l.board.component(gardenCluster, StateStopping, "")
		return g.Stop()
	})
	run.URL, run.Port = g.Server().URL(), g.Server().Port()
	if err := writeRun(l.cfg.Dir, run); err != nil {
		return err
	}
	kubeconfig, err := g.AdminKubeconfig(l.contextName())
	if err != nil {
		return err
	}
	if err := fsutil.WriteFile(l.KubeconfigPath(), kubeconfig, 0o600); err != nil {
		return err
	}
	l.board.component(gardenCluster, StateReady, "")
	l.board.update(func(s *Status) {
		s.Run = *run
		s.Clusters = append(s.Clusters, Cluster{Kind: "garden", Name: gardenCluster, URL: run.URL, Port: run.Port,
			KubernetesVersion: controlplane.KubernetesVersion, State: StateReady})
	})
	return nil
}

func (l *Landscape) applyManifests(ctx context.Context) error {
	begin := time.Now()
	if err := l.garden.ApplyDefaultLandscape(ctx); err != nil {
		return fmt.Errorf("creating the default landscape: %w", err)
	}
	l.step("default landscape", time.Since(begin))
	for _, path := range l.cfg.Apply {
		begin = time.Now()
		if err := l.garden.ApplyPath(ctx, path); err != nil {
			return fmt.Errorf("--apply %s: %w", path, err)
		}
		l.step("apply "+filepath.Base(path), time.Since(begin))
	}
	return nil
}

func (l *Landscape) step(name string, took time.Duration) {
	event := Event{Name: name, Done: true, Took: took}
	l.board.update(func(s *Status) { s.Phases = append(s.Phases, event) })
	l.events.Lock()
	defer l.events.Unlock()
	l.cfg.OnEvent(event)
}

// run waits until the landscape is stopped, or something it cannot do without ends by itself.
func (l *Landscape) run(stopping <-chan struct{}) {
	defer close(l.done)
	select {
	case <-stopping:
	case <-l.garden.Done():
		l.err = fmt.Errorf("the garden ended by itself: %w", l.garden.Err())
		klog.Background().Error(l.err, "Stopping the landscape")
	}
	controlplane.BeginEnding()
	defer controlplane.EndEnding()
	l.board.update(func(s *Status) { s.State = StateStopping })
	if err := l.close(); err != nil && l.err == nil {
		l.err = err
	}
}

func (l *Landscape) onClose(f func() error) { l.closers = append(l.closers, f) }

func (l *Landscape) close() error {
	var errs []error
	for len(l.closers) > 0 {
		last := len(l.closers) - 1
		errs = append(errs, l.closers[last]())
		l.closers = l.closers[:last]
	}
	return errors.Join(errs...)
}

// Stop ends the landscape and waits for it.
func (l *Landscape) Stop() error {
	l.stop()
	<-l.done
	return l.err
}

// Done is closed when the landscape has ended.
func (l *Landscape) Done() <-chan struct{} { return l.done }

// Err says why the landscape ended, if it was not stopped. Call it after Done.
func (l *Landscape) Err() error { return l.err }

// Status is the landscape's status now.
func (l *Landscape) Status() Status { return l.status(false) }

// Garden is the garden cluster.
func (l *Landscape) Garden() *garden.Garden { return l.garden }

// KubeconfigPath is the file with the administrator's kubeconfig for the garden.
func (l *Landscape) KubeconfigPath() string { return filepath.Join(l.cfg.Dir, kubeconfigFile) }

func (l *Landscape) logPath() string {
	if l.cfg.Log != nil {
		return ""
	}
	return filepath.Join(l.cfg.Dir, logFile)
}

// contextName is the name of the context for the garden in its kubeconfig; those of other clusters begin with it.
func (l *Landscape) contextName() string { return "gardenlite-" + l.cfg.Name }

// prefix keeps clusters and landscapes apart that share a datastore.
func (l *Landscape) prefix(cluster string) string {
	if !(datastore.Config{Endpoint: l.cfg.Datastore}).Shared() {
		return ""
	}
	return "/gardenlite/" + l.cfg.Name + "/" + cluster
}

// DatastoreKind is what can be said of a datastore without its password.
func DatastoreKind(endpoint string) string {
	kind, _, _ := strings.Cut(endpoint, "://")
	if kind == "" {
		return datastore.SQLite
	}
	return kind
}
