package landscape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garbage"
	"github.com/gardenlite/gardenlite/internal/garden"
	"github.com/gardenlite/gardenlite/internal/garden/bootstraptoken"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/seed/seedhost"
	"github.com/gardenlite/gardenlite/internal/snapshot"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
	"github.com/gardenlite/gardenlite/internal/usage"
	"github.com/gardenlite/gardenlite/internal/version"
)

// bootstrapTokenLife is how long the bootstrap token of a gardenlet of this process is valid.
const bootstrapTokenLife = time.Hour

// Landscape is a running landscape, held by this process.
type Landscape struct {
	cfg       Config
	store     control.Store
	garden    *garden.Garden
	admission admission
	// host runs the seeds; it is set once, before the garden is started.
	host       atomic.Pointer[seedhost.Host]
	supervisor supervisor.Supervisor
	// changing is held while a seed is added or removed.
	changing sync.Mutex
	// advancing is held while the clock is advanced.
	advancing sync.Mutex

	// stop ends the landscape. done is closed when everything has ended; err is then the error with which it ended.
	stop func()
	done chan struct{}
	err  error

	// closers undo what was started. They are called in reverse order.
	closers []func() error
}

// Start locks the state directory, starts everything and returns when the landscape is ready. The context covers the
// start only. If the start fails, everything is stopped again. ErrLocked means that another process holds the
// landscape.
func Start(ctx context.Context, cfg Config) (*Landscape, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	stopping := make(chan struct{})
	l := &Landscape{cfg: cfg, done: make(chan struct{}), stop: sync.OnceFunc(func() { close(stopping) })}
	l.store.OnEvent = cfg.OnEvent
	startCtx, cancel := context.WithTimeout(ctx, cfg.ReadyTimeout)
	defer cancel()
	startCtx, cancelStart := context.WithCancelCause(startCtx)
	defer cancelStart(nil)
	go func() { // a stop during the start cancels the start
		select {
		case <-stopping:
			cancelStart(errStopped)
		case <-startCtx.Done():
		}
	}()
	// The shutdown begins as soon as the start is canceled.
	cancelShutdown := context.AfterFunc(startCtx, quirks.BeginShutdown)
	if err := l.start(startCtx); err != nil {
		if cancelShutdown() {
			quirks.BeginShutdown()
		}
		defer quirks.EndShutdown()
		l.store.Update(func(s *control.Status) { s.State = control.StateFailed })
		klog.Background().Error(err, "The landscape did not start")
		return nil, errors.Join(l.explainStart(startCtx, err), l.close())
	}
	if !cancelShutdown() { // the start was canceled just when it was ready
		defer quirks.EndShutdown()
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
		err = fmt.Errorf("not ready within %s (--ready-timeout): %w", l.cfg.ReadyTimeout, err)
		if l.cfg.Log == nil {
			err = fmt.Errorf("%w; the log has more: %s", err, l.logPath())
		}
	}
	return err
}

func (l *Landscape) start(ctx context.Context) error {
	begin := time.Now()
	garbage.TuneForStart()
	if err := statedir.Prepare(l.cfg.Dir); err != nil {
		return err
	}
	held, err := statedir.Lock(l.cfg.Dir)
	if err != nil {
		return err
	}
	l.onClose(held.Unlock)
	if err := l.restore(); err != nil {
		return err
	}
	if l.cfg.Clock == nil {
		clock, err := loadClock(l.cfg.Dir, l.cfg.Datastore)
		if err != nil {
			return err
		}
		l.cfg.Clock = clock
	}
	l.supervisor = supervisor.Supervisor{Status: &l.store, Clock: l.cfg.Clock}
	if l.cfg.Datastore != datastore.Memory {
		if err := statedir.CheckDisk(l.cfg.Dir); err != nil {
			return err
		}
	}
	logs, err := control.StartLogging(control.LogConfig{Dir: l.cfg.Dir, Out: l.cfg.Log, Format: l.cfg.LogFormat, Verbose: l.cfg.Verbose})
	if err != nil {
		return err
	}
	l.onClose(logs.Close)
	run, previous, err := l.announce()
	if err != nil {
		return err
	}
	if err := l.startHost(); err != nil {
		return err
	}
	var seedPorts map[string]int
	if previous != nil {
		seedPorts = previous.SeedPorts
	}
	l.host.Load().BeginSeeds(ctx, l.cfg.Seeds, seedPorts)
	l.onClose(l.host.Load().StopSeeds)
	if err := l.startGarden(ctx, run); err != nil {
		return err
	}
	if err := l.startAdmission(ctx); err != nil {
		return fmt.Errorf("starting the admission controller: %w", err)
	}
	for _, start := range []func(context.Context) error{l.startControllerManager, l.startScheduler, l.startStackManager} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	if run.SeedPorts, err = l.host.Load().WaitSeeds(); err != nil {
		return err
	}
	if err := statedir.WriteRun(l.cfg.Dir, run); err != nil {
		return err
	}
	if err := l.applyDefaults(ctx); err != nil {
		return err
	}
	if err := l.startGardenlets(ctx); err != nil {
		return err
	}
	if err := l.startProxy(run, previous); err != nil {
		return err
	}
	if err := l.applyManifests(ctx); err != nil {
		return err
	}
	garbage.TuneForIdle()
	l.store.Update(func(s *control.Status) {
		s.State = control.StateReady
		s.ReadyAfter = time.Since(begin)
	})
	return nil
}

