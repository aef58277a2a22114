package shell

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
)

var (
	// escapeEnd matches a text up to the first \c.
	escapeEnd = regexp.MustCompile(`(?s)^((?:[^\\]|\\[^c])*?)\\c`)
	// echoEscape matches an escape sequence that echo -e and %b read in another way than $'...', or an escaped
	// backslash.
	echoEscape = regexp.MustCompile(`\\(?:0[0-7]{1,3}|['"\\])`)
	escaped    = regexp.MustCompile(`(?s)\\(.)`)
)

// escape replaces escape sequences. With echo, it does so as echo -e and %b: octal numbers begin with a zero, quotes
// need no backslash, and \c ends the text (stop).
func escape(text string, echo bool) (_ string, stop bool) {
	if !strings.Contains(text, "\\") {
		return text, false
	}
	if echo {
		if found := escapeEnd.FindStringSubmatch(text); found != nil {
			text, stop = found[1], true
		}
		text = echoEscape.ReplaceAllStringFunc(text, func(sequence string) string {
			switch sequence[1] {
			case '0':
				return `\` + sequence[2:]
			case '\\':
				return sequence
			}
			return `\` + sequence
		})
	}
	out, _, _ := expand.Format(&expand.Config{}, text, nil) // cannot fail without arguments
	return out, stop
}

// ansi expands the text of $'...'.
func ansi(text string) string {
	out, _ := escape(text, false)
	out, _, _ = strings.Cut(out, "\x00")
	return out
}

func (b *builtin) write(text string) int {
	if _, err := io.WriteString(b.out, text); err != nil && !b.out.broken {
		return b.failf(1, "write error: %v", err)
	}
	return 0
}

func echoCommand(b *builtin) int {
	args, end, escapes := b.args, "\n", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		if strings.Contains(args[0], "n") {
			end = ""
		}
		if i := strings.LastIndexAny(args[0], "eE"); i >= 0 {
			escapes = args[0][i] == 'e'
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		var stop bool
		if text, stop = escape(text, true); stop {
			end = ""
		}
	}
	return b.write(text + end)
}

func printfCommand(b *builtin) int {
	args, target := b.args, ""
	if len(args) > 1 && args[0] == "-v" {
		target, args = args[1], args[2:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return b.failf(2, "usage: printf [-v var] format [arguments]")
	}
	p := &printer{sh: b.shell, args: args[1:]}
	for {
		before := len(p.args)
		if err := p.format(args[0]); err != nil {
			return b.failf(1, "%v", err)
		}
		if p.stop || len(p.args) == 0 || len(p.args) == before {
			break
		}
		if b.step(1) != nil {
			return statusKilled
		}
	}
	if target != "" {
		b.set(target, p.out.String())
	} else if status := b.write(p.out.String()); status != 0 {
		return status
	}
	if p.warning != nil {
		return b.failf(1, "%v", p.warning)
	}
	return 0
}

// printer formats like printf(1).
type printer struct {
	sh      *shell
	args    []string
	out     strings.Builder
	stop    bool
	warning error // of an argument that is no number
}

func (p *printer) next() string {
	if len(p.args) == 0 {
		return ""
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return arg
}

func (p *printer) format(format string) error {
	for format != "" && !p.stop {
		if p.out.Len() > maxString {
			return p.sh.r.kill("string")
		}
		end := strings.IndexByte(format, '%')
		if end < 0 {
			end = len(format)
		}
		text, _ := escape(format[:end], false)
		p.out.WriteString(text)
		if format = format[end:]; format == "" {
			break
		}
		directive := printfDirective.FindStringSubmatch(format)
		if directive == nil {
			return fmt.Errorf("`%.20s': invalid format", format)
		}
		if err := p.directive(directive[1], directive[2], directive[3], directive[4]); err != nil {
			return err
		}
		format = format[len(directive[0]):]
	}
	return nil
}

// printfDirective has the flags, width, precision and verb of a directive.
var printfDirective = regexp.MustCompile(`^%([-+ #0']*)(\*|[0-9]*)(\.\*|\.[0-9]*|)[hlLjzt]*([a-zA-Z%])`)

// directive formats one argument. Package fmt applies the width and the precision, which have been checked.
func (p *printer) directive(flags, width, precision, verb string) error {
	width, err := p.number(width)
	if err != nil {
		return err
	}
	dot := ""
	if precision != "" {
		if precision, err = p.number(precision[1:]); err != nil {
			return err
		}
		if !strings.HasPrefix(precision, "-") {
			dot = "." + precision
		}
	}
	flags = strings.ReplaceAll(flags, "'", "")
	spec := "%" + flags + width + dot
	switch verb[0] {
	case '%':
		p.out.WriteByte('%')
	case 's', 'b', 'c':
		if strings.Contains(flags, "-") {
			width = "-" + strings.TrimLeft(width, "-")
		}
		fmt.Fprintf(&p.out, "%"+width+dot+"s", p.text(verb))
	case 'd', 'i':
		fmt.Fprintf(&p.out, spec+"d", p.integer(p.next()))
	case 'u':
		fmt.Fprintf(&p.out, spec+"d", uint64(p.integer(p.next())))
	case 'x', 'X', 'o':
		fmt.Fprintf(&p.out, spec+verb, uint64(p.integer(p.next())))
	case 'e', 'E', 'f', 'F', 'g', 'G':
		arg := p.next()
		f, err := strconv.ParseFloat(arg, 64)
		if err != nil && arg != "" {
			p.warn(arg)
		}
		fmt.Fprintf(&p.out, spec+verb, f)
	default:
		return fmt.Errorf("`%s': invalid format character", verb)
	}
	return nil
}

// number checks a width or a precision, which may come from an argument. The limit for strings limits it.
func (p *printer) number(text string) (string, error) {
	if text == "*" {
		text = strconv.FormatInt(p.integer(p.next()), 10)
	}
	if n, err := strconv.Atoi(text); text != "" && (err != nil || max(n, -n) > maxString/4) {
		return "", p.sh.r.kill("string")
	}
	return text, nil
}

// text returns an argument for a verb that does not format numbers.
func (p *printer) text(verb string) string {
	arg := p.next()
	switch verb[0] {
	case 'b':
		arg, p.stop = escape(arg, true)
	case 'c':
		arg = (arg + "\x00")[:1]
	}
	return arg
}

func (p *printer) warn(arg string) { p.warning = fmt.Errorf("%s: invalid number", arg) }

func (p *printer) integer(arg string) int64 {
	if arg == "" {
		return 0
	}
	if arg[0] == '\'' || arg[0] == '"' {
		c, _ := utf8.DecodeRuneInString(arg[1:])
		return int64(c)
	}
	n, ok := parseNumber(strings.TrimSpace(arg))
	if !ok {
		p.warn(arg)
	}
	return n
}

// readLine reads up to a delimiter. It reads single bytes, so that the rest stays for other readers. Unless raw is set,
// a backslash continues the line. If most is positive, it is the maximum number of bytes.
func (sh *shell) readLine(in io.Reader, delim byte, raw bool, most int) (string, error) {
	var line []byte
	var buf [1]byte
	escaped := false
	for most <= 0 || len(line) < most {
		n, err := in.Read(buf[:])
		if n > 0 && buf[0] == delim {
			if !escaped || delim != '\n' {
				return string(line), nil
			}
			line, escaped = line[:len(line)-1], false
		} else if n > 0 {
			line = append(line, buf[0])
			escaped = !raw && !escaped && buf[0] == '\\'
		}
		if len(line) > maxString {
			sh.kill("string")
			return "", errTooLong
		}
		if err != nil {
			return string(line), err
		}
	}
	return string(line), nil
}

func (f flags) delimiter() byte {
	if !f.has('d') {
		return '\n'
	}
	return (f.value('d', "") + "\x00")[0]
}

func readCommand(b *builtin) int {
	f := b.f
	fd, _ := strconv.Atoi(f.value('u', "0"))
	most, _ := strconv.Atoi(f.value('n', f.value('N', "0")))
	in := b.stream(fd)
	if in.file != nil && in.file.tty {
		_, _ = io.WriteString(b.stream(2), f.value('p', ""))
	}
	raw, names := f.has('r'), f.args
	line, readErr := b.readLine(in, f.delimiter(), raw, most)
	if b.step(1) != nil {
		return statusKilled
	}
	switch array := f.value('a', ""); {
	case array != "":
		b.setArray(array, b.splitFields(line, -1, raw))
	case len(names) == 0:
		b.set("REPLY", dropBackslashes(line, raw))
	default:
		fields := append(b.splitFields(line, len(names), raw), make([]string, len(names))...)
		for i, name := range names {
			b.set(name, fields[i])
		}
	}
	return boolStatus(readErr == nil)
}

func dropBackslashes(text string, raw bool) string {
	if raw || !strings.Contains(text, "\\") {
		return text
	}
	return escaped.ReplaceAllString(text, "$1")
}

// splitFields splits a line at IFS into at most n fields, or into all fields if n < 0.
func (sh *shell) splitFields(line string, n int, raw bool) []string {
	return expand.ReadFields(&expand.Config{Env: expand.ListEnviron("IFS=" + sh.value("IFS"))}, line, n, raw)
}

func ifsSpace(ifs string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(" \t\n", c) {
			return c
		}
		return -1
	}, ifs)
}

