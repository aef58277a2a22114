package shell

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// builtinProgram returns a program for a builtin that also exists as a file.
func builtinProgram(name string) func(p *Process, f flags) int {
	return func(p *Process, f flags) int {
		sub := p.newProgram(p.environ())
		defer sub.end()
		return sub.runBuiltin(slices.Concat([]string{name}, f.args), sub.stream(1))
	}
}

func whichProgram(p *Process, f flags) int {
	return p.each(f.args, "no", func(name string) error {
		file, err := p.find(name)
		if err == nil {
			p.Printf("%s\n", file)
		}
		return err
	})
}

func bashProgram(p *Process, f flags) int {
	args, name := f.args, p.name()
	var text string
	var err error
	switch {
	case f.has('V'):
		return p.done(p.write("GNU bash, version 5.2.0(1)-gardenlite (simulated)\n"))
	case f.has('c') && len(args) == 0:
		return p.Failf(2, "-c: option requires an argument")
	case f.has('c'):
		text, args = args[0], args[1:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	case f.has('s') || len(args) == 0:
		text, err = p.readAll(p.Stdin)
	default:
		name, args = args[0], args[1:]
		text, err = p.readFile(name)
	}
	if err != nil {
		return p.Failf(127, "%v", err)
	}
	sub := p.newProgram(p.environ())
	sub.commandLine = f.has('c')
	for letter := range f.set {
		_ = sub.setFlags(string(letter), true) // options that only bash has are ignored
	}
	for _, option := range f.values['o'] {
		if o := sub.setOptions()[option]; o != nil {
			*o = true
		}
	}
	return sub.script(text, name, args)
}

func envProgram(p *Process, f flags) int {
	args, env := f.args, slices.Clone(p.environ())
	if f.has('i') {
		env = []string{}
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, _, _ := strings.Cut(args[0], "=")
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		env, args = append(env, args[0]), args[1:]
	}
	if len(args) > 0 {
		return p.run(args, env, nil)
	}
	for _, e := range env {
		p.Printf("%s\n", e)
	}
	return 0
}

// duration parses the argument of sleep, in seconds unless it has a unit.
func duration(text string) (time.Duration, error) {
	if text == "infinity" {
		return math.MaxInt64, nil
	}
	if strings.Trim(text, ".0123456789") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		err = fmt.Errorf("invalid time interval '%s'", text)
	}
	return d, err
}

func sleepProgram(p *Process, f flags) int {
	d, err := duration(f.args[0])
	if err != nil {
		return p.Fail(err)
	}
	return boolStatus(p.sleep(d) == nil)
}

// scpProgram refuses transfers. The scp of another machine speaks its original protocol to scp -t or -f here, if its
// user asks for that by -O; a line after the byte 2 is an error to it, which it shows.
func scpProgram(p *Process, f flags) int {
	if !f.has('t') && !f.has('f') {
		return p.Failf(255, noNetwork)
	}
	p.Printf("\x02scp: not on this machine: use sftp, or scp without -O\n")
	return 1
}
