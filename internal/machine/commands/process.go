package commands

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
)

func processCommands(System) map[string]shell.Command {
	return map[string]shell.Command{
		"env": env, "printenv": env, "sleep": sleep, "timeout": timeout, "nohup": nested(1), "nice": nested(1), "setsid": nested(1), "which": which,
		"xargs": xargs, "seq": seq, "yes": yes, "true": say(""), "false": func(*invocation) int { return 1 }, "echo": echo, "clear": say(""),
		"tty": say("/dev/pts/0"), "logger": say(""), "test": viaShell, "[": viaShell, "printf": viaShell, "pwd": viaShell, "kill": viaShell,
	}
}

// viaShell is for programs that are builtins of the shell as well.
func viaShell(in *invocation) int {
	args := append([]string{"sh", "-c", `name=$1; shift; builtin "$name" "$@"`, "sh", path.Base(in.Args[0])}, in.Args[1:]...)
	return in.Run(in.Cred, in.Env, in.Stdin, in.Stdout, args...)
}

func echo(in *invocation) int {
	_, err := fmt.Fprintln(in.Stdout, strings.Join(in.Args[1:], " "))
	return bool2int(err != nil)
}

func env(in *invocation) int {
	vars, args := in.Env, in.Args[1:]
	if path.Base(in.Args[0]) == "printenv" && len(args) > 0 {
		fmt.Fprintln(in.Stdout, in.Getenv(args[0]))
		return bool2int(in.Getenv(args[0]) == "")
	}
	for len(args) > 0 {
		switch {
		case args[0] == "-i" || args[0] == "-":
			vars = nil
		case args[0] == "-u" && len(args) > 1:
			vars, args = without(vars, args[1]), args[1:]
		case strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "-"):
			vars = append(vars[:len(vars):len(vars)], args[0])
		case args[0] == "-S" || strings.HasPrefix(args[0], "-"):
		default:
			return in.Run(in.Cred, vars, in.Stdin, in.Stdout, args...)
		}
		args = args[1:]
	}
	for _, v := range vars {
		fmt.Fprintln(in.Stdout, v)
	}
	return 0
}

func without(vars []string, name string) []string {
	var out []string
	for _, v := range vars {
		if !strings.HasPrefix(v, name+"=") {
			out = append(out, v)
		}
	}
	return out
}

func duration(s string) (time.Duration, error) {
	unit := time.Second
	if n := len(s); n > 0 {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[n-1]]; ok {
			s, unit = s[:n-1], u
		}
	}
	if s == "infinity" || s == "inf" {
		return 1 << 62, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || v > 1e9 {
		return 0, fmt.Errorf("invalid time interval '%s'", s)
	}
	return time.Duration(v * float64(unit)), nil
}

func sleep(in *invocation) int {
	var total time.Duration
	for _, a := range in.Args[1:] {
		d, err := duration(a)
		if err != nil {
			return fail(in, "%v", err)
		}
		total += d
	}
	return bool2int(shell.Sleep(in.Ctx, in.Clock.After, total) != nil)
}

// timeout runs the command without ending it early: the shell's own limits do. A command that is only slow on the
// machine's clock is none that has to be ended.
func timeout(in *invocation) int {
	args := in.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if len(args) < 2 {
		return fail(in, "missing operand")
	}
	if _, err := duration(args[0]); err != nil {
		return fail(in, "%v", err)
	}
	return in.Run(in.Cred, in.Env, in.Stdin, in.Stdout, args[1:]...)
}

func nested(skip int) shell.Command {
	return func(in *invocation) int {
		args := in.Args[skip:]
		for len(args) > 0 && strings.HasPrefix(args[0], "-") {
			if args[0] == "-n" && len(args) > 1 {
				args = args[1:]
			}
			args = args[1:]
		}
		if len(args) == 0 {
			return 0
		}
		return in.Run(in.Cred, in.Env, in.Stdin, in.Stdout, args...)
	}
}

func which(in *invocation) int {
	status := 0
	for _, name := range parse(in.Args, "").args {
		found := false
		for _, dir := range strings.Split(in.Getenv("PATH"), ":") {
			file := path.Join(in.Abs(dir), name)
			if info, err := in.FS.Stat(file); err == nil && !info.IsDir() && in.FS.Access(file, 1) {
				fmt.Fprintln(in.Stdout, file)
				found = true
				break
			}
		}
		status = max(status, bool2int(!found))
	}
	return status
}

func xargs(in *invocation) int {
	args, each, replace := in.Args[1:], 0, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag := args[0]
		args = args[1:]
		switch {
		case (flag == "-n" || flag == "-L") && len(args) > 0:
			each, _ = strconv.Atoi(args[0])
			args = args[1:]
		case flag == "-I" && len(args) > 0:
			replace, each = args[0], 1
			args = args[1:]
		}
	}
	if len(args) == 0 {
		args = []string{"echo"}
	}
	data, err := readAll(in, in.Stdin)
	if err != nil {
		return fail(in, "%v", reason(err))
	}
	words := strings.FieldsFunc(string(data), func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == 0 })
	if replace != "" {
		words = strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	}
	if each <= 0 {
		each = 1000
	}
	status := 0
	for len(words) > 0 && in.Ctx.Err() == nil {
		n := min(each, len(words))
		line := append(args[:len(args):len(args)], words[:n]...)
		if replace != "" {
			line = nil
			for _, a := range args {
				line = append(line, strings.ReplaceAll(a, replace, words[0]))
			}
		}
		words = words[n:]
		if in.Run(in.Cred, in.Env, strings.NewReader(""), in.Stdout, line...) != 0 {
			status = 123
		}
	}
	return status
}

func seq(in *invocation) int {
	numbers := []int{}
	sep := parse(in.Args, "s").get("s")
	for _, a := range in.Args[1:] {
		if n, err := strconv.Atoi(a); err == nil {
			numbers = append(numbers, n)
		}
	}
	first, step, last := 1, 1, 0
	switch len(numbers) {
	case 1:
		last = numbers[0]
	case 2:
		first, last = numbers[0], numbers[1]
	case 3:
		first, step, last = numbers[0], numbers[1], numbers[2]
	default:
		return fail(in, "missing operand")
	}
	if step == 0 {
		return fail(in, "increment must not be zero")
	}
	if sep == "" {
		sep = "\n"
	}
	for n := first; (step > 0 && n <= last) || (step < 0 && n >= last); n += step {
		text := strconv.Itoa(n) + sep
		if next := n + step; (step > 0 && next > last) || (step < 0 && next < last) {
			text = strconv.Itoa(n) + "\n"
		}
		if _, err := io.WriteString(in.Stdout, text); err != nil || in.Ctx.Err() != nil {
			return 1
		}
	}
	return 0
}

func yes(in *invocation) int {
	text := "y"
	if len(in.Args) > 1 {
		text = strings.Join(in.Args[1:], " ")
	}
	for in.Ctx.Err() == nil {
		if _, err := fmt.Fprintln(in.Stdout, text); err != nil {
			return 1
		}
	}
	return 1
}
