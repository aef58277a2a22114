package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// Process is one execution of a program by a shell. It has everything that the program sees of the machine.
type Process struct {
	*shell
	Args           []string // the first one is the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

func (p *Process) name() string { return path.Base(p.Args[0]) }

// Printf writes to the output. It ignores errors, because the next read, write or step of the session returns them.
func (p *Process) Printf(format string, args ...any) { _, _ = fmt.Fprintf(p.Stdout, format, args...) }

// Fail writes an error with the command's name before it, and returns 1, the status to end with.
func (p *Process) Fail(err error) int {
	_, _ = fmt.Fprintf(p.Stderr, "%s: %v\n", p.name(), err) // the error has no other place
	return 1
}

// Failf is like Fail, with a text and a status.
func (p *Process) Failf(status int, format string, args ...any) int {
	_ = p.Fail(fmt.Errorf(format, args...)) // the status is the caller's
	return status
}

// open opens a file for reading. "-" is the input, and descriptors have names in /dev.
func (p *Process) open(name string) (io.Reader, func(), error) {
	if name == "-" {
		return p.Stdin, func() {}, nil
	}
	return p.openFile(name, vfs.O_RDONLY)
}

func (p *Process) openFile(name string, flag int) (*stream, func(), error) {
	f, err := p.shell.open(name, flag)
	if err != nil {
		return nil, nil, err
	}
	return &stream{sh: p.shell, file: f}, f.close, nil
}

var errTooLong = errors.New("the input is longer than the limit of this machine")

// readAll reads everything, up to a limit. The program holds the memory until it ends.
func (p *Process) readAll(in io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = errTooLong
	}
	p.hold(int64(len(data)))
	return string(data), err
}

// readFile is like readAll, but reads a named file.
func (p *Process) readFile(name string) (string, error) {
	in, done, err := p.open(name)
	if err != nil {
		return "", err
	}
	defer done()
	return p.readAll(in)
}

// inputs calls fn for each named file, or for the input if there are no names. It returns 1 if a file could not be
// read.
func (p *Process) inputs(names []string, fn func(name string, in io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		in, done, err := p.open(name)
		if err == nil {
			err = fn(name, in)
			done()
		}
		if err != nil {
			status = p.Fail(err)
		}
		if p.step(1) != nil {
			return statusKilled
		}
	}
	return status
}

// readDir returns the entries of a directory. The program holds their memory until it ends.
func (p *Process) readDir(name string) ([]fs.DirEntry, error) {
	entries, err := p.fs.ReadDir(p.abs(name))
	p.hold(int64(len(entries)) * entryCost)
	return entries, err
}

// run executes another command with the files of this one, as env and sudo do. If user is nil, the user stays the same.
func (p *Process) run(args, env []string, user *User) int {
	sub := p.newProgram(env)
	defer sub.end()
	if user != nil {
		sub.user, sub.fs = *user, p.s.o.FS.As(user.Cred())
	}
	return sub.exec(args)
}

// sleep waits by the machine's clock.
func (p *Process) sleep(d time.Duration) error {
	timer := p.s.o.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// flags are the option letters that a command was called with, the values of those that take one, and the operands.
type flags struct {
	set    map[byte]bool
	values map[byte][]string
	args   []string
}

func (f flags) has(c byte) bool { return f.set[c] }

func (f flags) value(c byte, otherwise string) string {
	if v := f.values[c]; len(v) > 0 {
		return v[len(v)-1]
	}
	return otherwise
}

// parseFlags parses options like getopt. Spaces separate the elements of options: the letter, then other names
// ("r|R|recursive"), then a colon if it takes a value ("n|lines:"). If options begins with "+", the first operand ends
// the options of args.
func parseFlags(args []string, options string) (flags, error) {
	f := flags{set: map[byte]bool{}, values: map[byte][]string{}}
	letters, takesValue := map[string]byte{}, map[byte]bool{}
	options, stop := strings.CutPrefix(options, "+")
	for option := range strings.FieldsSeq(options) {
		names, value := strings.CutSuffix(option, ":")
		for name := range strings.SplitSeq(names, "|") {
			if len(name) > 1 {
				name = "--" + name
			}
			letters[name] = option[0]
		}
		takesValue[option[0]] = value
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		operand := len(arg) < 2 || arg[0] != '-'
		switch {
		case arg == "--":
			f.args = append(f.args, args[i+1:]...)
			return f, nil
		case operand && stop:
			f.args = append(f.args, args[i:]...)
			return f, nil
		case operand:
			f.args = append(f.args, arg)
			continue
		}
		names, value, hasValue := strings.Split(arg[1:], ""), "", false
		if strings.HasPrefix(arg, "--") {
			arg, value, hasValue = strings.Cut(arg, "=")
			names = []string{arg}
		}
		for j, name := range names {
			c, known := letters[name]
			if !known {
				return f, fmt.Errorf("invalid option '%s'", name)
			}
			f.set[c] = true
			if !takesValue[c] {
				continue
			}
			switch rest := strings.Join(names[j+1:], ""); {
			case hasValue:
			case rest != "":
				value = rest
			case i+1 < len(args):
				i++
				value = args[i]
			default:
				return f, fmt.Errorf("option '%s' requires an argument", name)
			}
			f.values[c] = append(f.values[c], value)
			break
		}
	}
	return f, nil
}
