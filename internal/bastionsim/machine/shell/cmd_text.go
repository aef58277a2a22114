package shell

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// lines calls fn for each line, without its newline, until fn returns false.
func (p *Process) lines(in io.Reader, fn func(line string) (bool, error)) error {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 64<<10), maxString)
	for s.Scan() {
		if err := p.step(1); err != nil {
			return err
		}
		if more, err := fn(s.Text()); err != nil || !more {
			return err
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return errTooLong
	}
	return s.Err()
}

// write writes to the output. Programs whose input may be endless use it instead of Printf, to notice errors.
func (p *Process) write(text string) error {
	_, err := io.WriteString(p.Stdout, text)
	return err
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// allLines returns the lines of all inputs, as far as the limits allow it, and the exit status.
func (p *Process) allLines(names []string) ([]string, int) {
	var rows []string
	size := 0
	status := p.inputs(names, func(_ string, in io.Reader) error {
		text, err := p.readAll(in)
		if size += len(text); size > maxInput {
			return errTooLong
		}
		before := len(rows)
		rows = append(rows, splitLines(text)...)
		p.hold(int64(len(rows)-before) * 2 * 16) // the headers of the strings, twice while the slice grows
		return err
	})
	return rows, status
}

// rearranged writes the result of fn for all lines of the inputs.
func (p *Process) rearranged(names []string, fn func(rows []string) []string) int {
	rows, status := p.allLines(names)
	for _, row := range fn(rows) {
		if p.write(row+"\n") != nil {
			return 1
		}
	}
	return status
}

func catProgram(p *Process, f flags) int {
	return p.inputs(f.args, func(_ string, in io.Reader) error {
		_, err := io.Copy(p.Stdout, in)
		return err
	})
}

func headProgram(p *Process, f flags) int {
	bytes, errBytes := f.number('c', 0)
	rows, errRows := f.number('n', 10)
	if err := cmp.Or(errBytes, errRows); err != nil || bytes < 0 || rows < 0 {
		return p.Fail(cmp.Or(err, errors.New("a negative number is not supported")))
	}
	return p.inputs(f.args, func(_ string, in io.Reader) error {
		if f.has('c') {
			_, err := io.Copy(p.Stdout, io.LimitReader(in, int64(bytes)))
			return err
		}
		left := rows
		if left == 0 {
			return nil
		}
		return p.lines(in, func(line string) (bool, error) {
			left--
			return left > 0, p.write(line + "\n")
		})
	})
}

func tailProgram(p *Process, f flags) int {
	count, fromStart := strings.CutPrefix(f.value('n', "10"), "+")
	n, err := strconv.Atoi(strings.TrimPrefix(count, "-"))
	if err != nil {
		return p.Failf(1, "invalid number of lines: '%s'", count)
	}
	return p.rearranged(f.args, func(rows []string) []string {
		from := len(rows) - n
		if fromStart {
			from = n - 1
		}
		return rows[min(max(0, from), len(rows)):]
	})
}

func teeProgram(p *Process, f flags) int {
	flag := vfs.O_WRONLY | vfs.O_CREATE | vfs.O_TRUNC
	if f.has('a') {
		flag = vfs.O_WRONLY | vfs.O_CREATE | vfs.O_APPEND
	}
	status, outs := 0, []io.Writer{p.Stdout}
	for _, name := range f.args {
		out, done, err := p.openFile(name, flag)
		if err != nil {
			status = p.Fail(err)
			continue
		}
		defer done()
		outs = append(outs, out)
	}
	if _, err := io.Copy(io.MultiWriter(outs...), p.Stdin); err != nil {
		return p.Fail(err)
	}
	return status
}

func wcProgram(p *Process, f flags) int {
	row := func(counts [3]int, name string) {
		var columns []string
		for i, letter := range []byte("lwc") {
			if f.has(letter) || len(f.set) == 0 {
				columns = append(columns, strconv.Itoa(counts[i]))
			}
		}
		if name != "-" {
			columns = append(columns, name)
		}
		p.Printf("%s\n", strings.Join(columns, " "))
	}
	var total [3]int
	status := p.inputs(f.args, func(name string, in io.Reader) error {
		text, err := p.readAll(in)
		if err != nil {
			return err
		}
		counts := [3]int{strings.Count(text, "\n"), 0, len(text)}
		for range strings.FieldsSeq(text) {
			counts[1]++
		}
		row(counts, name)
		for i := range total {
			total[i] += counts[i]
		}
		return nil
	})
	if len(f.args) > 1 {
		row(total, "total")
	}
	return status
}

// maxRanges is how many ranges cut takes: each character of its input is compared with each of them.
const maxRanges = 1000

// parseRanges parses the list of cut (1,3-5,7-), and returns a function that reports whether a number is in it.
func parseRanges(text string) (func(n int) bool, error) {
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		from, to, dash := strings.Cut(part, "-")
		if !dash {
			to = from
		}
		a, errFrom := strconv.Atoi(cmp.Or(from, "1"))
		b, errTo := strconv.Atoi(cmp.Or(to, "1073741824"))
		if errFrom != nil || errTo != nil || a < 1 || part == "" {
			return nil, fmt.Errorf("invalid field value '%s'", text)
		}
		if spans = append(spans, span{a, b}); len(spans) > maxRanges {
			return nil, errComplex
		}
	}
	return func(n int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return n >= s.from && n <= s.to })
	}, nil
}

