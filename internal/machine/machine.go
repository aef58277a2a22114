package machine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/commands"
	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/users"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
	"k8s.io/utils/clock"
)

// Config is what a machine is made from.
type Config struct {
	Hostname string
	// Addresses in CIDR notation, for ip.
	Addresses []string
	// KubeletVersion is empty where no kubelet is, as on a bastion.
	KubeletVersion string
	// UserData is run at the first boot: a script with #!, or #cloud-config.
	UserData []byte
	// User is the operating system's default user; none if it is empty.
	User string
	// Disk bounds the file system, Script what user data and units may use, Session what one command line may.
	Disk            vfs.Limits
	Script, Session shell.Limits
	Clock           clock.Clock
}

// Machine is a simulated machine. It may be used concurrently.
type Machine struct {
	cfg      Config
	fs       *vfs.FS
	commands map[string]shell.Command
	booted   time.Time
	pid      atomic.Int64

	mu      sync.Mutex
	units   map[string]*unit
	journal []string
	// seeded says that the user data has been run.
	seeded bool
}

// New makes a machine with the base image's files. Boot runs its user data.
func New(cfg Config) (*Machine, error) {
	m := prepare(cfg)
	m.fs = vfs.New(m.cfg.Disk, m.cfg.Clock.Now)
	if err := m.image(); err != nil {
		return nil, fmt.Errorf("making the file system of machine %s: %w", cfg.Hostname, err)
	}
	return m, nil
}

func prepare(cfg Config) *Machine {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	m := &Machine{cfg: cfg, booted: cfg.Clock.Now(), units: map[string]*unit{}}
	m.pid.Store(1000)
	m.commands = commands.Table(system{m})
	return m
}

// FS is the machine's file system as root sees it.
func (m *Machine) FS() vfs.View { return m.fs.As(vfs.Root) }

// Hostname of the machine.
func (m *Machine) Hostname() string { return m.cfg.Hostname }

// User finds a user of the machine.
func (m *Machine) User(name string) (users.User, bool) { return users.Lookup(m.FS(), name) }

// IO is what a session is connected to.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool
	// Env is added to the environment that the user's login gives.
	Env []string
}

// DefaultPath is where programs are.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"

// Shell opens a shell of a user, as a login does.
func (m *Machine) Shell(user string, stream IO) (*shell.Shell, error) {
	u, ok := m.User(user)
	if !ok {
		return nil, fmt.Errorf("opening a shell on machine %s: user %q does not exist", m.cfg.Hostname, user)
	}
	return m.shell(u, stream, m.cfg.Session, "bash"), nil
}

func (m *Machine) shell(u users.User, stream IO, limits shell.Limits, name string) *shell.Shell {
	env := []string{"PATH=" + DefaultPath, "HOME=" + u.Home, "USER=" + u.Name, "LOGNAME=" + u.Name, "SHELL=" + u.Shell, "LANG=C.UTF-8",
		"TERM=xterm-256color", "HOSTNAME=" + m.cfg.Hostname}
	return shell.New(shell.Config{
		FS: m.fs, Cred: users.Cred(m.FS(), u), Commands: m.commands, Env: append(env, stream.Env...), Dir: u.Home, Name: name,
		Stdin: stream.Stdin, Stdout: stream.Stdout, Stderr: stream.Stderr, Terminal: stream.Terminal, Limits: limits, Clock: m.cfg.Clock,
		NextPID: func() int { return int(m.pid.Add(1)) },
		Home: func(name string) (string, bool) {
			u, ok := m.User(name)
			return u.Home, ok
		},
	})
}

// Run runs one command line as a user.
func (m *Machine) Run(ctx context.Context, user, line string, stream IO) (status int, err error) {
	s, err := m.Shell(user, stream)
	if err != nil {
		return 1, err
	}
	return runOnce(ctx, s, line)
}

func runOnce(ctx context.Context, s *shell.Shell, src string) (int, error) {
	status, err := s.Run(ctx, src)
	if err != nil {
		return status, err
	}
	return s.Close(ctx)
}

// script runs a script as root and puts what it prints into a unit's journal.
func (m *Machine) script(ctx context.Context, unit, name, src string) error {
	log := &journalWriter{m: m, unit: unit}
	root := users.User{Name: "root", Home: "/root", Shell: "/bin/bash"}
	status, err := runOnce(ctx, m.shell(root, IO{Stdout: log, Stderr: log}, m.cfg.Script, name), src)
	log.flush()
	if err == nil && status != 0 {
		err = fmt.Errorf("exit status %d", status)
	}
	if err != nil {
		m.log(unit, fmt.Sprintf("%s: %v", name, err))
		return fmt.Errorf("running %s on machine %s: %w (see journalctl -u %s there)", name, m.cfg.Hostname, err, unit)
	}
	return nil
}

// system is the machine as its commands see it.
type system struct{ m *Machine }

func (s system) Hostname() string       { return s.m.cfg.Hostname }
func (s system) Boot() time.Time        { return s.m.booted }
func (s system) KubeletVersion() string { return s.m.cfg.KubeletVersion }
func (s system) Addresses() []string    { return s.m.cfg.Addresses }

// maxJournal is how many lines the journal keeps, maxLine how long one is in bytes.
const (
	maxJournal = 2000
	maxLine    = 1024
)

func (m *Machine) log(unit, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := fmt.Sprintf("%s %s %s: %s", m.cfg.Clock.Now().UTC().Format("Jan 02 15:04:05"), m.cfg.Hostname, strings.TrimSuffix(unit, ".service"), text[:min(len(text), maxLine)])
	if m.journal = append(m.journal, line); len(m.journal) > maxJournal {
		m.journal = append([]string(nil), m.journal[len(m.journal)-maxJournal/2:]...)
	}
}

// Journal is what a unit has logged; of all without a unit.
func (m *Machine) Journal(unit string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for _, l := range m.journal {
		if unit == "" || strings.Contains(l, " "+m.cfg.Hostname+" "+strings.TrimSuffix(unit, ".service")+": ") {
			lines = append(lines, l)
		}
	}
	return lines
}

func (s system) Journal(unit string) []string { return s.m.Journal(unit) }

type journalWriter struct {
	m    *Machine
	unit string
	mu   sync.Mutex
	part []byte
}

func (w *journalWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range p {
		if c == '\n' {
			w.m.log(w.unit, string(w.part))
			w.part = w.part[:0]
		} else if len(w.part) < maxLine {
			w.part = append(w.part, c)
		}
	}
	return len(p), nil
}

func (w *journalWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) > 0 {
		w.m.log(w.unit, string(w.part))
		w.part = nil
	}
}
