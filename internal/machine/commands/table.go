// Package commands is what /usr/bin of a simulated machine can do: functions that see the machine's file system and what
// System tells them, and nothing else. They hold no more text than Invocation.MaxText, and end when their context ends.
package commands

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// System is what commands see of the machine beside its files.
type System interface {
	Hostname() string
	// Boot is when the machine has booted.
	Boot() time.Time
	// KubeletVersion is empty where no kubelet is.
	KubeletVersion() string
	// Addresses are the machine's own in CIDR notation.
	Addresses() []string
	// Units are those that systemctl shows.
	Units() []Unit
	// Control does start, stop, restart, enable, disable, mask, unmask, reload or daemon-reload to a unit.
	Control(verb, unit string) error
	// Journal is what units have logged; of all without a unit.
	Journal(unit string) []string
}

// Unit is a systemd unit as systemctl shows it.
type Unit struct {
	Name, Description, Load, Active, Sub string
	Enabled                              bool
	Since                                time.Time
	ExitCode                             int
}

type invocation = shell.Invocation

// Table is the commands of a machine.
func Table(system System) map[string]shell.Command {
	table := map[string]shell.Command{}
	for _, part := range []map[string]shell.Command{fileCommands(), listCommands(), textCommands(), userCommands(), systemCommands(system), processCommands(system)} {
		for name, command := range part {
			table[name] = command
		}
	}
	return table
}

// fail prints an error and says 1.
func fail(in *invocation, format string, args ...any) int {
	fmt.Fprintf(in.Stderr, in.Args[0]+": "+format+"\n", args...)
	return 1
}

// reason is what an error of the file system says without its path.
func reason(err error) error {
	var no vfs.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// flags takes leading options apart: single letters, those in withValue take one; --name=value and --name are long ones.
type flags struct {
	set    map[string]string
	args   []string
	failed string
}

func (f flags) has(names ...string) bool {
	for _, n := range names {
		if _, ok := f.set[n]; ok {
			return true
		}
	}
	return false
}

func (f flags) get(names ...string) string {
	for _, n := range names {
		if v, ok := f.set[n]; ok {
			return v
		}
	}
	return ""
}

// parse reads options. withValue lists letters and, separated by blanks, long names that take a value.
func parse(args []string, withValue string) flags {
	f := flags{set: map[string]string{}}
	takes := strings.Fields(withValue)
	valued := func(name string) bool {
		for _, t := range takes {
			if t == name {
				return true
			}
		}
		return false
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			f.args = append(f.args, args[i+1:]...)
			return f
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			if !has && valued(name) && i+1 < len(args) {
				i++
				value = args[i]
			}
			f.set[name] = value
		case len(a) > 1 && a[0] == '-':
			for j := 1; j < len(a); j++ {
				name := a[j : j+1]
				if !valued(name) {
					f.set[name] = ""
					continue
				}
				value := a[j+1:]
				if value == "" && i+1 < len(args) {
					i++
					value = args[i]
				}
				f.set[name] = value
				break
			}
		default:
			f.args = append(f.args, a)
		}
	}
	return f
}

// readAll reads a stream into memory, up to the limit.
func readAll(in *invocation, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(ctxReader{in, r}, int64(in.MaxText)+1))
	if err == nil && len(data) > in.MaxText {
		err = vfs.ErrTooLarge
	}
	return data, err
}

// ctxReader stops endless input.
type ctxReader struct {
	in *invocation
	r  io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.in.Ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// open opens a file argument; - is the standard input.
func open(in *invocation, name string) (io.ReadCloser, error) {
	if name == "-" || name == "/dev/stdin" {
		return io.NopCloser(ctxReader{in, in.Stdin}), nil
	}
	f, err := in.FS.Open(in.Abs(name), vfs.Read, 0)
	if err != nil {
		return nil, err
	}
	if f.Stat().IsDir() {
		f.Close()
		return nil, vfs.ErrIsDir
	}
	return struct {
		io.Reader
		io.Closer
	}{ctxReader{in, f}, f}, nil
}

// inputs runs do on each file, or on the standard input.
func inputs(in *invocation, names []string, do func(name string, r io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		r, err := open(in, name)
		if err == nil {
			err = do(name, r)
			r.Close()
		}
		if errors.Is(err, io.ErrClosedPipe) || in.Ctx.Err() != nil {
			return 141
		}
		if err != nil {
			status = fail(in, "%s: %v", name, reason(err))
		}
	}
	return status
}