// restore ends what a restore of a snapshot has begun, or begins with the snapshot of the configuration.
func (l *Landscape) restore() error {
	if l.cfg.From == "" {
		return snapshot.Finish(l.cfg.Dir)
	}
	if _, err := os.Lstat(filepath.Join(l.cfg.Dir, statedir.DataFolder)); err == nil {
		return &usage.Error{Err: fmt.Errorf("--from: %s has a landscape already: start it without --from, choose another --name, or replace it "+
			"with \"gardenlite snapshot restore\"", l.cfg.Dir)}
	}
	return snapshot.Restore(l.cfg.Dir, l.cfg.From)
}

// announce opens the control socket and writes run.json, so that other commands find this process from now on.
func (l *Landscape) announce() (run, previous *statedir.Run, err error) {
	previous, err = statedir.ReadRun(l.cfg.Dir)
	if err != nil && !errors.Is(err, statedir.ErrNotRunning) {
		klog.Background().Error(err, "Could not read what the last process left; going on without")
	}
	chosen := l.cfg.Port == 0
	if !chosen && statedir.PortInUse(l.cfg.BindAddress, l.cfg.Port) {
		return nil, nil, fmt.Errorf("another program listens on port %d of %s: choose another one with --port, or --port 0 for a free one",
			l.cfg.Port, l.cfg.BindAddress)
	}
	if err := l.checkDatastore(previous); err != nil {
		return nil, nil, err
	}
	socket, err := fsutil.ListenSocket(l.cfg.Dir, statedir.ControlSocket)
	if err != nil {
		return nil, nil, fmt.Errorf("having a way for other commands to talk to this landscape: %w", err)
	}
	l.onClose(socket.Close)
	if err := l.listenAdmission(previous); err != nil {
		return nil, nil, err
	}
	run = &statedir.Run{Name: l.cfg.Name, PID: os.Getpid(), Version: version.Version(), StartedAt: l.cfg.Clock.Now().UTC(), AdmissionPort: l.
		admission.Port(), PortChosen: chosen, Options: l.cfg.Options, Control: socket.Addr().String(), Datastore: DatastoreKind(l.cfg.Datastore)}
	if previous != nil { // a start that ends before the API servers listen does not forget their ports
		run.Port, run.SeedPorts = previous.Port, previous.SeedPorts
	}
	l.store.Update(func(s *control.Status) {
		*s = control.Status{Run: *run, Dir: l.cfg.Dir, State: control.StateStarting, Kubeconfig: l.KubeconfigPath(), Log: l.logPath()}
	})
	l.onClose(control.Serve(socket, l.status, l.stop, map[string]http.Handler{
		server.InspectPrefix: server.InspectHandler(l.inspected),
		control.SeedsPath:    control.SeedsHandler(l.addSeed, l.removeSeed),
		control.ClockPath:    control.ClockHandler(l.clockState, l.changeClock),
		control.ImagesPath: control.ImagesHandler(func() *process.Images {
			if h := l.host.Load(); h != nil {
				return h.Images()
			}
			return nil
		}),
	}))
	return run, previous, statedir.WriteRun(l.cfg.Dir, run)
}

