package shell

import (
	"context"
	"io"
	"net/netip"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Options is what a session sees. Nothing else reaches it: no environment, file, user or process of the host.
type Options struct {
	// FS is the machine's file system. Required.
	FS *vfs.FS
	// User is whom the session runs as. The zero value is root.
	User User
	// Env are NAME=value pairs, added to HOME, USER, LOGNAME, SHELL, PATH, PWD and LANG, which the session sets
	// itself.
	Env []string
	// Dir is where the session begins. Empty is the user's home or, where that does not exist, /.
	Dir string
	// Clock is what sleep, date and the time limit go by. Required.
	Clock clock.WithTicker
	// Limits that are zero have their defaults.
	Limits Limits
	// Budget is memory that this session shares with others. Nil is none but its own limit.
	Budget *Budget
	// System is the machine around the session. Required.
	System System
}

// User is an account of the machine.
type User struct {
	Name     string
	UID, GID uint32
	// Groups are the user's other groups.
	Groups []uint32
	// Home is the home directory, and Shell the program of a login.
	Home, Shell string
}

// Limits of a run: of a script, a command line or, in an interactive session, of each line.
type Limits struct {
	// Time is how long it may take by the clock. The default is ten minutes; negative is no limit.
	Time time.Duration
	// Output is how many bytes it may write to its output and errors together. The default is 16 MiB.
	Output int64
	// Memory is how many bytes its variables, programs and buffers may have. The default is 64 MiB.
	Memory int64
	// String is how long a variable, a word or a line may be in bytes. The default is 1 MiB.
	String int
	// Fields is how many words one expansion may give. The default is 32768.
	Fields int
	// Processes is how many subshells and jobs there may be at a time. The default is 32.
	Processes int
	// Depth is how deeply functions, subshells and expressions may nest. The default is 1000.
	Depth int
	// Script is how many bytes a script may have. The default is 1 MiB.
	Script int
	// Steps is how many statements and expansions it may execute. The default is 20 million.
	Steps int64
}

// System is the machine as sessions see and control it. Methods that change something are only called for root.
type System interface {
	Hostname() string
	// Addresses are those of the one network interface, the main one first.
	Addresses() []netip.Prefix
	// Booted is when the machine was started.
	Booted() time.Time
	// Processes are those of the machine, without the session's own.
	Processes() []ProcessInfo
	// Units is the control of units.
	Units() Units
	// Power turns the machine off or restarts it, soon after it returned.
	Power(action PowerAction) error
}

// PowerAction is what Power does.
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

// Units is what systemctl and journalctl ask. Names have their suffix (".service").
type Units interface {
	// List has all units that are loaded or have a file, sorted by name.
	List() []Unit
	// Unit is one of them.
	Unit(name string) (Unit, bool)
	Start(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	Restart(ctx context.Context, name string) error
	Enable(name string) error
	Disable(name string) error
	// Mask makes a unit impossible to start; unmask undoes it.
	Mask(name string, mask bool) error
	DaemonReload() error
	// Journal are lines of a unit, or of all if unit is "", oldest first, at most the last n (n <= 0: all that are
	// kept).
	Journal(unit string, n int) []JournalEntry
}

// Unit is the state of a unit.
type Unit struct {
	Name, Description string
	// Path is its file's, "" if it has none.
	Path string
	// Load is loaded, not-found or masked; Active is active, inactive, failed, activating or deactivating; Sub is
	// running, dead, exited, failed, auto-restart; Enabled is enabled, disabled, static or masked.
	Load, Active, Sub, Enabled string
	MainPID                    int
	// Since is when Active last changed.
	Since time.Time
	// Result says why it failed, if it did.
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

// TTY is the terminal of an interactive session. Its owner closes it after Interactive returned, which ends the
// reading.
type TTY interface {
	io.Reader
	io.Writer
	// Size is the present size in columns and rows.
	Size() (columns, rows int)
}
