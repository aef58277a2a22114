package shell

import (
	"context"
	"io"
	"net/netip"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Options are the options of a session. The session sees nothing else: no environment, file, user or process of the
// host.
type Options struct {
	FS   *vfs.FS // required
	User User
	// Env are NAME=value pairs. The session itself sets HOME, USER, LOGNAME, SHELL, PATH, PWD and LANG.
	Env []string
	// Dir is the initial directory. If it is empty or missing, it is the user's home or, if that is missing too, "/".
	Dir    string
	Clock  clock.WithTicker // of sleep, date and the time limit; required
	Limits Limits           // of each run
	// Budget is memory that this session shares with others. If it is nil, only the session's own limit applies.
	Budget *Budget
	System System // the machine around the session; required
}

// User is an account of the machine.
type User struct {
	Name     string
	UID, GID uint32
	Groups   []uint32 // the supplementary ones
	// Home is the home directory, "/" if it is empty, and Shell is the login shell.
	Home, Shell string
}

// Limits are the limits of a run: of a script, a command line or, in an interactive session, of each line. A zero stands
// for the default, which the comments name.
type Limits struct {
	Time   time.Duration // by the clock: ten minutes; negative is no limit
	Output int64         // bytes written to output and errors together: 16 MiB
	Memory int64         // bytes of variables, programs and buffers: 64 MiB
	Steps  int64         // statements and expansions: 20 million
}

// System is the machine as sessions see and control it. Methods that change something are only called for root.
type System interface {
	Hostname() string
	// Addresses returns the addresses of the only network interface, the primary one first.
	Addresses() []netip.Prefix
	// Booted returns the time of the last boot.
	Booted() time.Time
	// Processes returns the processes of the machine, without those of the session.
	Processes() []ProcessInfo
	// Units returns the units of the machine.
	Units() Units
	// Power turns the machine off or restarts it, soon after Power has returned.
	Power(action PowerAction) error
}

// PowerAction is an action of Power.
type PowerAction string

// The power actions.
const (
	PowerOff PowerAction = "poweroff"
	Reboot   PowerAction = "reboot"
)

// ProcessInfo is one line of ps.
type ProcessInfo struct {
	PID, PPID int
	User      string
	Started   time.Time
	Command   string
}

// Units are the units for systemctl and journalctl. Names have their suffix (".service").
type Units interface {
	// List returns all units that are loaded or have a file, sorted by name.
	List() []Unit
	// Unit returns a unit by name.
	Unit(name string) (Unit, bool)
	Start(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	Restart(ctx context.Context, name string) error
	Enable(ctx context.Context, name string) error
	Disable(ctx context.Context, name string) error
	// Mask makes a unit impossible to start, or undoes that.
	Mask(name string, mask bool) error
	DaemonReload(ctx context.Context) error
	// Journal returns the last n lines of a unit, or of all units if unit is "", oldest first. If n <= 0, it returns
	// all lines that are kept.
	Journal(unit string, n int) []JournalEntry
}

// Unit is the state of a unit.
type Unit struct {
	Name, Description string
	// Path is the path of the unit's file; "" if there is none.
	Path string
	// Load is loaded, not-found or masked; Active is active, inactive, failed, activating or deactivating; Sub is
	// running, dead, exited, failed, auto-restart; Enabled is enabled, disabled, static or masked.
	Load, Active, Sub, Enabled string
	MainPID                    int
	// Since is when Active last changed.
	Since time.Time
	// Result says why the unit failed, if it did.
	Result string
}

// JournalEntry is a line of the journal.
type JournalEntry struct {
	Time       time.Time
	Unit       string
	Identifier string
	PID        int
	Message    string
}

// TTY is the terminal of an interactive session. Its owner closes it after Interactive has returned, which ends the
// goroutine that reads it.
type TTY interface {
	io.Reader
	io.Writer
	// Size returns the current size in columns and rows.
	Size() (columns, rows int)
}
