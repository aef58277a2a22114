package shell

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// ranges is a list as cut knows it: 1,3-5,7-.
func parseRanges(text string) (func(n int) bool, error) {
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		a, b, dash := strings.Cut(part, "-")
		s := span{1, 1 << 30}
		var err error
		if a != "" {
			s.from, err = strconv.Atoi(a)
		}
		if !dash {
			s.to = s.from
		} else if b != "" && err == nil {
			s.to, err = strconv.Atoi(b)
		}
		if err != nil || s.from < 1 {
			return nil, fmt.Errorf("invalid field value '%s'", text)
		}
		spans = append(spans, s)
	}
	return func(n int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return n >= s.from && n <= s.to })
	}, nil
}

func cutProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "d:f:c:b:s", map[string]byte{"delimiter": 'd', "fields": 'f', "characters": 'c'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	list := f.value('f', f.value('c', f.value('b', "")))
	in, err := parseRanges(list)
	if err != nil {
		return p.Fail(err)
	}
	sep := f.value('d', "\t")
	return p.inputs(f.args, func(_ string, r io.Reader) error {
		return p.lines(r, func(line string) (bool, error) {
			parts, glue := strings.Split(line, sep), sep
			switch {
			case !f.has('f'):
				parts, glue = strings.Split(line, ""), ""
			case len(parts) == 1:
				if !f.has('s') {
					_, err := io.WriteString(p.Stdout, line+"\n")
					return true, err
				}
				return true, nil
			}
			n := 0
			kept := slices.DeleteFunc(parts, func(string) bool { n++; return !in(n) })
			_, err := io.WriteString(p.Stdout, strings.Join(kept, glue)+"\n")
			return true, err
		})
	})
}

func sortProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "rnufbhVcsk:t:o:", map[string]byte{"reverse": 'r', "numeric-sort": 'n', "unique": 'u', "key": 'k', "field-separator": 't', "output": 'o'}, false)
	if err != nil {
		return p.Failf(2, "%v", err)
	}
	rows, status := p.allLines(f.args)
	key := func(line string) string { return line }
	if k := f.value('k', ""); k != "" {
		digits := strings.IndexFunc(k, func(c rune) bool { return c < '0' || c > '9' })
		if digits < 0 {
			digits = len(k)
		}
		n, _ := strconv.Atoi(k[:digits])
		f.set['n'] = f.has('n') || strings.Contains(k[digits:], "n")
		f.set['r'] = f.has('r') || strings.Contains(k[digits:], "r")
		key = func(line string) string {
			fields := strings.Fields(line)
			if t := f.value('t', ""); t != "" {
				fields = strings.Split(line, t)
			}
			if n < 1 || n > len(fields) {
				return ""
			}
			return fields[n-1]
		}
	}
	compare := func(a, b string) int {
		x, y := key(a), key(b)
		c := strings.Compare(x, y)
		switch {
		case f.has('n') || f.has('h'):
			c = cmp.Or(cmp.Compare(leadingNumber(x), leadingNumber(y)), strings.Compare(a, b))
		case f.has('f'):
			c = strings.Compare(strings.ToLower(x), strings.ToLower(y))
		}
		if f.has('r') {
			c = -c
		}
		return c
	}
	slices.SortStableFunc(rows, compare)
	if f.has('u') {
		rows = slices.CompactFunc(rows, func(a, b string) bool { return key(a) == key(b) })
	}
	out := p.Stdout
	if name := f.value('o', ""); name != "" {
		w, done, err := p.create(name, vfs.O_TRUNC)
		if err != nil {
			return p.Fail(err)
		}
		defer done()
		out = w
	}
	for _, row := range rows {
		if _, err := io.WriteString(out, row+"\n"); err != nil {
			return 2
		}
	}
	return status
}

func leadingNumber(text string) float64 {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' || end == 0 && text[end] == '-') {
		end++
	}
	n, _ := strconv.ParseFloat(text[:end], 64)
	return n
}

func uniqProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "cdui", map[string]byte{"count": 'c', "repeated": 'd', "unique": 'u'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	rows, status := p.allLines(f.args[:min(1, len(f.args))])
	for i := 0; i < len(rows); {
		n := 1
		for i+n < len(rows) && (rows[i+n] == rows[i] || f.has('i') && strings.EqualFold(rows[i+n], rows[i])) {
			n++
		}
		if !(f.has('d') && n == 1) && !(f.has('u') && n > 1) {
			if f.has('c') {
				p.Printf("%7d ", n)
			}
			p.Printf("%s\n", rows[i])
		}
		i += n
	}
	return status
}

