package commands

import (
	"bufio"
	"bytes"
	"crypto/md5"  // md5sum is a checksum here, nothing else
	"crypto/sha1" // as is sha1sum
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
)

func textCommands() map[string]shell.Command {
	return map[string]shell.Command{
		"cat": cat, "head": head, "tail": tail, "wc": wc, "sort": sortLines, "uniq": uniq, "cut": cut, "tr": tr, "grep": grep,
		"egrep": grep, "fgrep": grep, "sed": sed, "base64": base64Command, "sha256sum": sum(sha256.New), "sha1sum": sum(sha1.New),
		"md5sum": sum(md5.New), "cmp": cmp, "less": cat, "more": cat,
	}
}

// eachLine reads lines, none longer than the limit.
func eachLine(in *invocation, r io.Reader, do func(line string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 4096), in.MaxText)
	for s.Scan() {
		if err := do(s.Text()); err != nil {
			return err
		}
	}
	return s.Err()
}

func cat(in *invocation) int {
	f := parse(in.Args, "")
	n := 0
	return inputs(in, f.args, func(_ string, r io.Reader) error {
		if !f.has("n") {
			_, err := io.Copy(in.Stdout, r)
			return err
		}
		return eachLine(in, r, func(line string) error {
			n++
			_, err := fmt.Fprintf(in.Stdout, "%6d\t%s\n", n, line)
			return err
		})
	})
}

var errDone = errors.New("done")

func count(f flags) (n int, bytes bool, names []string, err error) {
	n = 10
	value := f.get("n", "lines")
	if c := f.get("c", "bytes"); c != "" {
		value, bytes = c, true
	}
	if value != "" {
		n, err = strconv.Atoi(strings.TrimPrefix(value, "-"))
	}
	return n, bytes, f.args, err
}

// shortCount turns -20 into -n20.
func shortCount(args []string) []string {
	out := slices.Clone(args)
	for i := 1; i < len(out); i++ {
		if len(out[i]) > 1 && out[i][0] == '-' && strings.Trim(out[i][1:], "0123456789") == "" {
			out[i] = "-n" + out[i][1:]
		}
	}
	return out
}

func head(in *invocation) int {
	n, asBytes, names, err := count(parse(shortCount(in.Args), "n c lines bytes"))
	if err != nil {
		return fail(in, "invalid number")
	}
	return inputs(in, names, func(_ string, r io.Reader) error {
		if asBytes {
			_, err := io.CopyN(in.Stdout, r, int64(n))
			if err == io.EOF {
				err = nil
			}
			return err
		}
		left := n
		if left <= 0 {
			return nil
		}
		err := eachLine(in, r, func(line string) error {
			if _, err := fmt.Fprintln(in.Stdout, line); err != nil {
				return err
			}
			if left--; left == 0 {
				return errDone
			}
			return nil
		})
		if err == errDone {
			err = nil
		}
		return err
	})
}

