package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sshd"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// Program is the Go function that a unit's ExecStart runs if it names a path of Config.Programs. It runs until ctx
// ends; args are the arguments of the ExecStart line, without the path. The output of the program is written to
// Journal(ctx).
type Program func(ctx context.Context, m *Machine, args []string) error

// Forward opens a connection for a client of the machine's SSH server (direct-tcpip), and limits its own time. An error
// that wraps sshd.ErrProhibited means that a rule forbids the connection.
type Forward func(ctx context.Context, host string, port uint32) (net.Conn, error)

// TagCapacity is the tag with the resources of the instance type, a resource list in JSON.
const TagCapacity = "capacity"

// Metadata is what a cloud tells a machine about itself. Unknown values are empty.
type Metadata struct {
	InstanceID, ProviderID, Network, Zone, InstanceType, Image string
	Tags                                                       map[string]string
}

// Config is the configuration of a Machine.
type Config struct {
	// Dir is the machine's folder on the host, created if it is missing (0700). The machine stores everything in it.
	Dir       string
	Hostname  string             // a DNS label or name
	Addresses []netip.Addr       // of the network interface, the primary one first
	Network   netip.Prefix       // of Addresses; if it is zero, each address is a network of its own
	UserData  []byte             // what cloud-init runs at the first boot, at most 64 KiB
	Metadata  Metadata           // what programs on the machine can query
	Programs  map[string]Program // the Go functions that units may run, by absolute path
	Clock     clock.WithTicker   // of everything on the machine; the real clock if nil
	Log       logr.Logger        // what the operator of the landscape should know; never what users do on the machine
	// Keeper is told of the files in Dir; nil if they are there only.
	Keeper fsutil.Keeper
	// Forward opens connections for SSH clients. If it is nil, forwarding is refused as administratively prohibited.
	Forward Forward
	// Listen opens a listener for a program, on a port of the machine's address. If it is nil, no program can listen.
	Listen func(port uint16) (net.Listener, error)
	// Admit is the firewall: it reports whether a client may talk to the SSH server at all. If it is nil, every client
	// may.
	Admit func(remote net.Addr) bool
}

// Machine is one simulated machine. Its methods may be called at the same time.
type Machine struct {
	cfg   Config
	fs    *vfs.FS
	key   ssh.Signer
	sshd  *sshd.Server
	units *Units
	// memory is shared by everything that the shell runs.
	memory *shell.Budget

	booted chan struct{} // closed when the first boot of this process is done
	power  chan shell.PowerAction
	up     context.Context // ends when Run returns or the machine is closed
	down   context.CancelFunc
	serves sync.WaitGroup // of ServeSSH; Add is under mu, before up has ended

	mu        sync.Mutex
	ran       bool
	bootedAt  time.Time
	cloudInit CloudInitStatus
}

// MaxMemory is how many bytes the sessions, the user data and the units of a machine may have together, in addition to
// the limit of each of them. The one that exceeds it is killed.
const MaxMemory = 256 << 20

const (
	diskDir     = "disk"
	hostKeyFile = "ssh_host_ed25519_key"
)

// New opens the machine that is in cfg.Dir, or creates a new one there. It does not boot the machine; Run does. The
// caller must close a machine that it does not run.
func New(cfg Config) (*Machine, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	cfg.Keeper = cmp.Or[fsutil.Keeper](cfg.Keeper, fsutil.Nowhere{})
	disk := filepath.Join(cfg.Dir, diskDir)
	if err := os.MkdirAll(disk, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of machine %s: %w", cfg.Hostname, err)
	}
	key, err := sshd.ReadHostKey(filepath.Join(cfg.Dir, hostKeyFile), func(name string, data []byte, mode os.FileMode) error {
		return fsutil.WriteKept(cfg.Keeper, name, data, mode)
	})
	if err != nil {
		return nil, fmt.Errorf("opening machine %s: %w", cfg.Hostname, err)
	}
	files, err := vfs.Open(vfs.Config{Dir: disk, Hostname: cfg.Hostname, Clock: cfg.Clock, Save: cfg.Keeper.Save})
	if err != nil {
		return nil, fmt.Errorf("opening the disk of machine %s: %w", cfg.Hostname, err)
	}
	m := &Machine{
		cfg: cfg, fs: files, key: key,
		memory: shell.NewBudget(MaxMemory), booted: make(chan struct{}), power: make(chan shell.PowerAction, 1),
	}
	m.up, m.down = context.WithCancel(context.Background())
	m.units = newUnits(m)
	m.sshd = sshd.New(sshd.Config{
		Host: sshHost{m}, HostKey: key, Forward: cfg.Forward, Admit: m.admit, Subsystems: []string{sftpSubsystem}, Clock: cfg.Clock, Log: cfg.Log,
	})
	return m, nil
}

