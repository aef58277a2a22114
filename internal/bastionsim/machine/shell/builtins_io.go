package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

func echoCommand(b *builtin) int {
	args, newline, escapes := b.args, true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		newline = newline && !strings.Contains(args[0], "n")
		if i := strings.LastIndexAny(args[0], "eE"); i >= 0 {
			escapes = args[0][i] == 'e'
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		var stop bool
		if text, stop = escape(text, true); stop {
			newline = false
		}
	}
	if newline {
		text += "\n"
	}
	if _, err := io.WriteString(b.out, text); err != nil && !b.out.broken {
		return b.failf(1, "write error: %v", err)
	}
	return 0
}

// readLine reads up to a delimiter, a byte at a time so that what follows it is left for others. most > 0 is how many
// bytes it reads at most.
func (sh *shell) readLine(in io.Reader, delim byte, raw bool, most int) (string, error) {
	var line []byte
	var buf [1]byte
	for most <= 0 || len(line) < most {
		n, err := in.Read(buf[:])
		if n > 0 {
			switch c := buf[0]; {
			case c == delim && !raw && len(line) > 0 && line[len(line)-1] == '\\' && delim == '\n' && oddBackslashes(line):
				line = line[:len(line)-1]
				continue
			case c == delim:
				return string(line), nil
			default:
				line = append(line, c)
			}
			if len(line) > sh.r.limits.String {
				sh.kill("string")
				return "", errTooLong
			}
		}
		if err != nil {
			return string(line), err
		}
	}
	return string(line), nil
}

func oddBackslashes(line []byte) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func readCommand(b *builtin) int {
	f, err := parseFlags(b.args, "rsea:d:n:N:p:t:u:i:", nil, true)
	if err != nil {
		return b.failf(2, "%v", err)
	}
	delim := byte('\n')
	if f.has('d') {
		delim = 0
		if d := f.value('d', ""); d != "" {
			delim = d[0]
		}
	}
	fd, _ := strconv.Atoi(f.value('u', "0"))
	most, _ := strconv.Atoi(f.value('n', f.value('N', "0")))
	in := b.stream(fd)
	if prompt := f.value('p', ""); prompt != "" && in.file != nil && in.file.tty {
		_, _ = io.WriteString(b.stream(2), prompt)
	}
	raw, names := f.has('r'), f.args
	line, readErr := b.readLine(in, delim, raw, most)
	if b.step(1) != nil {
		return statusKilled
	}
	switch array := f.value('a', ""); {
	case array != "":
		_, array = b.target(array)
		if fields := b.splitFields(line, 0, raw); b.ok() {
			b.assign(array, listOf(fields))
		}
	case len(names) == 0:
		if !raw {
			line = dropBackslashes(line)
		}
		b.set("REPLY", line)
	default:
		fields := append(b.splitFields(line, len(names), raw), make([]string, len(names))...)
		for i, name := range names {
			b.set(name, fields[i])
		}
	}
	return boolStatus(readErr == nil)
}