func tail(in *invocation) int {
	f := parse(shortCount(in.Args), "n c lines bytes")
	from := strings.HasPrefix(f.get("n"), "+")
	n, asBytes, names, err := count(f)
	if err != nil {
		return fail(in, "invalid number")
	}
	return inputs(in, names, func(_ string, r io.Reader) error {
		data, err := readAll(in, r)
		if err != nil {
			return err
		}
		if asBytes {
			_, err = in.Stdout.Write(data[max(0, len(data)-n):])
			return err
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		start := max(0, len(lines)-n)
		if from {
			start = min(max(n-1, 0), len(lines))
		}
		_, err = in.Stdout.Write(bytes.Join(lines[start:], nil))
		return err
	})
}

func wc(in *invocation) int {
	f := parse(in.Args, "")
	return inputs(in, f.args, func(name string, r io.Reader) error {
		var lines, words, size int
		buf, inWord := make([]byte, 4096), false
		for {
			n, err := r.Read(buf)
			for _, c := range buf[:n] {
				size++
				lines += bool2int(c == '\n')
				space := c == ' ' || c == '\n' || c == '\t' || c == '\r'
				words += bool2int(!space && !inWord)
				inWord = !space
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		var out []string
		for _, field := range []struct {
			flag string
			n    int
		}{{"l", lines}, {"w", words}, {"c", size}} {
			if f.has(field.flag) || len(f.set) == 0 {
				out = append(out, strconv.Itoa(field.n))
			}
		}
		if name != "-" {
			out = append(out, name)
		}
		_, err := fmt.Fprintln(in.Stdout, strings.Join(out, " "))
		return err
	})
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sortLines(in *invocation) int {
	f := parse(in.Args, "k t o")
	var lines []string
	total := 0
	status := inputs(in, f.args, func(_ string, r io.Reader) error {
		return eachLine(in, r, func(line string) error {
			if total += len(line) + 16; total > in.MaxText {
				return shell.ErrText
			}
			lines = append(lines, line)
			return nil
		})
	})
	key := func(s string) string {
		number, _, _ := strings.Cut(strings.TrimRight(f.get("k"), "nrb"), ",")
		k, _ := strconv.Atoi(number)
		fields := strings.Fields(s)
		if sep := f.get("t"); sep != "" {
			fields = strings.Split(s, sep)
		}
		if k < 1 || k > len(fields) {
			return ""
		}
		return fields[k-1]
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		x, y := a, b
		if f.get("k") != "" {
			x, y = key(a), key(b)
		}
		c := strings.Compare(x, y)
		if f.has("n") {
			m, _ := strconv.ParseFloat(strings.TrimSpace(x), 64)
			n, _ := strconv.ParseFloat(strings.TrimSpace(y), 64)
			if m != n {
				c = bool2int(m > n) - bool2int(m < n)
			}
		}
		if f.has("r") {
			c = -c
		}
		return c
	})
	if f.has("u") {
		lines = slices.Compact(lines)
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(in.Stdout, l); err != nil {
			return 1
		}
	}
	return status
}

func uniq(in *invocation) int {
	f := parse(in.Args, "")
	last, n := "", 0
	flush := func() error {
		if n == 0 || f.has("d") && n < 2 || f.has("u") && n > 1 {
			return nil
		}
		if f.has("c") {
			_, err := fmt.Fprintf(in.Stdout, "%7d %s\n", n, last)
			return err
		}
		_, err := fmt.Fprintln(in.Stdout, last)
		return err
	}
	status := inputs(in, f.args, func(_ string, r io.Reader) error {
		return eachLine(in, r, func(line string) error {
			if n > 0 && line == last {
				n++
				return nil
			}
			err := flush()
			last, n = line, 1
			return err
		})
	})
	_ = flush()
	return status
}

// ranges reads 1,3-5,7-.
func ranges(s string) (func(i int) bool, error) {
	type span struct{ lo, hi int }
	var spans []span
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, both := strings.Cut(part, "-")
		r := span{1, 1 << 30}
		var err error
		if lo != "" {
			if r.lo, err = strconv.Atoi(lo); err != nil {
				return nil, err
			}
		}
		if !both {
			r.hi = r.lo
		} else if hi != "" {
			if r.hi, err = strconv.Atoi(hi); err != nil {
				return nil, err
			}
		}
		spans = append(spans, r)
	}
	return func(i int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return s.lo <= i && i <= s.hi })
	}, nil
}

func cut(in *invocation) int {
	f := parse(in.Args, "d f c b delimiter fields output-delimiter")
	delim := f.get("d", "delimiter")
	if delim == "" {
		delim = "\t"
	}
	spec, chars := f.get("f", "fields"), false
	if spec == "" {
		spec, chars = f.get("c")+f.get("b"), true
	}
	keep, err := ranges(spec)
	if err != nil || spec == "" {
		return fail(in, "you must specify a list of bytes, characters, or fields")
	}
	return inputs(in, f.args, func(_ string, r io.Reader) error {
		return eachLine(in, r, func(line string) error {
			parts, sep := strings.Split(line, delim), delim
			if chars {
				parts, sep = strings.Split(line, ""), ""
			} else if len(parts) == 1 {
				if f.has("s") {
					return nil
				}
				_, err := fmt.Fprintln(in.Stdout, line)
				return err
			}
			var out []string
			for i, p := range parts {
				if keep(i + 1) {
					out = append(out, p)
				}
			}
			_, err := fmt.Fprintln(in.Stdout, strings.Join(out, sep))
			return err
		})
	})
}

