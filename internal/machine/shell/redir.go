package shell

import (
	"io"
	"io/fs"
	"maps"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
	"mvdan.cc/sh/v3/syntax"
)

func copyAll(w io.Writer, r io.Reader) (int64, error) { return io.Copy(w, r) }

// redirect opens what redirections name. Descriptors are those of the machine's process: a table of streams.
func (p *proc) redirect(list []*syntax.Redirect) (closers []func(), err error) {
	p.fds = maps.Clone(p.fds)
	for _, rd := range list {
		c, err := p.redirectOne(rd)
		if c != nil {
			closers = append(closers, c)
		}
		if err != nil {
			return closers, err
		}
	}
	return closers, nil
}

func (p *proc) redirectOne(rd *syntax.Redirect) (func(), error) {
	fd := 1
	switch rd.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		fd = 0
	}
	if rd.N != nil {
		n, err := strconv.Atoi(rd.N.Value)
		if err != nil || n < 0 || n > 9 {
			return nil, p.complain("%s: bad file descriptor", clip(rd.N.Value))
		}
		fd = n
	}
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return p.heredoc(fd, rd)
	case syntax.WordHdoc:
		text, err := p.literal(rd.Word)
		p.fds[fd] = stream{r: strings.NewReader(text + "\n")}
		return nil, err
	}
	target, err := p.literal(rd.Word)
	if err != nil {
		return nil, err
	}
	switch rd.Op {
	case syntax.DplOut, syntax.DplIn:
		if n, err := strconv.Atoi(target); err == nil || target == "-" {
			return nil, p.duplicate(fd, n, target)
		}
		if rd.Op == syntax.DplIn || rd.N != nil {
			return nil, p.complain("%s: ambiguous redirect", clip(target))
		}
		return p.open(target, vfs.Write|vfs.Create|vfs.Truncate, 1, 2)
	case syntax.RdrAll:
		return p.open(target, vfs.Write|vfs.Create|vfs.Truncate, 1, 2)
	case syntax.AppAll:
		return p.open(target, vfs.Write|vfs.Create|vfs.Append, 1, 2)
	case syntax.RdrIn:
		return p.open(target, vfs.Read, fd)
	case syntax.RdrInOut:
		return p.open(target, vfs.Read|vfs.Write|vfs.Create, fd)
	case syntax.AppOut:
		return p.open(target, vfs.Write|vfs.Create|vfs.Append, fd)
	case syntax.RdrOut, syntax.ClbOut:
		if p.opt.noclobber && rd.Op == syntax.RdrOut {
			if info, err := p.view().Stat(p.abs(target)); err == nil && info.Mode().IsRegular() {
				return nil, p.complain("%s: cannot overwrite existing file", clip(target))
			}
		}
		return p.open(target, vfs.Write|vfs.Create|vfs.Truncate, fd)
	}
	return nil, p.complain("this redirection does not exist on this machine")
}

func (p *proc) heredoc(fd int, rd *syntax.Redirect) (func(), error) {
	text, err := p.heredocText(rd)
	if err != nil {
		return nil, err
	}
	if rd.Op == syntax.DashHdoc {
		lines := strings.SplitAfter(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimLeft(lines[i], "\t")
		}
		text = strings.Join(lines, "")
	}
	p.fds[fd] = stream{r: strings.NewReader(text)}
	return nil, nil
}

// heredocText expands a here-document unless its delimiter is quoted: then the parser gives one literal.
func (p *proc) heredocText(rd *syntax.Redirect) (string, error) {
	if rd.Hdoc == nil {
		return "", nil
	}
	quoted := false
	for _, part := range rd.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		quoted = quoted || !ok || strings.Contains(lit.Value, `\`)
	}
	if quoted {
		return rd.Hdoc.Lit(), nil
	}
	e := &expander{p: p}
	for _, part := range rd.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			// In a here-document a double quote is not special, so neither is a backslash before it.
			if err := e.add(unescapeDocument(lit.Value), true); err != nil {
				return "", err
			}
			continue
		}
		if err := e.part(part, true); err != nil {
			return "", err
		}
	}
	return e.cur.text(), nil
}

func unescapeDocument(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (p *proc) duplicate(fd, from int, target string) error {
	if target == "-" {
		delete(p.fds, fd)
		return nil
	}
	s, ok := p.fds[from]
	if !ok {
		return p.complain("%s: bad file descriptor", clip(target))
	}
	p.fds[fd] = s
	return nil
}

// open opens a file of the machine. /dev/stdin and its like are the process's own streams.
func (p *proc) open(target string, flag vfs.Flag, fds ...int) (func(), error) {
	if target == "" {
		return nil, p.complain(": %v", vfs.ErrNotExist)
	}
	switch target {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr":
		own := map[string]int{"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}[target]
		for _, fd := range fds {
			p.fds[fd] = p.fds[own]
		}
		return nil, nil
	}
	f, err := p.view().Open(p.abs(target), flag, 0o666&^fs.FileMode(p.umask))
	if err != nil {
		return nil, describe(err)
	}
	s := stream{}
	if flag&vfs.Read != 0 {
		s.r = stoppable{p.b(), f}
	}
	if flag&vfs.Write != 0 {
		s.w = f
	}
	for _, fd := range fds {
		p.fds[fd] = s
	}
	return func() { _ = f.Close() }, nil
}

// stoppable ends endless files when the script has to stop.
type stoppable struct {
	b *budget
	r io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.b.err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
