package shell

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

var textCommands = map[string]Command{
	"cat": catProgram, "tac": tacProgram, "head": headProgram, "tail": headProgram, "tee": teeProgram, "wc": wcProgram, "cut": cutProgram,
	"sort": sortProgram, "uniq": uniqProgram, "tr": trProgram, "seq": seqProgram, "yes": yesProgram, "base64": base64Program,
	"md5sum": sumProgram(md5.New), "sha256sum": sumProgram(sha256.New), "sha512sum": sumProgram(sha512.New),
	"xargs": xargsProgram, "grep": grepProgram, "sed": sedProgram,
}

// lines calls fn for each line without its end, until fn says to stop.
func (p *Process) lines(in io.Reader, fn func(line string) (bool, error)) error {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 64<<10), p.sh.r.limits.String)
	for s.Scan() {
		if err := p.step(); err != nil {
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

func catProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "nbAETvsu", map[string]byte{"number": 'n', "show-all": 'A'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	n := 0
	return p.inputs(f.args, func(_ string, in io.Reader) error {
		if !f.has('n') && !f.has('A') && !f.has('E') && p.name() != "nl" {
			_, err := io.Copy(p.Stdout, in)
			return err
		}
		return p.lines(in, func(line string) (bool, error) {
			n++
			if f.has('n') || p.name() == "nl" {
				p.Printf("%6d\t", n)
			}
			if f.has('A') || f.has('E') {
				line += "$"
			}
			_, err := io.WriteString(p.Stdout, line+"\n")
			return true, err
		})
	})
}

func tacProgram(_ context.Context, p *Process) int {
	return p.inputs(p.Args[1:], func(_ string, in io.Reader) error {
		text, err := p.readAll(in)
		if err != nil {
			return err
		}
		rows := splitLines(text)
		if p.name() == "tac" {
			slices.Reverse(rows)
		}
		for _, row := range rows {
			if p.name() == "rev" {
				runes := []rune(row)
				slices.Reverse(runes)
				row = string(runes)
			}
			if _, err := io.WriteString(p.Stdout, row+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// headProgram is head and tail.
func headProgram(_ context.Context, p *Process) int {
	args := slices.Clone(p.Args[1:])
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && isNumber(args[0][1:]) {
		args = append([]string{"-n", args[0][1:]}, args[1:]...)
	}
	f, err := parseFlags(args, "n:c:qvfF", map[string]byte{"lines": 'n', "bytes": 'c', "quiet": 'q', "follow": 'f'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	count := f.value('c', f.value('n', "10"))
	n, err := parseSize(strings.TrimLeft(count, "+"))
	if err != nil {
		return p.Fail(err)
	}
	first := true
	return p.inputs(f.args, func(name string, in io.Reader) error {
		if len(f.args) > 1 && !f.has('q') {
			p.Printf("%s==> %s <==\n", map[bool]string{false: "\n"}[first], name)
			first = false
		}
		switch {
		case p.name() == "head" && f.has('c') && n >= 0:
			_, err := io.Copy(p.Stdout, io.LimitReader(in, n))
			return err
		case p.name() == "head" && n >= 0:
			if n == 0 {
				return nil
			}
			left := n
			return p.lines(in, func(line string) (bool, error) {
				left--
				_, err := io.WriteString(p.Stdout, line+"\n")
				return left > 0, err
			})
		}
		return p.lastPart(in, count, n, f.has('c'))
	})
}

// lastPart is tail, and head with a negative number.
func (p *Process) lastPart(in io.Reader, count string, n int64, bytes bool) error {
	text, err := p.readAll(in)
	if err != nil {
		return err
	}
	size := int64(len(text))
	parts := strings.SplitAfter(text, "\n")
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	if !bytes {
		size = int64(len(parts))
	}
	from, to := size-max(n, -n), size
	switch {
	case p.name() == "head":
		from, to = 0, size+n
	case strings.HasPrefix(count, "+"):
		from = n - 1
	}
	from, to = max(0, min(from, size)), max(0, min(to, size))
	if from > to {
		return nil
	}
	if bytes {
		_, err = io.WriteString(p.Stdout, text[from:to])
	} else {
		_, err = io.WriteString(p.Stdout, strings.Join(parts[from:to], ""))
	}
	return err
}

func teeProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "ai", map[string]byte{"append": 'a'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	flag, status := vfs.O_TRUNC, 0
	if f.has('a') {
		flag = vfs.O_APPEND
	}
	outs := []io.Writer{p.Stdout}
	for _, name := range f.args {
		out, done, err := p.create(name, flag)
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

func wcProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "lwcmL", map[string]byte{"lines": 'l', "words": 'w', "bytes": 'c', "chars": 'm'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	all := !f.has('l') && !f.has('w') && !f.has('c') && !f.has('m')
	row := func(lines, words, bytes int, name string) {
		var cols []string
		for _, c := range []struct {
			on bool
			n  int
		}{{all || f.has('l'), lines}, {all || f.has('w'), words}, {all || f.has('c') || f.has('m'), bytes}} {
			if c.on {
				cols = append(cols, strconv.Itoa(c.n))
			}
		}
		if name != "-" {
			cols = append(cols, name)
		}
		p.Printf("%s\n", strings.Join(cols, " "))
	}
	var total [3]int
	status := p.inputs(f.args, func(name string, in io.Reader) error {
		var lines, words, bytes int
		inWord := false
		buf := make([]byte, 32<<10)
		for {
			n, err := in.Read(buf)
			for _, c := range buf[:n] {
				if c == '\n' {
					lines++
				}
				space := c == ' ' || c >= 9 && c <= 13
				if !space && !inWord {
					words++
				}
				inWord = !space
			}
			bytes += n
			if err != nil {
				if err != io.EOF {
					return err
				}
				break
			}
		}
		total[0], total[1], total[2] = total[0]+lines, total[1]+words, total[2]+bytes
		row(lines, words, bytes, name)
		return nil
	})
	if len(f.args) > 1 {
		row(total[0], total[1], total[2], "total")
	}
	return status
}

// allLines are the lines of all inputs.
func (p *Process) allLines(names []string) ([]string, int) {
	var rows []string
	size := 0
	status := p.inputs(names, func(_ string, in io.Reader) error {
		text, err := p.readAll(in)
		if size += len(text); size > 8*p.sh.r.limits.String {
			return errTooLong
		}
		rows = append(rows, splitLines(text)...)
		return err
	})
	return rows, status
}

func base64Program(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "diw:", map[string]byte{"decode": 'd', "wrap": 'w', "ignore-garbage": 'i'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	wrap, err := strconv.Atoi(f.value('w', "76"))
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
			_, writeErr := p.Stdout.Write(data)
			if err != nil {
				return errors.New("invalid input")
			}
			return writeErr
		}
		text = base64.StdEncoding.EncodeToString([]byte(text))
		for wrap > 0 && len(text) > wrap {
			if _, err := io.WriteString(p.Stdout, text[:wrap]+"\n"); err != nil {
				return err
			}
			text = text[wrap:]
		}
		if wrap > 0 {
			text += "\n"
		}
		_, err = io.WriteString(p.Stdout, text)
		return err
	})
}

func sumProgram(newHash func() hash.Hash) Command {
	return func(_ context.Context, p *Process) int {
		f, err := parseFlags(p.Args[1:], "cbts", map[string]byte{"check": 'c', "status": 's'}, false)
		if err != nil {
			return p.Failf(1, "%v", err)
		}
		sum := func(in io.Reader) (string, error) {
			h := newHash()
			_, err := io.Copy(h, in)
			return hex.EncodeToString(h.Sum(nil)), err
		}
		bad := 0
		status := p.inputs(f.args, func(name string, in io.Reader) error {
			if !f.has('c') {
				text, err := sum(in)
				p.Printf("%s  %s\n", text, name)
				return err
			}
			return p.lines(in, func(line string) (bool, error) {
				want, name, _ := strings.Cut(line, " ")
				name = strings.TrimLeft(name, " *")
				file, done, err := p.open(name)
				if err != nil {
					return false, err
				}
				got, err := sum(file)
				done()
				result := "OK"
				if got != want {
					result, bad = "FAILED", bad+1
				}
				if !f.has('s') {
					p.Printf("%s: %s\n", name, result)
				}
				return true, err
			})
		})
		return max(status, min(bad, 1))
	}
}
