package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/public"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/cloudinit"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// Limits of a cloud.
const (
	MaxNetworks  = 1000
	MaxInstances = 5000                  // in all networks
	MaxUserData  = cloudinit.MaxUserData // bytes
	MaxBoots     = 8                     // instances that boot at a time; the others wait
	MaxID        = 128                   // bytes of the ID of a network or an instance
	MaxTags      = 64                    // of an instance
	maxTagSize   = 512                   // bytes of the key and the value of a tag
	Reserved     = 10                    // addresses at the beginning of a network; the second one is the router's
)

// SSHPort is the port of the SSH server of an instance.
const SSHPort = 22

// Errors of a cloud.
var (
	ErrInUse     = errors.New("the network is in use")                          // by instances
	ErrNotFound  = errors.New("not found")                                      // a network or an instance
	ErrExhausted = errors.New("exhausted")                                      // the addresses of a network, or the cloud
	ErrDeleting  = errors.New("it is being deleted; try again when it is gone") // the instance with this ID
	ErrClosed    = errors.New("the cloud is closed")
)

// Names in the folder of the cloud.
const (
	instanceFile = "instance.json"
	stoppedFile  = "stopped"
	machineDir   = "machine"
	jsonSuffix   = ".json"
	// Folders with this prefix are half made or half deleted; no ID begins with it.
	unfinished = "."
)

// Config is the configuration of a Cloud.
type Config struct {
	Dir      string                     // the folder of the cloud, created if it is missing (0700)
	Clock    clock.WithTicker           // of the instances; the real clock if nil
	Log      logr.Logger                // what the operator of the landscape should know
	Programs map[string]machine.Program // the Go functions that units of instances may run, by absolute path
	Public   public.Addresses           // assigns the public addresses; by default, from 127.64.0.0/10
	Keeper   fsutil.Keeper              // of the files in the folder; nil if they are in the folder only
}

// Cloud is a simulated cloud. Its methods may be called at the same time.
type Cloud struct {
	cfg    Config
	ctx    context.Context // of all instances
	cancel context.CancelFunc
	group  sync.WaitGroup // of all instances; Add is under mu, before ctx has ended
	boots  chan struct{}
	ports  atomic.Uint32
	// traffic counts the bytes that all bastions forward.
	traffic *traffic

	mu        sync.Mutex
	networks  map[string]*network
	instances map[string]*instance
	// damaged has the instances whose records cannot be read, with the reasons. They do not run.
	damaged map[string]error
}

// Open opens the cloud in a folder. Instances that ran are started again, in the background.
func Open(cfg Config) (*Cloud, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	cfg.Keeper = cmp.Or[fsutil.Keeper](cfg.Keeper, fsutil.Nowhere{})
	c := &Cloud{cfg: cfg, boots: make(chan struct{}, MaxBoots), traffic: newTraffic(cfg.Clock),
		networks: map[string]*network{}, instances: map[string]*instance{}, damaged: map[string]error{}}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("opening the cloud in %s: %w", cfg.Dir, err)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.instances {
		if i.state != Stopped {
			c.launch(i)
		}
	}
	return c, nil
}

// Close stops all instances and waits until they are down. They run again after the next Open. It returns an error if
// one is not down after closeTimeout: nothing that a user does in an instance keeps the process from ending.
func (c *Cloud) Close() error {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	down := make(chan struct{})
	go func() {
		defer close(down)
		c.group.Wait()
	}()
	select {
	case <-down:
		return nil
	case <-c.cfg.Clock.After(closeTimeout):
		return fmt.Errorf("instances of the cloud are not down after %s", closeTimeout)
	}
}

// closeTimeout is longer than machines take to end what runs in them.
const closeTimeout = 15 * time.Second

func (c *Cloud) networksDir() string          { return filepath.Join(c.cfg.Dir, "networks") }
func (c *Cloud) instancesDir() string         { return filepath.Join(c.cfg.Dir, "instances") }
func (c *Cloud) networkFile(id string) string { return filepath.Join(c.networksDir(), id+jsonSuffix) }
func (c *Cloud) instanceDir(id string) string { return filepath.Join(c.instancesDir(), id) }
func (c *Cloud) recordFile(id string) string  { return filepath.Join(c.instanceDir(id), instanceFile) }
func (c *Cloud) stoppedMark(id string) string { return filepath.Join(c.instanceDir(id), stoppedFile) }
func (c *Cloud) machineDir(id string) string  { return filepath.Join(c.instanceDir(id), machineDir) }
func (c *Cloud) unfinished(id string) string  { return filepath.Join(c.instancesDir(), unfinished+id) }

// load reads the folder, and removes what a kill left unfinished.
func (c *Cloud) load() error {
	for _, dir := range []string{c.networksDir(), c.instancesDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := c.loadNetworks(); err != nil {
		return err
	}
	return c.loadInstances()
}

func readJSON(file string, value any) error {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, value)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

// checkID returns an error if the ID of a network or an instance, which is also a file name, is invalid.
func checkID(id string) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("ID %q has not 1 to %d characters", id[:min(len(id), MaxID)], MaxID)
	}
	for i, r := range id {
		alphanumeric := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		if !alphanumeric && (i == 0 || r != '-' && r != '.') {
			return fmt.Errorf("ID %q may have a-z, 0-9, '-' and '.' only, a letter or digit first", id)
		}
	}
	return nil
}
