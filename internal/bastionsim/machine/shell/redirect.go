package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// maxFD is how many descriptors a shell may have.
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

// redirects does a statement's redirections, and returns what undoes them. With exec alone they stay.
func (sh *shell) redirects(st *syntax.Stmt) (restore func(), ok bool) {
	if len(st.Redirs) == 0 {
		return func() {}, true
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
		if err := sh.redirect(rd, save); err != nil {
			restore()
			sh.complain(err)
			return nil, false
		}
	}
	if isBareExec(st.Cmd) {
		return func() {
			for _, f := range saved {
				if f != nil {
					f.close()
				}
			}
		}, true
	}
	return restore, true
}

func isBareExec(cmd syntax.Command) bool {
	call, ok := cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == "exec"
}

func (sh *shell) redirect(rd *syntax.Redirect, save func(int)) error {
	fd, err := redirectFD(rd)
	if err != nil {
		return err
	}
	if rd.Op == syntax.Hdoc || rd.Op == syntax.DashHdoc {
		text, err := sh.hereDoc(rd)
		if err != nil {
			return err
		}
		save(fd)
		sh.replace(fd, textFile(text))
		return nil
	}
	arg, err := sh.target1(rd.Word)
	if err != nil {
		return err
	}
	var f *file
	switch rd.Op {
	case syntax.WordHdoc:
		f = textFile(arg + "\n")
	case syntax.DplIn, syntax.DplOut:
		if rd.Op == syntax.DplOut && rd.N == nil && arg != "-" && !isNumber(arg) {
			f, err = sh.open(arg, vfs.O_WRONLY|vfs.O_CREATE|vfs.O_TRUNC)
			break
		}
		save(fd)
		return sh.duplicate(fd, arg)
	default:
		if info, statErr := sh.fs.Stat(sh.abs(arg)); statErr == nil && info.Mode().IsRegular() && sh.noclobber && rd.Op == syntax.RdrOut {
			return fmt.Errorf("%s: cannot overwrite existing file", arg)
		}
		f, err = sh.open(arg, openFlags(rd.Op))
	}
	if err != nil {
		return err
	}
	save(fd)
	sh.replace(fd, f)
	if rd.Op == syntax.RdrAll || rd.Op == syntax.AppAll || rd.Op == syntax.DplOut {
		save(2)
		sh.replace(2, f.dup())
	}
	return nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

func redirectFD(rd *syntax.Redirect) (int, error) {
	fd := 1
	switch rd.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		fd = 0
	}
	if rd.N == nil {
		return fd, nil
	}
	n, err := strconv.Atoi(rd.N.Value)
	if err != nil || n < 0 || n >= maxFD {
		return 0, fmt.Errorf("%s: bad file descriptor", rd.N.Value)
	}
	return n, nil
}

func openFlags(op syntax.RedirOperator) int {
	switch op {
	case syntax.RdrIn:
		return vfs.O_RDONLY
	case syntax.RdrInOut:
		return vfs.O_RDWR | vfs.O_CREATE
	case syntax.AppOut, syntax.AppAll:
		return vfs.O_WRONLY | vfs.O_CREATE | vfs.O_APPEND
	}
	return vfs.O_WRONLY | vfs.O_CREATE | vfs.O_TRUNC
}

// duplicate is N>&M, N<&M and N>&-.
func (sh *shell) duplicate(fd int, arg string) error {
	if arg == "-" {
		sh.replace(fd, nil)
		return nil
	}
	from, move := strings.CutSuffix(arg, "-")
	n, err := strconv.Atoi(from)
	if err != nil || sh.fds[n] == nil {
		return fmt.Errorf("%s: bad file descriptor", arg)
	}
	if n == fd {
		return nil
	}
	sh.replace(fd, sh.fds[n].dup())
	if move {
		sh.replace(n, nil)
	}
	return nil
}

// target1 is the one word that a redirection goes to.
func (sh *shell) target1(w *syntax.Word) (string, error) {
	if w == nil {
		return "", errors.New("a redirection has no target")
	}
	words, err := sh.fields([]*syntax.Word{w})
	if err != nil {
		return "", err
	}
	if len(words) == 1 {
		return words[0], nil
	}
	return sh.literal(w)
}

// describe is a file system's error as programs write it.
func describe(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	text := err.Error()
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return fmt.Errorf("%s: %s", name, text)
}

// open opens a file for this shell: one of the file system, or one of its own descriptors.
func (sh *shell) open(name string, flag int) (*file, error) {
	full := path.Clean(sh.abs(name))
	switch {
	case name == "":
		return nil, errors.New(": No such file or directory")
	case full == "/dev/stdin":
		full = "/dev/fd/0"
	case full == "/dev/stdout":
		full = "/dev/fd/1"
	case full == "/dev/stderr":
		full = "/dev/fd/2"
	case full == "/dev/tty":
		return sh.openTTY()
	case strings.HasPrefix(full, "/dev/tcp/"), strings.HasPrefix(full, "/dev/udp/"):
		return nil, fmt.Errorf("%s: Network is unreachable", name)
	}
	fd, ok := strings.CutPrefix(full, "/dev/fd/")
	if !ok {
		fd, ok = strings.CutPrefix(full, "/proc/self/fd/")
	}
	if ok {
		n, err := strconv.Atoi(fd)
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
	return plain(f, func() { _ = f.Close() }), nil // a file in memory closes always
}

// openTTY is the terminal, for a session that has one.
func (sh *shell) openTTY() (*file, error) {
	for _, fd := range []int{0, 1, 2} {
		if f := sh.fds[fd]; f != nil && f.tty {
			out := sh.fds[1]
			if sh.fds[2] != nil && sh.fds[2].tty {
				out = sh.fds[2]
			}
			return newFile(f.reader, out.writer, nil), nil
		}
	}
	return nil, errors.New("/dev/tty: No such device or address")
}

func (sh *shell) hereDoc(rd *syntax.Redirect) (string, error) {
	if rd.Hdoc == nil {
		return "", nil
	}
	quoted := false
	for _, part := range rd.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		quoted = quoted || !ok || strings.Contains(lit.Value, "\\")
	}
	strip := rd.Op == syntax.DashHdoc
	var b strings.Builder
	atStart := true
	for _, part := range rd.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			text, err := sh.quotedPart(part)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			atStart = false
			continue
		}
		text := lit.Value
		if strip {
			text = stripTabs(text, atStart)
		}
		atStart = strings.HasSuffix(text, "\n")
		if !quoted {
			text = unescape(text, "\\$`\n")
		}
		b.WriteString(text)
		if b.Len() > sh.r.limits.String {
			return "", sh.r.kill("string")
		}
	}
	return b.String(), nil
}

func stripTabs(text string, atStart bool) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if i > 0 || atStart {
			lines[i] = strings.TrimLeft(line, "\t")
		}
	}
	return strings.Join(lines, "")
}