// cutField cuts a text after its first field. Fields are separated by white space of IFS, or by another character of
// IFS and the white space around it.
func cutField(text, ifs string) (field, separator, rest string) {
	end := strings.IndexAny(text, ifs)
	if end < 0 {
		end = len(text)
	}
	space := ifsSpace(ifs)
	rest = strings.TrimLeft(text[end:], space)
	if c, size := utf8.DecodeRuneInString(rest); size > 0 && strings.ContainsRune(ifs, c) {
		rest = strings.TrimLeft(rest[size:], space)
	}
	return text[:end], text[end : len(text)-len(rest)], rest
}

func mapfileCommand(b *builtin) int {
	fd, _ := strconv.Atoi(b.f.value('u', "0"))
	const limit = 4 * maxString
	text, _ := io.ReadAll(io.LimitReader(b.stream(fd), limit+1)) // a read error is like the end of the input
	delim := string(b.f.delimiter())
	if len(text) > limit || strings.Count(string(text), delim) > maxFields {
		b.kill("memory")
		return statusKilled
	}
	var lines []string
	for line := range strings.SplitAfterSeq(string(text), delim) {
		if line == "" { // after the last delimiter
			break
		}
		if b.f.has('t') {
			line = strings.TrimSuffix(line, delim)
		}
		lines = append(lines, line)
	}
	b.setArray(append(b.args, "MAPFILE")[0], lines)
	return 0
}

