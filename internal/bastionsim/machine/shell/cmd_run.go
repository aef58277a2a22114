package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// builtinProgram makes a program of a builtin that exists as a file too.
func builtinProgram(name string) func(p *Process, f flags) int {
	return func(p *Process, f flags) int {
		sub := p.sh.newProgram(p.Env)
		defer sub.end()
		return sub.runBuiltin(slices.Concat([]string{name}, f.args), sub.stream(1))
	}
}

func whichProgram(p *Process, f flags) int {
	return p.each(f.args, "no", func(name string) error {
		file, err := p.sh.find(name)
		if err == nil {
			p.Printf("%s\n", file)
		}
		return err
	})
}

func bashProgram(p *Process, f flags) int {
	args, command := f.args, false
	var flags, options []string
	for len(args) > 0 && len(args[0]) > 1 && strings.ContainsAny(args[0][:1], "-+") {
		arg := args[0]
		if args = args[1:]; arg == "--" {
			break
		}
		if arg == "--version" {
			return p.done(p.write("GNU bash, version 5.2.0(1)-gardenlite (simulated)\n"))
		}
		if strings.HasPrefix(arg, "--") { // such as --login
			continue
		}
		if strings.HasSuffix(arg, "o") && len(args) > 0 {
			options, args = append(options, args[0]), args[1:]
		}
		command = command || strings.Contains(arg, "c")
		flags = append(flags, strings.NewReplacer("c", "", "l", "", "s", "", "o", "").Replace(arg))
	}
	name := p.name()
	var text string
	var err error
	switch {
	case command && len(args) == 0:
		return p.Failf(2, "-c: option requires an argument")
	case command:
		text, args = args[0], args[1:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	case len(args) > 0:
		name = args[0]
		text, err = p.readFile(name)
		args = args[1:]
	default:
		text, err = p.readAll(p.Stdin)
	}
	if err != nil {
		return p.Failf(127, "%v", err)
	}
	sub := p.sh.newProgram(p.Env)
	sub.commandLine = command
	for _, name := range options {
		if o := sub.setOptions()[name]; o != nil {
			*o = true
		}
	}
	return sub.script(text, name, args, flags)
}

func envProgram(p *Process, f flags) int {
	args, env := f.args, slices.Clone(p.Env)
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

// duration reads what sleep is given.
func duration(text string) (time.Duration, error) {
	unit := time.Second
	if text != "" {
		units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
		if u, ok := units[text[len(text)-1]]; ok {
			unit, text = u, text[:len(text)-1]
		}
	}
	n, err := strconv.ParseFloat(text, 64) // which reads "infinity"
	if err != nil && n == 0 || n < 0 || n != n {
		return 0, fmt.Errorf("invalid time interval '%s'", text)
	}
	return time.Duration(min(n*float64(unit), 1e18)), nil
}

func sleepProgram(p *Process, f flags) int {
	d, err := duration(f.args[0])
	if err != nil {
		return p.Fail(err)
	}
	return boolStatus(p.sleep(d) == nil)
}
