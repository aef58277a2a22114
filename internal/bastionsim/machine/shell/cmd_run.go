package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// builtinProgram makes a program of a builtin that exists as a file too, or of another call of one.
func builtinProgram(words ...string) func(p *Process, f flags) int {
	return func(p *Process, f flags) int {
		sub := p.sh.newProgram(p.Env)
		defer sub.end()
		return sub.runBuiltin(slices.Concat(words, f.args), sub.stream(1))
	}
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
		return p.run(p.sh.ctx, args, env, nil)
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
	return boolStatus(p.sleep(p.sh.ctx, d) == nil)
}

// maxXargs is how many commands one xargs runs.
const maxXargs = 10000

func xargsProgram(p *Process, f flags) int {
	text, err := p.readAll(p.Stdin)
	if err != nil {
		return p.Fail(err)
	}
	items := strings.Fields(text)
	if f.has('I') {
		items = slices.DeleteFunc(splitLines(text), func(line string) bool { return line == "" })
	}
	command := f.args
	if len(command) == 0 {
		command = []string{"echo"}
	}
	n, err := f.number('n', 4096)
	if err != nil || n <= 0 {
		return p.Failf(1, "invalid number")
	}
	if f.has('I') {
		n = 1
	}
	if len(items) == 0 && !f.has('r') && !f.has('I') {
		return p.run(p.sh.ctx, command, p.Env, nil)
	}
	status, count := 0, 0
	for batch := range slices.Chunk(items, n) {
		if count++; count > maxXargs {
			return p.Failf(1, "too many commands")
		}
		args := slices.Concat(command, batch)
		if mark := f.value('I', ""); mark != "" {
			if args, err = p.fillIn(command, mark, strings.TrimSpace(batch[0])); err != nil {
				return p.Fail(err)
			}
		}
		if code := p.run(p.sh.ctx, args, p.Env, nil); code >= 126 {
			return code
		} else if code != 0 {
			status = 123
		}
		if p.step() != nil {
			return statusKilled
		}
	}
	return status
}

// fillIn replaces a mark in the arguments of a command, if they do not become longer than a word may be.
func (p *Process) fillIn(command []string, mark, text string) ([]string, error) {
	out, size := slices.Clone(command), 0
	for i, arg := range out {
		if size += len(arg) + strings.Count(arg, mark)*len(text); size > p.sh.r.limits.String {
			return nil, p.sh.r.kill("string")
		}
		out[i] = strings.ReplaceAll(arg, mark, text)
	}
	return out, nil
}