// getoptsCommand reads the next option. b.getopt is its position in an argument with several options.
func getoptsCommand(b *builtin) int {
	if len(b.args) < 2 {
		return b.failf(2, "usage: getopts optstring name [arg ...]")
	}
	spec, name, args := b.args[0], b.args[1], b.params
	if len(b.args) > 2 {
		args = b.args[2:]
	}
	index, _ := strconv.Atoi(b.value("OPTIND")) // an invalid number stands for the first argument
	index = max(index, 1)
	arg, value := "", ""
	if index <= len(args) {
		arg = args[index-1]
	}
	if b.getopt < 1 || b.getopt >= len(arg) {
		b.getopt = 1
	}
	letter, problem, status := "?", "", 0
	if len(arg) < 2 || arg[0] != '-' || arg == "--" {
		if status = 1; arg == "--" {
			index++
		}
	} else {
		var rest string
		letter, rest = arg[b.getopt:b.getopt+1], arg[b.getopt+1:]
		_, after, known := strings.Cut(strings.TrimPrefix(spec, ":"), letter)
		switch {
		case !known || letter == ":":
			letter, value, problem = "?", letter, "illegal option"
		case !strings.HasPrefix(after, ":"):
		case rest != "":
			value, rest = rest, ""
		case index < len(args):
			index++
			value = args[index-1]
		default:
			letter, value, problem = ":", letter, "option requires an argument"
		}
		if b.getopt++; rest == "" {
			index, b.getopt = index+1, 0
		}
	}
	if problem != "" && !strings.HasPrefix(spec, ":") {
		b.complain(fmt.Errorf("%s -- %s", problem, value))
		letter, value = "?", ""
	}
	b.set("OPTIND", strconv.Itoa(index))
	b.set(name, letter)
	b.set("OPTARG", value)
	return status
}