func dropBackslashes(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// splitFields cuts a line at IFS into at most n fields (n <= 0: as many as there are).
func (sh *shell) splitFields(line string, n int, raw bool) []string {
	ifs := sh.value("IFS")
	white := func(c byte) bool { return strings.IndexByte(" \t\n", c) >= 0 && strings.IndexByte(ifs, c) >= 0 }
	trim := func(s string) string {
		for s != "" && white(s[0]) {
			s = s[1:]
		}
		return s
	}
	var out []string
	rest := trim(line)
	for rest != "" {
		if n > 0 && len(out) == n-1 {
			for rest != "" && white(rest[len(rest)-1]) {
				rest = rest[:len(rest)-1]
			}
			if !raw {
				rest = dropBackslashes(rest)
			}
			return append(out, rest)
		}
		i := 0
		for i < len(rest) && strings.IndexByte(ifs, rest[i]) < 0 {
			if rest[i] == '\\' && !raw && i+1 < len(rest) {
				i++
			}
			i++
		}
		field := rest[:i]
		if !raw {
			field = dropBackslashes(field)
		}
		out = append(out, field)
		rest = trim(rest[i:])
		if rest != "" && i < len(line) && strings.IndexByte(ifs, rest[0]) >= 0 && !white(rest[0]) {
			rest = trim(rest[1:])
		}
	}
	return out
}

func mapfileCommand(b *builtin) int {
	f, err := parseFlags(b.args, "td:n:O:s:u:", nil, true)
	if err != nil {
		return b.failf(2, "%v", err)
	}
	name := "MAPFILE"
	if len(f.args) > 0 {
		name = f.args[0]
	}
	delim := byte('\n')
	if f.has('d') {
		delim = 0
		if d := f.value('d', ""); d != "" {
			delim = d[0]
		}
	}
	skip, _ := strconv.Atoi(f.value('s', "0"))
	most, _ := strconv.Atoi(f.value('n', "0"))
	fd, _ := strconv.Atoi(f.value('u', "0"))
	in := b.stream(fd)
	var lines []string
	size := 0
	for most <= 0 || len(lines) < most {
		line, err := b.readLine(in, delim, true, 0)
		if line == "" && err != nil {
			break
		}
		if !f.has('t') && err == nil {
			line += string(delim)
		}
		if skip--; skip < 0 {
			lines = append(lines, line)
		}
		if size += len(line); size > 4*b.r.limits.String || len(lines) > b.r.limits.Fields {
			b.kill("memory")
			return statusKilled
		}
		if err != nil {
			break
		}
	}
	if _, name = b.target(name); b.ok() {
		b.assign(name, listOf(lines))
	}
	return 0
}

func getoptsCommand(b *builtin) int {
	if len(b.args) < 2 {
		return b.failf(2, "usage: getopts optstring name [arg ...]")
	}
	spec, name, args := b.args[0], b.args[1], b.params
	if len(b.args) > 2 {
		args = b.args[2:]
	}
	silent := strings.HasPrefix(spec, ":")
	index, err := strconv.Atoi(b.value("OPTIND"))
	if err != nil || index < 1 {
		index = 1
	}
	if index == 1 && b.value("OPTIND") == "1" && (len(args) == 0 || b.getopt >= len(args[0])) {
		b.getopt = 0
	}
	done := func(opt, arg string, hasArg bool, status int) int {
		b.set("OPTIND", strconv.Itoa(index))
		b.set(name, opt)
		if hasArg {
			b.set("OPTARG", arg)
		} else {
			b.unset("OPTARG")
		}
		return status
	}
	if index > len(args) || len(args[index-1]) < 2 || args[index-1][0] != '-' || args[index-1] == "--" {
		if index <= len(args) && args[index-1] == "--" {
			index++
		}
		b.getopt = 0
		return done("?", "", false, 1)
	}
	arg := args[index-1]
	if b.getopt < 1 || b.getopt >= len(arg) {
		b.getopt = 1
	}
	c := arg[b.getopt]
	b.getopt++
	rest := arg[b.getopt:]
	if rest == "" {
		index, b.getopt = index+1, 0
	}
	i := strings.IndexByte(spec, c)
	switch {
	case i < 0 || c == ':':
		if silent {
			return done("?", string(c), true, 0)
		}
		b.complain(fmt.Errorf("illegal option -- %c", c))
		return done("?", "", false, 0)
	case i+1 == len(spec) || spec[i+1] != ':':
		return done(string(c), "", false, 0)
	case rest != "":
		index, b.getopt = index+1, 0
		return done(string(c), rest, true, 0)
	case index <= len(args):
		index++
		return done(string(c), args[index-2], true, 0)
	case silent:
		return done(":", string(c), true, 0)
	}
	b.complain(fmt.Errorf("option requires an argument -- %c", c))
	return done("?", "", false, 0)
}