// trSet expands a-z, [:upper:] and escapes.
func trSet(s string) []byte {
	s = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`, "[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9",
		"[:alpha:]", "A-Za-z", "[:alnum:]", "A-Za-z0-9", "[:space:]", " \t\n\r", "[:blank:]", " \t").Replace(s)
	var out []byte
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i+1] == '-' && s[i] <= s[i+2] {
			for c := int(s[i]); c <= int(s[i+2]); c++ {
				out = append(out, byte(c))
			}
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return out
}

func tr(in *invocation) int {
	f := parse(in.Args, "")
	if len(f.args) == 0 {
		return fail(in, "missing operand")
	}
	from := trSet(f.args[0])
	var to []byte
	if len(f.args) > 1 {
		to = trSet(f.args[1])
	}
	var table [256]int
	for c := range table {
		at := bytes.IndexByte(from, byte(c))
		member := at >= 0 != f.has("c", "C")
		switch {
		case !member || f.has("s") && len(to) == 0:
			table[c] = c
		case f.has("d"):
			table[c] = -1
		case len(to) > 0:
			table[c] = int(to[min(max(at, 0), len(to)-1)])
			if f.has("c", "C") {
				table[c] = int(to[len(to)-1])
			}
		}
	}
	squeeze := to
	if len(to) == 0 {
		squeeze = from
	}
	last := -1
	return inputs(in, nil, func(_ string, r io.Reader) error {
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			out := buf[:0]
			for _, c := range buf[:n] {
				x := table[c]
				if x < 0 || f.has("s") && x == last && bytes.IndexByte(squeeze, byte(x)) >= 0 {
					continue
				}
				last = x
				out = append(out, byte(x))
			}
			if _, err := in.Stdout.Write(out); err != nil {
				return err
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

func base64Command(in *invocation) int {
	f := parse(in.Args, "w wrap")
	return inputs(in, f.args, func(_ string, r io.Reader) error {
		data, err := readAll(in, r)
		if err != nil {
			return err
		}
		if f.has("d", "decode", "D") {
			plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
			if err != nil {
				return errors.New("invalid input")
			}
			_, err = in.Stdout.Write(plain)
			return err
		}
		wrap := 76
		if w := f.get("w", "wrap"); w != "" {
			wrap, _ = strconv.Atoi(w)
		}
		text := base64.StdEncoding.EncodeToString(data)
		for wrap > 0 && len(text) > wrap {
			if _, err := fmt.Fprintln(in.Stdout, text[:wrap]); err != nil {
				return err
			}
			text = text[wrap:]
		}
		if wrap > 0 && text != "" {
			text += "\n"
		}
		_, err = io.WriteString(in.Stdout, text)
		return err
	})
}

func sum(algorithm func() hash.Hash) shell.Command {
	return func(in *invocation) int {
		return inputs(in, parse(in.Args, "").args, func(name string, r io.Reader) error {
			h := algorithm()
			if _, err := io.Copy(h, r); err != nil {
				return err
			}
			_, err := fmt.Fprintf(in.Stdout, "%x  %s\n", h.Sum(nil), name)
			return err
		})
	}
}

func cmp(in *invocation) int {
	f := parse(in.Args, "")
	if len(f.args) != 2 {
		return fail(in, "two files are needed")
	}
	var data [2][]byte
	for i, name := range f.args {
		r, err := open(in, name)
		if err == nil {
			data[i], err = readAll(in, r)
			r.Close()
		}
		if err != nil {
			fail(in, "%s: %v", name, reason(err))
			return 2
		}
	}
	if bytes.Equal(data[0], data[1]) {
		return 0
	}
	if !f.has("s", "q") {
		fmt.Fprintf(in.Stdout, "%s %s differ\n", f.args[0], f.args[1])
	}
	return 1
}
