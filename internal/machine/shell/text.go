package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

func builtinEcho(p *proc, args []string) (int, error) {
	args = args[1:]
	newline, escapes := true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		newline = newline && !strings.Contains(args[0], "n")
		escapes = strings.Contains(args[0], "e")
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		text = unescapeC(text)
	}
	if newline {
		text += "\n"
	}
	if _, err := io.WriteString(p.stdout(), text); err != nil {
		return 1, p.b().err()
	}
	return 0, nil
}

// unescapeC reads the escapes of $'...', echo -e and printf.
func unescapeC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n', 't', 'r', 'a', 'b', 'f', 'v', 'e', 'E', '\\', '\'', '"', '?':
			b.WriteByte("\n\t\r\a\b\f\v\x1b\x1b\\'\"?"[strings.IndexByte("ntrabfveE\\'\"?", c)])
		case 'x', 'u', 'U':
			n, digits := number(s[i+1:], 16, map[byte]int{'x': 2, 'u': 4, 'U': 8}[c])
			if i += digits; c == 'x' && digits > 0 {
				b.WriteByte(byte(n))
			} else if digits > 0 {
				b.WriteRune(rune(n))
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, digits := number(s[i:], 8, 3+b2i(c == '0'))
			i += digits - 1
			b.WriteByte(byte(n))
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func number(s string, base, most int) (n uint64, digits int) {
	for digits < most && digits < len(s) {
		v, err := strconv.ParseUint(s[:digits+1], base, 32)
		if err != nil {
			break
		}
		n = v
		digits++
	}
	return n, digits
}

func builtinPrintf(p *proc, args []string) (int, error) {
	args = args[1:]
	target := ""
	if len(args) > 1 && args[0] == "-v" {
		target, args = args[1], args[2:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return p.failf(2, "printf: usage: printf [-v var] format [arguments]")
	}
	var b strings.Builder
	format, rest, status := args[0], args[1:], 0
	for {
		used, bad := p.format(&b, format, rest)
		if status = max(status, b2i(bad)); p.b().text(b.Len()) != nil {
			return 1, p.b().err()
		}
		if rest = rest[used:]; used == 0 || len(rest) == 0 {
			break
		}
	}
	if target != "" {
		return status, p.set(target, b.String())
	}
	if _, err := io.WriteString(p.stdout(), b.String()); err != nil {
		return 1, p.b().err()
	}
	return status, nil
}

// maxWidth bounds what a width in a format can print.
const maxWidth = 4096

func (p *proc) format(b *strings.Builder, format string, args []string) (used int, bad bool) {
	next := func() string {
		if used < len(args) {
			used++
			return args[used-1]
		}
		return ""
	}
	for format != "" {
		if p.b().text(b.Len()) != nil {
			return used, true
		}
		plain, rest, found := strings.Cut(format, "%")
		b.WriteString(unescapeC(plain))
		if !found {
			break
		}
		n := len(rest) - len(strings.TrimLeft(rest, "-+ #0123456789.*"))
		if n == len(rest) {
			b.WriteString("%" + rest)
			break
		}
		spec, verb := rest[:n], rest[n]
		format = rest[n+1:]
		for strings.Contains(spec, "*") {
			width, _ := strconv.Atoi(next())
			spec = strings.Replace(spec, "*", strconv.Itoa(width), 1)
		}
		if tooWide(spec) {
			bad = true
			continue
		}
		switch verb {
		case '%':
			b.WriteByte('%')
		case 's':
			fmt.Fprintf(b, "%"+spec+"s", next())
		case 'b':
			fmt.Fprintf(b, "%"+spec+"s", unescapeC(next()))
		case 'q':
			b.WriteString(quoteWord(next()))
		case 'c':
			r, size := utf8.DecodeRuneInString(next())
			if size > 0 {
				b.WriteRune(r)
			}
		case 'd', 'i', 'u', 'o', 'x', 'X':
			n, err := p.number(next(), 0)
			if err != nil {
				p.errf("%s: printf: %v", p.name, err)
				bad = true
			}
			if verb == 'i' || verb == 'u' {
				verb = 'd'
			}
			fmt.Fprintf(b, "%"+spec+string(verb), n)
		case 'f', 'F', 'e', 'g', 'E', 'G':
			n, err := strconv.ParseFloat(next(), 64)
			bad = bad || err != nil
			fmt.Fprintf(b, "%"+spec+string(verb), n)
		default:
			p.errf("%s: printf: `%c': invalid format character", p.name, verb)
			return used, true
		}
	}
	return used, bad
}

func tooWide(spec string) bool {
	for _, n := range strings.FieldsFunc(spec, func(r rune) bool { return r < '0' || r > '9' }) {
		if v, err := strconv.Atoi(n); err != nil || v > maxWidth {
			return true
		}
	}
	return false
}

func builtinRead(p *proc, args []string) (int, error) {
	raw, delim, array, prompt := false, byte('\n'), "", ""
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		flag := args[0]
		args = args[1:]
		raw = raw || strings.Contains(flag, "r")
		last := flag[len(flag)-1]
		if strings.IndexByte("dapntu", last) < 0 || len(args) == 0 {
			continue
		}
		value := args[0]
		args = args[1:]
		switch last {
		case 'd':
			if delim = 0; value != "" {
				delim = value[0]
			}
		case 'a':
			array = value
		case 'p':
			prompt = value
		}
	}
	if prompt != "" && p.fds[0].tty {
		io.WriteString(p.stderr(), prompt)
	}
	line, err := p.readLine(delim, raw)
	if stop := p.b().err(); stop != nil {
		return 1, stop
	}
	if setErr := p.assignRead(line, args, array); setErr != nil {
		return 1, setErr
	}
	return b2i(err != nil), nil
}

// readLine reads byte by byte: what comes after the line is for the next command.
func (p *proc) readLine(delim byte, raw bool) (string, error) {
	in := p.stdin()
	var line []byte
	var one [1]byte
	for escaped := false; ; {
		n, err := in.Read(one[:])
		if n == 0 && err == nil {
			continue
		}
		if err != nil {
			return string(line), err
		}
		if err := p.b().text(len(line)); err != nil {
			return "", err
		}
		c := one[0]
		switch {
		case escaped:
			if escaped = false; c != '\n' {
				line = append(line, c)
			}
		case c == '\\' && !raw:
			escaped = true
		case c == delim:
			return string(line), nil
		default:
			line = append(line, c)
		}
	}
}

func (p *proc) assignRead(line string, names []string, array string) error {
	ifs := ifsOf(p)
	if array != "" {
		list := map[int]string{}
		for i, s := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(ifs, r) }) {
			list[i] = s
		}
		return p.update(array, func(v *variable) { v.list, v.set = list, true })
	}
	if len(names) == 0 {
		return p.set("REPLY", line)
	}
	blanks := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\n", r) {
			return r
		}
		return -1
	}, ifs)
	line = strings.Trim(line, blanks)
	for i, name := range names {
		value := line
		if i < len(names)-1 {
			at := strings.IndexAny(line, ifs)
			if at < 0 || ifs == "" {
				line = ""
			} else {
				value = line[:at]
				line = strings.TrimLeft(strings.TrimLeft(line[at:], blanks)[b2i(strings.TrimLeft(line[at:], blanks) != "" && strings.IndexByte(ifs, strings.TrimLeft(line[at:], blanks)[0]) >= 0):], blanks)
			}
		}
		if err := p.set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func builtinMapfile(p *proc, args []string) (int, error) {
	name, trim := "MAPFILE", false
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			trim = trim || strings.Contains(a, "t")
			continue
		}
		name = a
	}
	out := &capture{b: p.b()}
	defer out.release()
	if _, err := copyAll(out, p.stdin()); err != nil {
		return 1, p.b().err()
	}
	list := map[int]string{}
	for line := range strings.Lines(string(out.data)) {
		if trim {
			line = strings.TrimSuffix(line, "\n")
		}
		list[len(list)] = line
		if len(list) > p.b().limits.Fields {
			return 1, p.b().fail(ErrFields)
		}
	}
	return 0, p.update(name, func(v *variable) { v.list, v.str, v.set = list, "", true })
}
