package seedhost

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/datastore/sharedfiles"
	"github.com/gardenlite/gardenlite/internal/shootplane"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// seedsLease is the Lease of the process that works on the seeds, if several ones have one datastore. It is also the name of the
// component in the status.
const seedsLease = "gardenlite-seeds"

// leaseTimes are the times of the Lease. After a process was killed, another one begins within lease + 2 * retry.
type leaseTimes struct{ lease, renew, retry time.Duration }

var seedsLeaseTimes = leaseTimes{lease: 10 * time.Second, renew: 6 * time.Second, retry: time.Second}

// standby is the message of the component in the processes that wait for the Lease.
const standby = "another process of the landscape works on its seeds"

// errNotLeading says that this process does not work on the seeds.
var errNotLeading = errors.New("another process of this landscape works on its seeds: run the command with the --data-dir of that one")

// election decides which of the processes with one datastore works on the seeds. Without a datastore that is shared, there is none.
//
// A process that cannot renew its Lease, because the datastore does not answer for example, works on. It ends its work when it finds
// that another process has the Lease, and gets it again only afterwards.
type election struct {
	status *control.Store
	retry  time.Duration
	// begin and end begin and end the work. end is also called after a begin that has failed.
	begin func(context.Context) error
	end   func() error

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}

	// interrupted says that another process has the Lease, beginning cancels a begin that goes on.
	interrupted atomic.Bool
	beginning   atomic.Pointer[context.CancelFunc]

	mu      sync.Mutex // held while the work begins or ends
	leading bool
	working bool
	stopped bool
	// lose ends the attempt to keep the Lease.
	lose context.CancelFunc
}

// newLock returns the Lease in a cluster, with administrator's access to it.
func (h *Host) newLock(cluster *rest.Config) (resourcelock.Interface, error) {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, constants.GardenNamespace, seedsLease,
		resourcelock.ResourceLockConfig{Identity: holder(h.cfg.Dir)}, rest.CopyConfig(cluster), seedsLeaseTimes.renew)
	if err != nil {
		return nil, fmt.Errorf("preparing the election of the process that works on the seeds: %w", err)
	}
	return lock, nil
}

// startElection begins to wait for the Lease.
func startElection(lock resourcelock.Interface, times leaseTimes, status *control.Store, begin func(context.Context) error,
	end func() error) (*election, error) {
	e := &election{status: status, retry: times.retry, begin: begin, end: end, ended: make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &observedLock{lock, e.otherLeads}, Name: seedsLease, ReleaseOnCancel: true,
		LeaseDuration: times.lease, RenewDeadline: times.renew, RetryPeriod: times.retry,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: e.lead, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, err
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(e.ended)
		for e.ctx.Err() == nil {
			ctx, cancel := context.WithCancel(e.ctx)
			e.mu.Lock()
			e.lose = cancel
			e.mu.Unlock()
			elector.Run(ctx) // until the Lease is lost
			cancel()
		}
	}()
	return e, nil
}

// holder returns the identity of a process, by its state directory. It is the same after a restart, so that the process gets its
// Lease back at once: no other one can have the directory.
func holder(dir string) string {
	hostname, _ := os.Hostname()
	return fmt.Sprintf("%s_%x", hostname, sha256.Sum256([]byte(dir)))[:len(hostname)+17]
}

// lead begins the work, unless it goes on. It tries again until the Lease is lost.
func (e *election) lead(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.interrupted.Store(false)
	e.leading = true
	for !e.working && !e.stopped && !e.interrupted.Load() && ctx.Err() == nil {
		err := e.tryToBegin(ctx)
		if err == nil {
			e.working = true
			e.status.SetComponentState(seedsLease, control.StateReady, "")
			return
		}
		klog.Background().Error(err, "Could not begin to work on the seeds", "component", seedsLease)
		e.status.SetComponentState(seedsLease, control.StateFailed, err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(e.retry):
		}
	}
}

func (e *election) tryToBegin(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.beginning.Store(&cancel)
	err := e.begin(ctx)
	if err != nil {
		err = errors.Join(err, e.end())
	}
	return err
}

// interrupt makes a begin that goes on fail, and allows no other one.
func (e *election) interrupt() {
	e.interrupted.Store(true)
	if cancel := e.beginning.Load(); cancel != nil {
		(*cancel)()
	}
}

// otherLeads ends the work, because another process has the Lease.
func (e *election) otherLeads() {
	e.interrupt()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.working {
		klog.Background().Info("Another process of the landscape works on its seeds; this one ends its work", "component", seedsLease)
		e.working = false
		if err := e.end(); err != nil {
			klog.Background().Error(err, "The work on the seeds did not end well", "component", seedsLease)
		}
	}
	if e.leading { // else a Lease that is released soon would be kept without work
		e.leading = false
		e.lose()
	}
	if !e.stopped {
		e.status.SetComponentState(seedsLease, control.StateReady, standby)
	}
}

// stop ends the work, and then gives the Lease to another process.
func (e *election) stop() (err error) {
	e.interrupt()
	e.mu.Lock()
	e.stopped = true
	if e.working {
		err = e.end()
	}
	e.working = false
	e.mu.Unlock()
	e.cancel()
	<-e.ended
	return err
}

// observedLock is a Lease that reports when another process holds it.
type observedLock struct {
	resourcelock.Interface
	otherLeads func()
}

// Get returns the state of the Lease. The election gets it before each attempt to take it.
func (l *observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.otherLeads()
	}
	return record, raw, err
}

// openFiles connects to the datastore that has what another process needs to go on: the simulated cloud, the ports and owners of
// shoots' control planes, and which seeds and gardenlets there are.
func (h *Host) openFiles(ctx context.Context) (err error) {
	shoot := path.Join(statedir.DataFolder, statedir.ShootsFolder, "*")
	h.files, err = sharedfiles.Open(ctx, sharedfiles.Config{
		Datastore: datastore.Config{Endpoint: h.cfg.Datastore, Dir: filepath.Join(h.cfg.Dir, statedir.DataFolder, "files")},
		Prefix:    h.prefix("files"), Dir: h.cfg.Dir,
		Paths: []string{statedir.CloudFolder, statedir.GardenletsFolder, statedir.SeedsFile,
			path.Join(shoot, shootplane.PortFile), path.Join(shoot, shootplane.OwnerFile)},
	})
	return err
}

// loadFiles makes the files those of the process that worked on the seeds before.
func (h *Host) loadFiles(ctx context.Context) error {
	begin := time.Now()
	moved, err := h.files.Load(ctx)
	if err == nil && moved > 0 {
		h.cfg.Status.RecordStep("machines, networks, ports and seeds moved from the state directory into the datastore", time.Since(begin))
		klog.Background().Info("The machines, networks, ports and seeds of this landscape are in its datastore now, so that another process can "+
			"take them over; earlier versions had them in the state directory", "files", moved, "directory", h.cfg.Dir)
	}
	return err
}
