package machine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
)

// noLimit is the output limit of units, which may write as long as the machine runs.
const noLimit = math.MaxInt64

// execute runs a command of a unit to its end. pid is 0 for a command that is not part of a start; a negative limit means
// that the command may run forever.
func (u *Units) execute(ctx context.Context, one *unit, d *definition, line execLine, pid int, limit time.Duration) error {
	out := &lineWriter{log: func(text string) { u.log(one.name, path.Base(line.words[0]), pid, text) }}
	defer out.end()
	env := u.environment(d)
	words := make([]string, 0, len(line.words))
	left := MaxUnitFile
	for _, word := range line.words {
		words = append(words, u.expand(word, one.name, env, &left))
	}
	if left < 0 {
		return fmt.Errorf("the variables of its command line have more than %d bytes", MaxUnitFile)
	}
	var err error
	if program := u.program(words[0]); program != nil {
		_, err = u.m.contain(words[0], func() (int, error) {
			return 0, program(context.WithValue(ctx, journalKey{}, out), u.m, words[1:])
		})
	} else {
		err = u.shell(ctx, d, words, env, limit, out)
	}
	if line.mayFail && ctx.Err() == nil {
		return nil
	}
	return err
}

// program returns the Program at a path, or nil. That of the SSH server only waits: ServeSSH answers clients while its
// unit is active.
func (u *Units) program(name string) Program {
	if program := u.m.cfg.Programs[name]; program != nil || name != sshdProgram {
		return program
	}
	return func(ctx context.Context, _ *Machine, _ []string) error {
		<-ctx.Done()
		return nil
	}
}

// shell runs the words of a command in the sandbox.
func (u *Units) shell(ctx context.Context, d *definition, words []string, env map[string]string, limit time.Duration,
	out *lineWriter) error {
	user := shell.User{Name: "root", Home: "/root"}
	if d.user != "" {
		var known bool
		if user, known = shell.LookupUser(u.m.fs, d.user); !known {
			return fmt.Errorf("the machine has no user %q", d.user)
		}
	}
	options := u.m.shellOptions(user, shell.Limits{Time: limit, Output: noLimit})
	options.Dir = cmp.Or(d.dir, "/")
	for name, value := range env {
		options.Env = append(options.Env, name+"="+value)
	}
	status, err := u.m.contain("a command", func() (int, error) {
		return shell.New(options).Exec(ctx, words, out, out)
	})
	if err == nil && status != 0 {
		err = fmt.Errorf("ended with status %d", status)
	}
	return err
}

func (u *Units) environment(d *definition) map[string]string {
	env := map[string]string{}
	for _, assignment := range d.environment {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			env[name] = value
		}
	}
	for _, file := range d.environmentFile {
		data, _ := u.m.fs.ReadFile(strings.TrimPrefix(file, "-")) // a missing file sets nothing
		for line := range strings.SplitSeq(string(data), "\n") {
			line = strings.TrimSpace(line)
			name, value, ok := strings.Cut(line, "=")
			if !ok || line[0] == '#' || line[0] == ';' {
				continue
			}
			if words, err := splitWords(value); err == nil {
				env[strings.TrimSpace(name)] = strings.Join(words, " ")
			}
		}
	}
	return env
}

// expand replaces specifiers (%n, %N, %H, %%) and variables ($NAME, ${NAME}) in a word; "$$" is a dollar sign. It subtracts the
// size of the variables' values from left, and replaces none if that is too little.
func (u *Units) expand(word, name string, env map[string]string, left *int) string {
	word = strings.NewReplacer("%%", "%", "%n", name, "%N", strings.TrimSuffix(name, unitSuffix), "%H", u.m.Hostname()).Replace(word)
	return os.Expand(word, func(variable string) string {
		switch variable {
		case "$":
			return "$"
		case "*", "#", "@", "!", "?", "-": // variables of a shell, which units do not have
			return "$" + variable
		}
		if *left -= len(env[variable]); *left < 0 {
			return ""
		}
		return env[variable]
	})
}

// contain runs f and turns a panic into an error, because a panic would end the process with all other machines. The
// stack is in the operator's log; the machine's users do not see it.
func (m *Machine) contain(what string, f func() (int, error)) (status int, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic in %s: %v", what, reason)
			m.cfg.Log.Error(err, "something on a machine failed", "machine", m.cfg.Hostname, "stack", string(debug.Stack()))
			status, err = 1, fmt.Errorf("%s failed: internal error", what)
		}
	}()
	return f()
}
