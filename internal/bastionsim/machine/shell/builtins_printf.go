package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansi is what $'...' is.
func ansi(text string) string {
	out, _ := escape(text, false)
	out, _, _ = strings.Cut(out, "\x00")
	return out
}

var simpleEscapes = map[byte]string{'a': "\a", 'b': "\b", 'e': "\x1b", 'E': "\x1b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\\': "\\", '\'': "'", '"': "\"", '?': "?"}

// escape replaces what stands behind backslashes. With zero, as echo and %b have it, octal numbers begin with a zero, and
// \c ends the text (stop).
func escape(text string, zero bool) (_ string, stop bool) {
	if !strings.Contains(text, "\\") {
		return text, false
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		c := text[i]
		switch {
		case zero && (c == '\'' || c == '"'):
			b.WriteByte('\\')
			b.WriteByte(c)
		case simpleEscapes[c] != "":
			b.WriteString(simpleEscapes[c])
		case c == 'c' && zero:
			return b.String(), true
		case c >= '0' && c <= '7':
			start := i
			if zero && c == '0' {
				start++
			}
			i += digits(text[i:], &b, 8, start-i, 3)
		case c == 'x':
			i += digits(text[i:], &b, 16, 1, 2)
		case c == 'u':
			i += digits(text[i:], &b, 16, 1, 4)
		case c == 'U':
			i += digits(text[i:], &b, 16, 1, 8)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), false
}

// digits writes the character with a number, which begins at skip and has at most most digits, and says how many bytes
// of text it was beside the first.
func digits(text string, b *strings.Builder, base, skip, most int) int {
	end := skip
	for end < len(text) && end-skip < most {
		if _, err := strconv.ParseUint(text[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	if end == skip {
		if skip == 0 || text[0] == '0' {
			b.WriteByte(0)
		} else {
			b.WriteString("\\" + text[:1])
		}
		return max(0, end-1)
	}
	n, err := strconv.ParseUint(text[skip:end], base, 32)
	switch {
	case err != nil:
	case text[0] == 'u' || text[0] == 'U':
		b.WriteRune(rune(n))
	default:
		b.WriteByte(byte(n))
	}
	return end - 1
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
		return p.status
	}
	if _, err := io.WriteString(b.out, p.out.String()); err != nil && !b.out.broken {
		return b.failf(1, "write error: %v", err)
	}
	if p.warning != nil {
		return b.failf(1, "%v", p.warning)
	}
	return p.status
}

// printer formats as printf(1) does.
type printer struct {
	sh      *shell
	args    []string
	out     strings.Builder
	stop    bool
	status  int
	warning error
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
	for i := 0; i < len(format) && !p.stop; i++ {
		if p.out.Len() > p.sh.r.limits.String {
			return p.sh.r.kill("string")
		}
		switch c := format[i]; {
		case c == '\\':
			end := i + 1
			for end < len(format) && end < i+10 && format[end] != '%' && (end == i+1 || format[end] != '\\') {
				end++
			}
			if end == i+1 && end < len(format) {
				end++
			}
			text, _ := escape(format[i:end], false)
			if strings.HasPrefix(format[i:], `\c`) {
				p.stop = true
				return nil
			}
			p.out.WriteString(text)
			i = end - 1
		case c == '%' && i+1 < len(format) && format[i+1] == '%':
			p.out.WriteByte('%')
			i++
		case c == '%':
			length, err := p.verb(format[i:])
			if err != nil {
				return err
			}
			i += length - 1
		default:
			p.out.WriteByte(c)
		}
	}
	return nil
}

// verb formats one argument, and says how long its directive is.
func (p *printer) verb(text string) (int, error) {
	i := 1
	for i < len(text) && strings.IndexByte("-+ #0'", text[i]) >= 0 {
		i++
	}
	flags := strings.ReplaceAll(text[1:i], "'", "")
	width, i, err := p.number(text, i)
	if err != nil {
		return 0, err
	}
	precision := -1
	if i < len(text) && text[i] == '.' {
		if precision, i, err = p.number(text, i+1); err != nil {
			return 0, err
		}
		precision = max(precision, 0)
	}
	for i < len(text) && strings.IndexByte("hlLqjzt", text[i]) >= 0 && i+1 < len(text) && text[i] != 'q' {
		i++
	}
	if i == len(text) {
		return 0, fmt.Errorf("`%s': missing format character", text)
	}
	if width < 0 {
		flags, width = flags+"-", -width
	}
	spec := "%" + flags
	if width > 0 {
		spec += strconv.Itoa(width)
	}
	switch verb := text[i]; verb {
	case 's', 'b', 'q', 'c':
		p.text(verb, flags, width, precision)
	case 'd', 'i', 'u', 'x', 'X', 'o':
		if precision >= 0 {
			spec += "." + strconv.Itoa(precision)
		}
		n := p.integer(p.next())
		if verb == 'i' || verb == 'u' {
			verb = 'd'
		}
		if verb == 'd' && text[i] != 'u' {
			fmt.Fprintf(&p.out, spec+"d", n)
		} else {
			fmt.Fprintf(&p.out, spec+string(verb), uint64(n))
		}
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if precision >= 0 {
			spec += "." + strconv.Itoa(min(precision, 100))
		}
		arg := p.next()
		f, err := strconv.ParseFloat(arg, 64)
		if err != nil && arg != "" {
			p.warn(arg)
		}
		fmt.Fprintf(&p.out, spec+string(verb), f)
	case '(':
		end := strings.Index(text[i:], ")T")
		if end < 0 {
			return 0, fmt.Errorf("`%s': invalid format", text)
		}
		p.out.WriteString(p.time(text[i+1:i+end], p.next()))
		return i + end + 2, nil
	default:
		return 0, fmt.Errorf("`%c': invalid format character", verb)
	}
	return i + 1, nil
}

// number reads a width or a precision, which an argument may give. It is limited as strings are.
func (p *printer) number(text string, i int) (int, int, error) {
	if i < len(text) && text[i] == '*' {
		n := int(p.integer(p.next()))
		if max(n, -n) > p.sh.r.limits.String/4 {
			return 0, 0, p.sh.r.kill("string")
		}
		return n, i + 1, nil
	}
	end := i
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == i {
		return 0, i, nil
	}
	n, err := strconv.Atoi(text[i:end])
	if err != nil || n > p.sh.r.limits.String/4 {
		return 0, 0, p.sh.r.kill("string")
	}
	return n, end, nil
}

func (p *printer) text(verb byte, flags string, width, precision int) {
	arg := p.next()
	switch verb {
	case 'b':
		arg, p.stop = escape(arg, true)
	case 'q':
		arg = quote(arg)
	case 'c':
		_, size := utf8.DecodeRuneInString(arg)
		arg = arg[:size]
	}
	if precision >= 0 && utf8.RuneCountInString(arg) > precision {
		arg = string([]rune(arg)[:precision])
	}
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(arg)))
	if strings.Contains(flags, "-") {
		p.out.WriteString(arg + pad)
		return
	}
	p.out.WriteString(pad + arg)
}

func (p *printer) warn(arg string) {
	p.warning = fmt.Errorf("%s: invalid number", arg)
	p.status = 1
}

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