func cutProgram(p *Process, f flags) int {
	in, err := parseRanges(f.value('f', f.value('c', "")))
	if err != nil {
		return p.Fail(err)
	}
	sep := ""
	if f.has('f') {
		sep = f.value('d', "\t")
	}
	return p.inputs(f.args, func(_ string, input io.Reader) error {
		return p.lines(input, func(line string) (bool, error) {
			parts := strings.Split(line, sep)
			if f.has('f') && len(parts) == 1 {
				return true, p.write(line + "\n")
			}
			n := 0
			kept := slices.DeleteFunc(parts, func(string) bool { n++; return !in(n) })
			return true, p.write(strings.Join(kept, sep) + "\n")
		})
	})
}

func sortProgram(p *Process, f flags) int {
	status := p.rearranged(f.args, func(rows []string) []string {
		slices.SortFunc(rows, func(a, b string) int {
			if p.step(1) != nil {
				return 0
			}
			c := strings.Compare(a, b)
			if f.has('n') {
				c = cmp.Or(cmp.Compare(leadingNumber(a), leadingNumber(b)), c)
			}
			if f.has('r') {
				c = -c
			}
			return c
		})
		if f.has('u') {
			rows = slices.Compact(rows)
		}
		return rows
	})
	return min(2, 2*status)
}

func leadingNumber(text string) float64 {
	text = strings.TrimSpace(text)
	rest := strings.TrimLeft(strings.TrimPrefix(text, "-"), ".0123456789")
	n, _ := strconv.ParseFloat(strings.TrimSuffix(text, rest), 64)
	return n
}

var charClasses = strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9",
	"[:alpha:]", "A-Za-z", "[:alnum:]", "0-9A-Za-z", "[:space:]", " \t\n\v\f\r", "[:blank:]", " \t",
	"[:punct:]", "!-/:-@[-`{-~")

func charSet(text string) ([]rune, error) {
	text, _ = escape(text, false)
	runes := []rune(charClasses.Replace(text))
	var out []rune
	for len(runes) > 0 {
		first, last, used := runes[0], runes[0], 1
		if len(runes) > 2 && runes[1] == '-' {
			last, used = runes[2], 3
		}
		if last < first || last-first > 65536 || len(out) > 1<<20 {
			return nil, errors.New("range-endpoints are in reverse order")
		}
		for c := first; c <= last; c++ {
			out = append(out, c)
		}
		runes = runes[used:]
	}
	return out, nil
}

func trProgram(p *Process, f flags) int {
	from, err := charSet(f.args[0])
	var to []rune
	if err == nil && len(f.args) > 1 {
		to, err = charSet(f.args[1])
	}
	if err != nil {
		return p.Fail(err)
	}
	index := map[rune]int{}
	for i, c := range from {
		index[c] = i
	}
	last := rune(-1)
	in, out := bufio.NewReader(p.Stdin), bufio.NewWriter(p.Stdout)
	for {
		c, _, err := in.ReadRune()
		if err != nil {
			break
		}
		i, found := index[c]
		switch {
		case found && f.has('d'):
			continue
		case found && len(to) > 0:
			c = to[min(i, len(to)-1)]
		}
		if f.has('s') && c == last && (found || slices.Contains(to, c)) {
			continue
		}
		last = c
		if _, err := out.WriteRune(c); err != nil {
			return 1
		}
	}
	return boolStatus(out.Flush() == nil && p.step(1) == nil)
}

func seqProgram(p *Process, f flags) int {
	numbers := []int64{1, 1, 0} // the first, the step and the last
	for i, arg := range f.args[:min(3, len(f.args))] {
		n, err := strconv.ParseInt(arg, 10, 63)
		if err != nil {
			return p.Failf(1, "invalid argument: '%s'", arg)
		}
		if i == len(f.args)-1 {
			i = 2
		}
		numbers[i] = n
	}
	first, step, last := numbers[0], numbers[1], numbers[2]
	if step == 0 {
		return p.Failf(1, "invalid Zero increment value: '0'")
	}
	out := bufio.NewWriter(p.Stdout)
	for i := first; step > 0 && i <= last || step < 0 && i >= last; i += step {
		if _, err := fmt.Fprintln(out, i); err != nil || p.step(1) != nil {
			return 1
		}
	}
	return boolStatus(out.Flush() == nil)
}

func yesProgram(p *Process, f flags) int {
	text := cmp.Or(strings.Join(f.args, " "), "y") + "\n"
	block := strings.Repeat(text, max(1, 4096/len(text)))
	for p.write(block) == nil && p.step(1) == nil {
	}
	return 1
}

func base64Program(p *Process, f flags) int {
	wrap, err := f.number('w', 76)
	if err != nil {
		return p.Fail(err)
	}
	return p.inputs(f.args, func(_ string, in io.Reader) error {
		text, err := p.readAll(in)
		if err != nil {
			return err
		}
		if f.has('d') {
			data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
			return cmp.Or(p.write(string(data)), err)
		}
		text = base64.StdEncoding.EncodeToString([]byte(text))
		if wrap <= 0 {
			return p.write(text)
		}
		for line := range slices.Chunk([]byte(text), wrap) {
			if err := p.write(string(line) + "\n"); err != nil {
				return err
			}
		}
		return nil
	})
}

func sha256Program(p *Process, f flags) int {
	return p.inputs(f.args, func(name string, in io.Reader) error {
		h := sha256.New()
		if _, err := io.Copy(h, in); err != nil {
			return err
		}
		return p.write(hex.EncodeToString(h.Sum(nil)) + "  " + name + "\n")
	})
}
