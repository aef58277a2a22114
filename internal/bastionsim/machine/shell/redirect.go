package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

const maxFD = 64

// replace gives a descriptor another file, and closes the one it had.
func (sh *shell) replace(fd int, f *file) {
	if old := sh.fds[fd]; old != nil {
		old.close()
	}
	if f == nil {
		delete(sh.fds, fd)
		return
	}
	sh.fds[fd] = f
}

// redirects applies a statement's redirections, and returns a function that undoes them. Those of "exec" alone stay.
func (sh *shell) redirects(st *syntax.Stmt) (restore func()) {
	if len(st.Redirs) == 0 {
		return func() {}
	}
	saved := map[int]*file{}
	save := func(fd int) {
		if _, done := saved[fd]; !done {
			if saved[fd] = sh.fds[fd]; saved[fd] != nil {
				saved[fd].dup()
			}
		}
	}
	restore = func() {
		for fd, f := range saved {
			sh.replace(fd, f)
		}
	}
	for _, rd := range st.Redirs {
		if sh.redirect(rd, save); !sh.ok() {
			restore()
			return restore
		}
	}
	if call, ok := st.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 1 && call.Args[0].Lit() == "exec" {
		return func() {
			for _, f := range saved {
				if f != nil {
					f.close()
				}
			}
		}
	}
	return restore
}

func (sh *shell) redirect(rd *syntax.Redirect, save func(int)) {
	how, known := redirections[rd.Op]
	if !known {
		how.fd, how.flag = 1, vfs.O_WRONLY|vfs.O_CREATE|vfs.O_TRUNC
	}
	fd, arg := how.fd, ""
	var err error
	if rd.N != nil {
		if fd, err = strconv.Atoi(rd.N.Value); err != nil || fd < 0 || fd >= maxFD {
			sh.failf("%s: bad file descriptor", rd.N.Value)
		}
	}
	var f *file
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		f = textFile(sh.hereDoc(rd))
	case syntax.WordHdoc:
		f = textFile(sh.literal(rd.Word) + "\n")
	default:
		words := sh.fields([]*syntax.Word{rd.Word})
		if len(words) != 1 {
			sh.failf("ambiguous redirect")
			return
		}
		arg = words[0]
	}
	if !sh.ok() {
		return
	}
	switch {
	case f != nil:
	case rd.Op == syntax.DplIn || rd.Op == syntax.DplOut && (rd.N != nil || arg == "-" || isNumber(arg)):
		save(fd)
		sh.duplicate(fd, arg)
		return
	default:
		if f, err = sh.open(arg, how.flag); err != nil {
			sh.fail(err)
			return
		}
	}
	save(fd)
	sh.replace(fd, f)
	if rd.Op == syntax.RdrAll || rd.Op == syntax.AppAll || rd.Op == syntax.DplOut {
		save(2)
		sh.replace(2, f.dup())
	}
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// redirections maps operators to a descriptor and to the flags for opening a file. All other operators are like ">".
var redirections = map[syntax.RedirOperator]struct{ fd, flag int }{
	syntax.RdrIn: {0, vfs.O_RDONLY}, syntax.RdrInOut: {0, vfs.O_RDWR | vfs.O_CREATE},
	syntax.DplIn: {}, syntax.Hdoc: {}, syntax.DashHdoc: {}, syntax.WordHdoc: {},
	syntax.AppOut: {1, vfs.O_WRONLY | vfs.O_CREATE | vfs.O_APPEND},
	syntax.AppAll: {1, vfs.O_WRONLY | vfs.O_CREATE | vfs.O_APPEND},
}

// duplicate executes N>&M, N<&M and N>&-.
func (sh *shell) duplicate(fd int, arg string) {
	if arg == "-" {
		sh.replace(fd, nil)
		return
	}
	switch n, err := strconv.Atoi(arg); {
	case err != nil || sh.fds[n] == nil:
		sh.failf("%s: bad file descriptor", arg)
	case n != fd:
		sh.replace(fd, sh.fds[n].dup())
	}
}

// reason returns the text of an error without its path, as programs write it.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return strings.ToUpper(errno.Error()[:1]) + errno.Error()[1:]
	}
	return err.Error()
}

// describe returns an error of a file, with the name that the user gave.
func describe(name string, err error) error { return fmt.Errorf("%s: %s", name, reason(err)) }

// open opens a file of the file system, or a descriptor of this shell.
func (sh *shell) open(name string, flag int) (*file, error) {
	full := path.Clean(sh.abs(name))
	if number, ok := map[string]string{"/dev/stdin": "0", "/dev/stdout": "1", "/dev/stderr": "2"}[full]; ok {
		full = "/dev/fd/" + number
	}
	switch {
	case name == "":
		return nil, errors.New(": No such file or directory")
	case full == "/dev/tty":
		for fd := range 3 {
			if f := sh.fds[fd]; f != nil && f.tty && (fd == 0) == (flag == vfs.O_RDONLY) {
				return f.dup(), nil
			}
		}
		return nil, errors.New("/dev/tty: No such device or address")
	case strings.HasPrefix(full, "/dev/tcp/"), strings.HasPrefix(full, "/dev/udp/"):
		return nil, fmt.Errorf("%s: Network is unreachable", name)
	case path.Dir(full) == "/dev/fd", path.Dir(full) == "/proc/self/fd":
		n, err := strconv.Atoi(path.Base(full))
		if err != nil || sh.fds[n] == nil {
			return nil, fmt.Errorf("%s: No such file or directory", name)
		}
		return sh.fds[n].dup(), nil
	}
	f, err := sh.fs.OpenFile(sh.abs(name), flag, fs.FileMode(0o666&^sh.umask))
	if err != nil {
		return nil, describe(name, err)
	}
	if info, statErr := f.Stat(); statErr == nil && info.IsDir() && flag == vfs.O_RDONLY {
		_ = f.Close()
		return nil, fmt.Errorf("%s: Is a directory", name)
	}
	return newFile(func(_ context.Context, p []byte) (int, error) { return f.Read(p) },
		func(_ context.Context, p []byte) (int, error) { return f.Write(p) },
		func() { _ = f.Close() }), nil // closing a file in memory never fails
}

// tabs matches the tabs at the beginning of a line, which <<- removes.
var tabs = regexp.MustCompile(`(?m)^\t+`)

func (sh *shell) hereDoc(rd *syntax.Redirect) string {
	if rd.Hdoc == nil {
		return ""
	}
	quoted := slices.ContainsFunc(rd.Word.Parts, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return !ok || strings.Contains(lit.Value, "\\")
	})
	e := &expander{sh: sh}
	atStart := true
	for _, part := range rd.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			sh.part(e, part, true)
			atStart = false
			continue
		}
		text := lit.Value
		if rd.Op == syntax.DashHdoc && !atStart {
			text = tabs.ReplaceAllString("-"+text, "")[1:]
		} else if rd.Op == syntax.DashHdoc {
			text = tabs.ReplaceAllString(text, "")
		}
		if atStart = strings.HasSuffix(text, "\n"); !quoted {
			text = inDocument.Replace(text)
		}
		e.add(text, true)
	}
	return joinPieces(e.cur)
}