// checkDatastore returns an error if the data of the last run is in another datastore and would be missed.
func (l *Landscape) checkDatastore(previous *statedir.Run) error {
	wanted := DatastoreKind(l.cfg.Datastore)
	if previous == nil || previous.Datastore == wanted {
		return nil
	}
	switch previous.Datastore {
	case datastore.NATS:
		return fmt.Errorf("this landscape's data is in NATS, choose another --name or start anew with \"gardenlite reset\": %w",
			datastore.ErrNATS)
	case datastore.SQLite:
		if _, err := os.Stat(filepath.Join(l.cfg.Dir, statedir.DataFolder, statedir.GardenCluster, datastore.FileName)); err != nil {
			return nil
		}
		return fmt.Errorf(
			"this landscape's data is in %s, not in %s: use the same --datastore, another --name, or start anew with \"gardenlite reset\"",
			previous.Datastore, wanted)
	}
	return nil
}

// startHost creates the host of the seeds, with the runner of containers that are processes, for all clusters. Such
// processes that an earlier gardenlite has left behind are ended.
func (l *Landscape) startHost() error {
	h, err := seedhost.New(seedhost.Config{
		Name: l.cfg.Name, Dir: l.cfg.Dir, BindAddress: l.cfg.BindAddress, Datastore: l.cfg.Datastore, AuditLog: l.cfg.AuditLog,
		Context: ContextName(l.cfg.Name), Images: l.cfg.Images, Selects: l.selects, Status: &l.store, Clock: l.cfg.Clock,
	})
	if err != nil {
		return err
	}
	l.host.Store(h)
	l.onClose(h.Close)
	return nil
}

// startGardenlets starts the components of each seed, and returns when every Seed is ready.
func (l *Landscape) startGardenlets(ctx context.Context) error {
	begin := l.cfg.Clock.Now()
	h := l.host.Load()
	l.onClose(h.StopGardenlets)
	if err := h.StartGardenlets(ctx, l.gardenOfSeeds()); err != nil {
		return err
	}
	if l.missingForSeeds() != "" {
		return nil // no Seed becomes ready
	}
	return h.WaitReady(ctx, begin)
}

// startProxy starts the proxy for gardenlets that run outside of their seeds, if the landscape has seeds and no gardenlets.
func (l *Landscape) startProxy(run, previous *statedir.Run) error {
	if len(run.SeedPorts) == 0 || l.selects(seedhost.GardenletName) {
		return nil
	}
	port := 0
	if previous != nil {
		port = previous.ProxyPort
	}
	proxy, err := l.host.Load().StartProxy(port)
	if err != nil {
		return err
	}
	l.onClose(proxy.Close)
	run.ProxyPort = proxy.Port()
	l.store.Update(func(s *control.Status) { s.Run.ProxyPort = run.ProxyPort })
	return statedir.WriteRun(l.cfg.Dir, run)
}

// missingForSeeds returns a component that --controllers leaves out and without which no Seed becomes ready, "" if there is
// none.
func (l *Landscape) missingForSeeds() string {
	for _, needed := range []string{seedhost.GardenletName, controllerManager, admissionController} {
		if !l.selects(needed) {
			return needed
		}
	}
	return ""
}

// gardenOfSeeds returns how the seeds of this process connect to its garden.
func (l *Landscape) gardenOfSeeds() seedhost.Garden {
	server, admin := l.garden.Server(), l.garden.AdminConfig()
	return seedhost.Garden{
		At:    &rest.Config{Host: server.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: server.PKI().CAPEM()}},
		Admin: admin,
		Bootstrap: func(ctx context.Context, seedName string) ([]byte, error) {
			token, err := bootstraptoken.Create(ctx, admin, seedName, bootstrapTokenLife, l.cfg.Clock)
			if err != nil {
				return nil, err
			}
			return token.Kubeconfig, nil
		},
	}
}

