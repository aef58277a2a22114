package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// destination splits arguments of cp, mv, ln and install into sources and the path that each of them goes to.
func destination(p *Process, args []string, dir string, file bool) ([]string, func(string) string, error) {
	if dir == "" {
		if len(args) < 2 {
			return nil, nil, errors.New("missing destination file operand")
		}
		dir, args = args[len(args)-1], args[:len(args)-1]
	}
	info, err := p.FS.Stat(p.Path(dir))
	isDir := err == nil && info.IsDir() && !file
	if len(args) > 1 && !isDir {
		return nil, nil, fmt.Errorf("target '%s' is not a directory", dir)
	}
	return args, func(src string) string {
		if isDir {
			return strings.TrimSuffix(p.Path(dir), "/") + "/" + path.Base(src)
		}
		return p.Path(dir)
	}, nil
}

func cpProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "rRafpvdnuTt:", map[string]byte{"recursive": 'r', "archive": 'a', "force": 'f', "preserve": 'p', "no-clobber": 'n', "no-target-directory": 'T'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	srcs, to, err := destination(p, f.args, f.value('t', ""), f.has('T'))
	if err != nil {
		return p.Fail(err)
	}
	status := 0
	for _, src := range srcs {
		if err := p.copy(p.Path(src), to(src), f, 0); err != nil {
			status = p.Failf(1, "cannot copy '%s': %v", src, reason(err))
		}
	}
	return status
}

func (p *Process) copy(from, to string, f flags, depth int) error {
	recursive, keep := f.has('r') || f.has('R') || f.has('a'), f.has('p') || f.has('a')
	stat := p.FS.Stat
	if f.has('a') || f.has('d') || depth > 0 {
		stat = p.FS.Lstat
	}
	info, err := stat(from)
	if err == nil {
		err = p.step()
	}
	if err != nil {
		return err
	}
	if old, err := p.FS.Stat(to); err == nil {
		if f.has('n') {
			return nil
		}
		if old.Sys().(*vfs.Stat).Ino == info.Sys().(*vfs.Stat).Ino {
			return errors.New("source and destination are the same file")
		}
	}
	switch {
	case info.IsDir():
		if !recursive {
			return errors.New("-r not specified; omitting directory")
		}
		if err := p.copyDir(from, to, info, f, depth); err != nil {
			return err
		}
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := p.FS.Readlink(from)
		if err != nil {
			return err
		}
		_ = p.FS.Remove(to) // Symlink says what is wrong
		return p.FS.Symlink(target, to)
	default:
		if err := p.copyFile(from, to, info.Mode()); err != nil {
			return err
		}
	}
	if !keep {
		return nil
	}
	st := info.Sys().(*vfs.Stat)
	if p.User.UID == 0 {
		if err := p.FS.Chown(to, int(st.UID), int(st.GID)); err != nil {
			return err
		}
	}
	return errors.Join(p.FS.Chmod(to, info.Mode()), p.FS.Chtimes(to, st.Atime, info.ModTime()))
}

func (p *Process) copyDir(from, to string, info fs.FileInfo, f flags, depth int) error {
	if depth > 200 || strings.HasPrefix(path.Clean(to)+"/", path.Clean(from)+"/") {
		return errors.New("cannot copy a directory into itself")
	}
	if err := p.FS.Mkdir(to, info.Mode()|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := p.FS.ReadDir(from)
	for _, e := range entries {
		if err == nil {
			err = p.copy(from+"/"+e.Name(), to+"/"+e.Name(), f, depth+1)
		}
	}
	return err
}

func (p *Process) copyFile(from, to string, mode fs.FileMode) error {
	in, done, err := p.open(from)
	if err != nil {
		return err
	}
	defer done()
	out, err := p.FS.OpenFile(to, vfs.O_WRONLY|vfs.O_CREATE|vfs.O_TRUNC, mode.Perm()&^fs.FileMode(p.sh.umask))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func mvProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "fvnuiTt:", map[string]byte{"force": 'f', "no-clobber": 'n', "no-target-directory": 'T'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	srcs, to, err := destination(p, f.args, f.value('t', ""), f.has('T'))
	if err != nil {
		return p.Fail(err)
	}
	status := 0
	for _, src := range srcs {
		if _, err := p.FS.Lstat(to(src)); err == nil && f.has('n') {
			continue
		}
		if err := p.FS.Rename(p.Path(src), to(src)); err != nil {
			status = p.Failf(1, "cannot move '%s': %v", src, reason(err))
		}
	}
	return status
}

func lnProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "sfnvTrt:", map[string]byte{"symbolic": 's', "force": 'f', "no-dereference": 'n'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	args := f.args
	if len(args) == 1 {
		args = append(args, ".")
	}
	srcs, to, err := destination(p, args, f.value('t', ""), f.has('T') || f.has('n'))
	if err != nil {
		return p.Fail(err)
	}
	status := 0
	for _, src := range srcs {
		dst := to(src)
		if f.has('f') {
			_ = p.FS.Remove(dst) // making the link says what is wrong
		}
		if f.has('s') {
			err = p.FS.Symlink(src, dst)
		} else {
			err = p.FS.Link(p.Path(src), dst)
		}
		if err != nil {
			status = p.Failf(1, "failed to create link '%s': %v", dst, reason(err))
		}
	}
	return status
}

func installProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "dDm:o:g:vpCTt:", map[string]byte{"directory": 'd', "mode": 'm', "owner": 'o', "group": 'g'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	mode, err := parseMode(f.value('m', "755"), 0)
	if err != nil {
		return p.Fail(err)
	}
	finish := func(name string) error {
		uid, gid := -1, -1
		if f.has('o') {
			uid = userID(p.FS.FS(), f.value('o', ""))
		}
		if f.has('g') {
			gid = groupIDOf(p.FS.FS(), f.value('g', ""))
		}
		if uid >= 0 || gid >= 0 {
			if err := p.FS.Chown(name, uid, gid); err != nil {
				return err
			}
		}
		return p.FS.Chmod(name, mode)
	}
	if f.has('d') {
		for _, name := range f.args {
			if err := p.FS.MkdirAll(p.Path(name), 0o755); err != nil {
				return p.Fail(describe(name, err))
			}
			if err := finish(p.Path(name)); err != nil {
				return p.Fail(describe(name, err))
			}
		}
		return 0
	}
	if f.has('D') && len(f.args) > 1 {
		if err := p.FS.MkdirAll(path.Dir(p.Path(f.args[len(f.args)-1])), 0o755); err != nil {
			return p.Fail(err)
		}
	}
	srcs, to, err := destination(p, f.args, f.value('t', ""), f.has('T'))
	if err != nil {
		return p.Fail(err)
	}
	for _, src := range srcs {
		err := p.copyFile(p.Path(src), to(src), 0o600)
		if err == nil {
			err = finish(to(src))
		}
		if err != nil {
			return p.Failf(1, "cannot install '%s': %v", src, reason(err))
		}
	}
	return 0
}