// charSet is a set of characters as tr knows it.
func charSet(text string) ([]rune, error) {
	text, _ = escape(text, false)
	for class, chars := range map[string]string{"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:alpha:]": "A-Za-z", "[:alnum:]": "0-9A-Za-z", "[:space:]": " \t\n\v\f\r", "[:blank:]": " \t", "[:punct:]": "!-/:-@[-`{-~"} {
		text = strings.ReplaceAll(text, class, chars)
	}
	runes := []rune(text)
	var out []rune
	for i := 0; i < len(runes); i++ {
		if i+2 < len(runes) && runes[i+1] == '-' {
			if runes[i+2] < runes[i] || runes[i+2]-runes[i] > 65536 {
				return nil, errors.New("range-endpoints are in reverse order")
			}
			for c := runes[i]; c <= runes[i+2]; c++ {
				out = append(out, c)
			}
			i += 2
			continue
		}
		out = append(out, runes[i])
	}
	return out, nil
}

func trProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "dscCt", map[string]byte{"delete": 'd', "squeeze-repeats": 's', "complement": 'c'}, true)
	if err != nil || len(f.args) == 0 {
		return p.Failf(1, "%v", cmp.Or(err, errors.New("missing operand")))
	}
	from, err := charSet(f.args[0])
	if err != nil {
		return p.Fail(err)
	}
	var to []rune
	if len(f.args) > 1 {
		if to, err = charSet(f.args[1]); err != nil {
			return p.Fail(err)
		}
	}
	index := map[rune]int{}
	for i, c := range from {
		index[c] = i
	}
	complement := f.has('c') || f.has('C')
	last := rune(-1)
	in := bufio.NewReader(p.Stdin)
	out := bufio.NewWriter(p.Stdout)
	for {
		c, _, err := in.ReadRune()
		if err != nil {
			break
		}
		i, found := index[c]
		if complement {
			i, found = len(to)-1, !found
		}
		switch {
		case found && f.has('d'):
			continue
		case found && len(to) > 0:
			c = to[max(0, min(i, len(to)-1))]
		}
		if f.has('s') && c == last && (found || len(to) > 0 && slices.Contains(to, c)) {
			continue
		}
		last = c
		if _, err := out.WriteRune(c); err != nil {
			return 1
		}
	}
	if out.Flush() != nil || p.step() != nil {
		return 1
	}
	return 0
}

func seqProgram(_ context.Context, p *Process) int {
	args, sep, width := p.Args[1:], "\n", 0
	for len(args) > 1 && (args[0] == "-s" || args[0] == "-w") {
		if args[0] == "-w" {
			width = len(args[len(args)-1])
			args = args[1:]
			continue
		}
		sep, args = args[1], args[2:]
	}
	n := []int64{1, 1, 1}
	for i, a := range args {
		v, err := strconv.ParseInt(a, 10, 63)
		if err != nil || len(args) > 3 {
			return p.Failf(1, "invalid argument: '%s'", a)
		}
		n[i] = v
	}
	first, step, last := int64(1), int64(1), n[0]
	switch len(args) {
	case 0:
		return p.Failf(1, "missing operand")
	case 2:
		first, last = n[0], n[1]
	case 3:
		first, step, last = n[0], n[1], n[2]
	}
	if step == 0 {
		return p.Failf(1, "invalid Zero increment value: '0'")
	}
	out := bufio.NewWriter(p.Stdout)
	for i := first; step > 0 && i <= last || step < 0 && i >= last; i += step {
		if i != first {
			_, _ = out.WriteString(sep) // the end says what is wrong
		}
		if _, err := out.WriteString(fmt.Sprintf("%0*d", min(width, 32), i)); err != nil || p.step() != nil {
			return 1
		}
		if i > 1<<61 {
			break
		}
	}
	_, _ = out.WriteString("\n")
	return boolStatus(out.Flush() == nil)
}

func yesProgram(_ context.Context, p *Process) int {
	text := "y"
	if len(p.Args) > 1 {
		text = strings.Join(p.Args[1:], " ")
	}
	block := strings.Repeat(text+"\n", max(1, 4096/(len(text)+1)))
	for {
		if _, err := io.WriteString(p.Stdout, block); err != nil || p.step() != nil {
			return 1
		}
	}
}