// run waits until the landscape is stopped or the garden ends by itself, and then shuts everything down.
func (l *Landscape) run(stopping <-chan struct{}) {
	defer close(l.done)
	select {
	case <-stopping:
	case <-l.garden.Done():
		l.err = fmt.Errorf("the garden ended by itself: %w", l.garden.Err())
		klog.Background().Error(l.err, "Stopping the landscape")
	}
	quirks.BeginShutdown()
	defer quirks.EndShutdown()
	l.store.Update(func(s *control.Status) { s.State = control.StateStopping })
	if err := l.end(); err != nil && l.err == nil {
		l.err = err
	}
}

// stopTimeout is how long the end of a landscape waits for what uses an external datastore that does not answer: each
// request may take a minute, and the clusters are stopped one after the other.
const stopTimeout = 20 * time.Second

// end closes everything and waits for it. If an external datastore does not answer, it returns an error after
// stopTimeout: what goes on then ends with the process, which loses nothing that the datastore has acknowledged.
func (l *Landscape) end() error {
	closed := make(chan error, 1)
	go func() { closed <- l.close() }()
	limit := time.NewTicker(stopTimeout)
	defer limit.Stop()
	for {
		select {
		case err := <-closed:
			return err
		case <-limit.C:
		}
		if !l.shared() {
			continue
		}
		if err := l.garden.Server().CheckDatastore(context.Background()); err != nil {
			err = fmt.Errorf("%w: the landscape ends without waiting any longer for its requests", err)
			klog.Background().Error(err, "Stopping the landscape")
			return err
		}
	}
}

func (l *Landscape) onClose(f func() error) { l.closers = append(l.closers, f) }

func (l *Landscape) close() error {
	var errs []error
	for _, f := range slices.Backward(l.closers) {
		errs = append(errs, f())
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

// Status returns the current status of the landscape.
func (l *Landscape) Status() control.Status { return l.status(false) }

// status returns the current status of the landscape. With collect, garbage is collected before memory is measured.
func (l *Landscape) status(collect bool) control.Status {
	s := l.store.Snapshot(collect)
	if h := l.host.Load(); h != nil {
		s.Processes = h.Processes().Processes()
	}
	if s.State == control.StateReady {
		if err := l.garden.Server().CheckDatastore(context.Background()); err != nil {
			showDatastore(&s, err, l.shared())
		}
	}
	return s
}

// showDatastore shows in a status that the datastore does not answer, which is that of all clusters if it is shared.
func showDatastore(s *control.Status, err error, shared bool) {
	s.State = control.StateFailed
	failed := sets.New[string]()
	for i := range s.Clusters {
		if c := &s.Clusters[i]; c.State == control.StateReady && (shared || c.Name == statedir.GardenCluster) {
			c.State, c.Message = control.StateFailed, err.Error()
			failed.Insert(c.Name, statedir.SeedPrefix+c.Name) // the names of its component
		}
	}
	for i := range s.Components {
		if c := &s.Components[i]; failed.Has(c.Name) {
			c.State, c.Message = control.StateFailed, err.Error()
		}
	}
	s.Components = append([]control.Component{{Name: control.Datastore, State: control.StateFailed,
		Message: fmt.Sprintf("%s (%s): start it again, or make room on its disk; the landscape goes on by itself", err,
			s.Datastore)}}, s.Components...)
}

// SeedKubeconfigPath returns the path of the administrator's kubeconfig for the cluster of a seed.
func (l *Landscape) SeedKubeconfigPath(name string) string {
	return statedir.SeedKubeconfigPath(l.cfg.Dir, name)
}

// KubeconfigPath returns the path of the administrator's kubeconfig for the garden.
func (l *Landscape) KubeconfigPath() string { return filepath.Join(l.cfg.Dir, statedir.KubeconfigFile) }

func (l *Landscape) logPath() string {
	if l.cfg.Log != nil {
		return ""
	}
	return filepath.Join(l.cfg.Dir, statedir.LogFile)
}

// ContextName returns the name of the garden's context in the kubeconfig of a landscape. The names of other clusters'
// contexts begin with it.
func ContextName(landscape string) string { return "gardenlite-" + landscape }

// selects reports whether --controllers selects a component.
func (l *Landscape) selects(component string) bool {
	return kubecontrollers.Selected(l.cfg.Controllers, component)
}

// shared reports whether other processes may run the same landscape on the same datastore, so that one of them has
// to lead.
func (l *Landscape) shared() bool {
	return datastore.Config{Endpoint: l.cfg.Datastore}.Shared()
}