// ErrDown means that the machine does not run, or has been run before.
var ErrDown = errors.New("the machine does not run")

// Run boots the machine and keeps it running until ctx ends or the machine is powered off from within. It runs the user
// data at the first boot, and then the enabled units. A Machine can be run once; create a new one to start it again.
func (m *Machine) Run(ctx context.Context) error {
	if !m.begin() {
		return fmt.Errorf("running machine %s: %w any more", m.cfg.Hostname, ErrDown)
	}
	defer m.end()
	for {
		action, err := m.runOnce(ctx)
		if err != nil || action != shell.Reboot {
			return err
		}
	}
}

// runOnce runs the machine from a boot to the corresponding shutdown.
func (m *Machine) runOnce(ctx context.Context) (action shell.PowerAction, err error) {
	m.mu.Lock()
	m.bootedAt = m.cfg.Clock.Now()
	m.mu.Unlock()
	m.units.begin(ctx)
	defer m.units.shutdown()
	defer m.sshd.DisconnectIf(func(net.Addr) bool { return true })
	if err := m.firstBoot(ctx); ctx.Err() != nil {
		return "", nil
	} else if err != nil {
		return "", err
	}
	m.units.startEnabled(ctx)
	if err := m.fs.Sync(); err != nil {
		return "", fmt.Errorf("writing the disk of machine %s: %w", m.cfg.Hostname, err)
	}
	select {
	case <-m.booted: // a reboot
	default:
		close(m.booted)
	}
	select {
	case <-ctx.Done():
		return "", nil
	case action := <-m.power:
		return action, nil
	}
}

func (m *Machine) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ok := !m.ran
	m.ran = true
	return ok
}

// end waits until the disk is not used any more, and closes it.
func (m *Machine) end() {
	m.mu.Lock()
	m.down()
	m.mu.Unlock()
	m.serves.Wait()
	if err := m.fs.Close(); err != nil {
		m.cfg.Log.Error(err, "closing the disk of a machine failed", "machine", m.cfg.Hostname)
	}
}

// Close closes a machine that has never been run. Otherwise Run closes the machine before it returns.
func (m *Machine) Close() {
	if m.begin() {
		m.end()
	}
}

// Booted returns a channel that is closed when the user data has run and the enabled units have been started.
func (m *Machine) Booted() <-chan struct{} { return m.booted }

// ServeSSH answers SSH clients on l once the machine has booted, until ctx ends or the machine is down. It closes l.
// While the machine's ssh.service is stopped, connections are closed at once.
func (m *Machine) ServeSSH(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(m.up, cancel)
	defer stop()
	m.mu.Lock()
	isUp := m.up.Err() == nil
	if isUp {
		m.serves.Add(1)
	}
	m.mu.Unlock()
	if !isUp {
		return l.Close()
	}
	defer m.serves.Done()
	select {
	case <-m.booted:
		return m.sshd.Serve(ctx, l)
	case <-ctx.Done():
		return l.Close()
	}
}

// DisconnectSSH closes the connections of the SSH clients whose address is not admitted any more.
func (m *Machine) DisconnectSSH() {
	m.sshd.DisconnectIf(func(remote net.Addr) bool { return !m.admit(remote) })
}

// admit reports whether the firewall admits a client and the SSH server runs.
func (m *Machine) admit(remote net.Addr) bool {
	return (m.cfg.Admit == nil || m.cfg.Admit(remote)) && m.units.IsActive(sshUnit)
}

// FS returns the machine's disk.
func (m *Machine) FS() *vfs.FS { return m.fs }

// Clock returns the machine's clock.
func (m *Machine) Clock() clock.WithTicker { return m.cfg.Clock }

// Log returns the log for the operator of the landscape.
func (m *Machine) Log() logr.Logger { return m.cfg.Log }

// Metadata returns what the cloud told the machine about itself.
func (m *Machine) Metadata() Metadata { return m.cfg.Metadata }

// Hostname returns the machine's name.
func (m *Machine) Hostname() string { return m.cfg.Hostname }

// Addresses returns the addresses of the machine's network interface, the primary one first.
func (m *Machine) Addresses() []netip.Addr { return slices.Clone(m.cfg.Addresses) }

// Listen opens a listener on a port of the machine's address, for a program. It is closed when the machine ends.
func (m *Machine) Listen(port uint16) (net.Listener, error) {
	if m.cfg.Listen == nil {
		return nil, fmt.Errorf("listening on port %d: the machine %s has no network", port, m.cfg.Hostname)
	}
	return m.cfg.Listen(port)
}

// HostKey returns the public key of the machine's SSH server. It stays the same for the machine's life.
func (m *Machine) HostKey() ssh.PublicKey { return m.key.PublicKey() }

// Units returns the machine's services.
func (m *Machine) Units() *Units { return m.units }
