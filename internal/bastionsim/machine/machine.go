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

// Program is what a unit's ExecStart runs when it names one of Config.Programs by its path. It runs until ctx ends;
// args are the arguments of the ExecStart line, without the path. Journal(ctx) is what its output is written to.
type Program func(ctx context.Context, m *Machine, args []string) error

// Forward opens a connection for a client of the machine's SSH server (direct-tcpip), in a time that it limits itself. An
// error that is sshd.ErrProhibited says that a rule is against it.
type Forward func(ctx context.Context, host string, port uint32) (net.Conn, error)

// Metadata is what a cloud tells a machine about itself. What it does not know is empty.
type Metadata struct {
	InstanceID, ProviderID, Zone, InstanceType, Image string
	Tags                                              map[string]string
}

// Config says what a machine is.
type Config struct {
	// Dir is the machine's folder on the host, made if it is missing (0700). Everything that it keeps is in there.
	Dir string
	// Hostname is its name, a DNS label or name.
	Hostname string
	// Addresses are those of its network interface, the primary one first.
	Addresses []netip.Addr
	// Network is the network of Addresses; if it is zero, each address stands alone.
	Network netip.Prefix
	// UserData is what cloud-init runs at the first boot, at most 64 KiB.
	UserData []byte
	// Metadata is what programs on the machine can ask.
	Metadata Metadata
	// Programs are what units may run as Go functions, by absolute path.
	Programs map[string]Program
	// Clock is the time that everything on the machine goes by; the real one if nil.
	Clock clock.WithTicker
	// Log is for what the operator of the landscape should know; never for what users do on the machine.
	Log logr.Logger
	// Forward opens connections for SSH clients. If it is nil, forwarding is refused as administratively prohibited.
	Forward Forward
	// Listen has a program listen on a port of the machine's address. If it is nil, no program can.
	Listen func(port uint16) (net.Listener, error)
	// Admit, if there is one, says whether a client at an address may talk to the SSH server at all: the firewall.
	Admit func(remote net.Addr) bool
}

// Machine is one simulated machine. Its methods may be called at the same time.
type Machine struct {
	cfg   Config
	fs    *vfs.FS
	key   ssh.Signer
	sshd  *sshd.Server
	units *Units
	// memory is what all that the shell runs has together.
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

// MaxMemory is how many bytes the sessions, the user data and the units of a machine may have together, beside what
// each of them may: the one that exceeds it is killed.
const MaxMemory = 256 << 20

const (
	diskDir     = "disk"
	hostKeyFile = "ssh_host_ed25519_key"
)

// New opens the machine that is in cfg.Dir, or makes a new one there. It does not boot it; Run does. A machine that is not
// run is to be closed.
func New(cfg Config) (*Machine, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	disk := filepath.Join(cfg.Dir, diskDir)
	if err := os.MkdirAll(disk, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of machine %s: %w", cfg.Hostname, err)
	}
	key, err := sshd.ReadHostKey(filepath.Join(cfg.Dir, hostKeyFile), fsutil.WriteFile)
	if err != nil {
		return nil, fmt.Errorf("opening machine %s: %w", cfg.Hostname, err)
	}
	files, err := vfs.Open(vfs.Config{Dir: disk, Hostname: cfg.Hostname, Clock: cfg.Clock})
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

// ErrDown is why something cannot be done: the machine does not run, or has been run before.
var ErrDown = errors.New("the machine does not run")

// Run boots the machine and keeps it running until ctx ends or the machine is powered off from within: user data at the
// first boot, then the enabled units. A Machine can be run once; make a new one to start it again.
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

// runOnce is the time from a boot to the shutdown that belongs to it.
func (m *Machine) runOnce(ctx context.Context) (action shell.PowerAction, err error) {
	m.mu.Lock()
	m.bootedAt = m.cfg.Clock.Now()
	m.mu.Unlock()
	m.units.begin(ctx)
	defer m.units.shutdown()
	defer m.sshd.Disconnect(func(net.Addr) bool { return true })
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

// end waits for what still uses the disk, and closes it.
func (m *Machine) end() {
	m.mu.Lock()
	m.down()
	m.mu.Unlock()
	m.serves.Wait()
	if err := m.fs.Close(); err != nil {
		m.cfg.Log.Error(err, "closing the disk of a machine failed", "machine", m.cfg.Hostname)
	}
}

// Close closes a machine that has never been run; one that has is closed when Run returns.
func (m *Machine) Close() {
	if m.begin() {
		m.end()
	}
}

// Booted is closed when the machine has booted: the user data has run, and the enabled units have been started.
func (m *Machine) Booted() <-chan struct{} { return m.booted }

// ServeSSH answers SSH clients on l from when the machine has booted until ctx ends or the machine is down. It closes l.
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
	m.sshd.Disconnect(func(remote net.Addr) bool { return !m.admit(remote) })
}

// admit is the firewall in front of the SSH server, and whether it runs.
func (m *Machine) admit(remote net.Addr) bool {
	return (m.cfg.Admit == nil || m.cfg.Admit(remote)) && m.units.IsActive(sshUnit)
}

// FS is the machine's disk.
func (m *Machine) FS() *vfs.FS { return m.fs }

// Clock is the machine's time.
func (m *Machine) Clock() clock.WithTicker { return m.cfg.Clock }

// Log is for what the operator of the landscape should know.
func (m *Machine) Log() logr.Logger { return m.cfg.Log }

// Metadata is what the cloud told the machine about itself.
func (m *Machine) Metadata() Metadata { return m.cfg.Metadata }

// Hostname is the machine's name.
func (m *Machine) Hostname() string { return m.cfg.Hostname }

// Addresses are those of the machine's network interface, the primary one first.
func (m *Machine) Addresses() []netip.Addr { return slices.Clone(m.cfg.Addresses) }

// Listen listens on a port of the machine's address, for a program. The listener is closed when the machine ends.
func (m *Machine) Listen(port uint16) (net.Listener, error) {
	if m.cfg.Listen == nil {
		return nil, fmt.Errorf("listening on port %d: the machine %s has no network", port, m.cfg.Hostname)
	}
	return m.cfg.Listen(port)
}

// HostKey is the public key that the machine's SSH server identifies itself with, the same for its life.
func (m *Machine) HostKey() ssh.PublicKey { return m.key.PublicKey() }

// Units are the machine's services.
func (m *Machine) Units() *Units { return m.units }
