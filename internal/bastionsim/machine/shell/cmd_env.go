package shell

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// builtinProgram are builtins that exist as files too.
func builtinProgram(_ context.Context, p *Process) int {
	sub := p.sh.newProgram(p.Env)
	defer sub.end()
	return sub.runBuiltin(append([]string{p.name()}, p.Args[1:]...), sub.stream(1))
}

func bashProgram(_ context.Context, p *Process) int {
	args := p.Args[1:]
	var flags, options []string
	command := false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		if arg == "--login" || arg == "--norc" || arg == "--noprofile" || arg == "--posix" {
			continue
		}
		if arg == "--version" {
			p.Printf("GNU bash, version 5.2.0(1)-gardenlite (simulated)\n")
			return 0
		}
		if strings.HasSuffix(arg, "o") && len(args) > 0 {
			options, args = append(options, args[0]), args[1:]
		}
		command = command || strings.Contains(arg, "c")
		flags = append(flags, strings.NewReplacer("c", "", "l", "", "s", "", "o", "").Replace(arg))
	}
	sub := p.sh.newProgram(p.Env)
	for _, name := range options {
		if o := sub.setOptions()[name]; o != nil {
			*o = true
		}
	}
	sub.commandLine = command
	switch {
	case command && len(args) == 0:
		sub.end()
		return p.Failf(2, "-c: option requires an argument")
	case command:
		name := p.name()
		if len(args) > 1 {
			name = args[1]
		}
		return sub.script(args[0], name, args[min(2, len(args)):], flags)
	case len(args) > 0:
		text, err := p.readFile(args[0])
		if err != nil {
			sub.end()
			return p.Failf(127, "%v", err)
		}
		return sub.script(text, args[0], args[1:], flags)
	}
	text, err := p.readAll(p.Stdin)
	if err != nil {
		sub.end()
		return p.Fail(err)
	}
	return sub.script(text, p.name(), nil, flags)
}

func envProgram(ctx context.Context, p *Process) int {
	args, env := p.Args[1:], slices.Clone(p.Env)
	drop := func(name string) {
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	}
	for len(args) > 0 {
		name, _, assigns := strings.Cut(args[0], "=")
		switch {
		case args[0] == "-i" || args[0] == "-":
			env = nil
		case args[0] == "-u" && len(args) > 1:
			drop(args[1])
			args = args[1:]
		case assigns:
			drop(name)
			env = append(env, args[0])
		default:
			if strings.HasPrefix(args[0], "-") {
				return p.Failf(125, "invalid option '%s'", args[0])
			}
			return p.run(ctx, args, append([]string{}, env...), nil)
		}
		args = args[1:]
	}
	for _, e := range env {
		p.Printf("%s\n", e)
	}
	return 0
}

func printenvProgram(_ context.Context, p *Process) int {
	if len(p.Args) == 1 {
		for _, e := range p.Env {
			p.Printf("%s\n", e)
		}
		return 0
	}
	status := 0
	for _, name := range p.Args[1:] {
		i := slices.IndexFunc(p.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if i < 0 {
			status = 1
			continue
		}
		p.Printf("%s\n", p.Env[i][len(name)+1:])
	}
	return status
}

func whichProgram(_ context.Context, p *Process) int {
	status := 0
	for _, name := range p.Args[1:] {
		file, err := p.sh.find(name)
		if err == nil {
			err = p.FS.Access(file, 1)
		}
		if err != nil {
			status = 1
			continue
		}
		p.Printf("%s\n", file)
	}
	return status
}

// duration reads what sleep and timeout are given.
func duration(text string) (time.Duration, error) {
	unit := time.Second
	if text != "" {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]; ok {
			unit, text = u, text[:len(text)-1]
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if text == "infinity" {
		n, err = 1e9, nil
	}
	if err != nil || n < 0 || n != n {
		return 0, fmt.Errorf("invalid time interval '%s'", text)
	}
	return time.Duration(min(n*float64(unit), 1e18)), nil
}

func sleepProgram(ctx context.Context, p *Process) int {
	total := time.Duration(0)
	if len(p.Args) == 1 {
		return p.Failf(1, "missing operand")
	}
	for _, a := range p.Args[1:] {
		d, err := duration(a)
		if err != nil {
			return p.Fail(err)
		}
		if total += d; total < 0 {
			total = 1 << 62
		}
	}
	return boolStatus(p.sleep(ctx, total) == nil)
}

func timeoutProgram(ctx context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "k:s:vp", map[string]byte{"signal": 's', "kill-after": 'k', "preserve-status": 'p', "foreground": 'v'}, true)
	if err != nil || len(f.args) < 2 {
		return p.Failf(125, "usage: timeout DURATION COMMAND [ARG]...")
	}
	d, err := duration(f.args[0])
	if err != nil {
		return p.Failf(125, "%v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		if p.sleep(ctx, d) == nil {
			close(over)
			cancel()
		}
	}()
	status := p.run(ctx, f.args[1:], p.Env, nil)
	cancel()
	<-watcher
	select {
	case <-over:
		return 124
	default:
		return status
	}
}
