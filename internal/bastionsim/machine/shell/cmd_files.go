package shell

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// reason is an error without its path.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		text := pe.Err.Error()
		return errors.New(strings.ToUpper(text[:1]) + text[1:])
	}
	return err
}

// done is the exit status of a program that ends with an error, or with none.
func (p *Process) done(err error) int {
	if err != nil {
		return p.Fail(err)
	}
	return 0
}

// each calls fn for every name. It reports an error after what failed ("cannot remove"), goes on, and returns the exit
// status.
func (p *Process) each(names []string, what string, fn func(name string) error) int {
	status := 0
	for _, name := range names {
		if p.step() != nil {
			return statusKilled
		}
		if err := fn(name); err != nil {
			status = p.Failf(1, "%s", strings.TrimLeft(fmt.Sprintf("%s '%s': %v", what, name, reason(err)), " "))
		}
	}
	return status
}

// walk is each for the names and for all that is below them, as many levels as given. A directory comes before its
// entries.
func (p *Process) walk(names []string, what string, levels int, fn func(name string, info fs.FileInfo) error) int {
	below := 0
	status := p.each(names, what, func(name string) error {
		info, err := p.FS.Lstat(p.Path(name))
		if err == nil {
			err = fn(name, info)
		}
		if err != nil || !info.IsDir() || levels == 0 {
			return err
		}
		entries, err := p.FS.ReadDir(p.Path(name))
		var children []string
		for _, e := range entries {
			children = append(children, strings.TrimSuffix(name, "/")+"/"+e.Name())
		}
		below = max(below, p.walk(children, what, levels-1, fn))
		return err
	})
	return max(status, below)
}

func mkdirProgram(p *Process, f flags) int {
	mode := fs.FileMode(0o777 &^ p.sh.umask)
	return p.each(f.args, "cannot create directory", func(name string) error {
		if !f.has('p') {
			return p.FS.Mkdir(p.Path(name), mode)
		}
		return p.FS.MkdirAll(p.Path(name), mode)
	})
}

func rmProgram(p *Process, f flags) int {
	return p.each(f.args, "cannot remove", func(name string) error {
		if base := path.Base(name); base == "." || base == ".." || path.Clean(p.Path(name)) == "/" {
			return errors.New("it is dangerous to remove this directory")
		}
		info, err := p.FS.Lstat(p.Path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.has('f'):
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			return p.FS.Remove(p.Path(name))
		case !f.has('r'):
			return &fs.PathError{Op: "unlink", Path: name, Err: syscall.EISDIR}
		}
		return p.FS.RemoveAll(p.Path(name))
	})
}

// createFile makes a file without content. flag is vfs.O_EXCL if it may not exist.
func (p *Process) createFile(name string, flag int, mode fs.FileMode) error {
	file, err := p.FS.OpenFile(name, vfs.O_WRONLY|vfs.O_CREATE|flag, mode)
	if err != nil {
		return err
	}
	return file.Close()
}

func touchProgram(p *Process, f flags) int {
	when, err := parseDate(f.value('t', f.value('d', "now")), p.now())
	if err != nil {
		return p.Fail(err)
	}
	return p.each(f.args, "cannot touch", func(name string) error {
		if _, err := p.FS.Stat(p.Path(name)); errors.Is(err, fs.ErrNotExist) {
			if err := p.createFile(p.Path(name), 0, fs.FileMode(0o666&^p.sh.umask)); err != nil {
				return err
			}
		}
		return p.FS.Chtimes(p.Path(name), when, when)
	})
}

func readlinkProgram(p *Process, f flags) int {
	for _, name := range f.args {
		text, err := p.FS.Readlink(p.Path(name))
		if f.has('f') {
			if text, err = realPath(p.FS, p.Path(name)); err != nil { // the last part may be missing
				text, err = realPath(p.FS, path.Dir(p.Path(name)))
				text = path.Join(text, path.Base(name))
			}
		}
		if err != nil {
			return p.Fail(describe(name, err))
		}
		p.Printf("%s\n", text)
	}
	return 0
}

func mktempProgram(p *Process, f flags) int {
	template := append(f.args, "tmp.XXXXXXXXXX")[0]
	if len(f.args) == 0 {
		template = path.Join(cmp.Or(p.Getenv("TMPDIR"), "/tmp"), template)
	}
	head := strings.TrimRight(template, "X")
	random := len(template) - len(head)
	if random < 3 {
		return p.Failf(1, "too few X's in template '%s'", template)
	}
	name := head + randomName(random)
	var err error
	if f.has('d') {
		err = p.FS.Mkdir(p.Path(name), 0o700)
	} else {
		err = p.createFile(p.Path(name), vfs.O_EXCL, 0o600)
	}
	if err != nil {
		return p.Failf(1, "failed to create file via template '%s': %v", template, reason(err))
	}
	p.Printf("%s\n", name)
	return 0
}

func basenameProgram(p *Process, f flags) int {
	base := path.Base(f.args[0])
	if len(f.args) > 1 && base != f.args[1] {
		base = strings.TrimSuffix(base, f.args[1])
	}
	p.Printf("%s\n", base)
	return 0
}

func dirnameProgram(p *Process, f flags) int {
	for _, name := range f.args {
		p.Printf("%s\n", path.Dir(cmp.Or(strings.TrimRight(name, "/"), "/")))
	}
	return 0
}

// transfer calls fn for each source of cp, mv and ln with the path that it goes to.
func (p *Process) transfer(f flags, what string, fn func(src, dst string) error) int {
	last := len(f.args) - 1
	if last < 1 {
		return p.Failf(1, "missing destination file operand")
	}
	sources, target := f.args[:last], f.args[last]
	info, err := p.FS.Stat(p.Path(target))
	isDir := err == nil && info.IsDir() && !f.has('T')
	if len(sources) > 1 && !isDir {
		return p.Failf(1, "target '%s' is not a directory", target)
	}
	return p.each(sources, what, func(src string) error {
		dst := p.Path(target)
		if isDir {
			dst = strings.TrimSuffix(dst, "/") + "/" + path.Base(src)
		}
		return fn(src, dst)
	})
}

func mvProgram(p *Process, f flags) int {
	return p.transfer(f, "cannot move", func(src, dst string) error { return p.FS.Rename(p.Path(src), dst) })
}

func lnProgram(p *Process, f flags) int {
	return p.transfer(f, "failed to create link to", func(src, dst string) error {
		if f.has('f') {
			_ = p.FS.Remove(dst) // making the link says what is wrong
		}
		if f.has('s') {
			return p.FS.Symlink(src, dst)
		}
		return p.FS.Link(p.Path(src), dst)
	})
}

func cpProgram(p *Process, f flags) int {
	levels, stat := 0, p.FS.Stat
	if f.has('r') || f.has('a') {
		levels, stat = deepest, p.FS.Lstat
	}
	below := 0
	status := p.transfer(f, "cannot copy", func(src, dst string) error {
		from := path.Clean(src)
		if levels > 0 && strings.HasPrefix(path.Clean(dst)+"/", strings.TrimSuffix(path.Clean(p.Path(src)), "/")+"/") {
			return errors.New("cannot copy a directory into itself")
		}
		each := func(fn func(from, to string, info fs.FileInfo) error) {
			below = max(below, p.walk([]string{from}, "cannot copy", levels, func(name string, _ fs.FileInfo) error {
				info, err := stat(p.Path(name))
				if err == nil && info.IsDir() && levels == 0 {
					err = errors.New("-r not specified; omitting directory")
				}
				if err != nil {
					return err
				}
				return fn(p.Path(name), dst+strings.TrimPrefix(name, from), info)
			}))
		}
		each(p.copy)
		if f.has('p') || f.has('a') {
			each(p.copyAttributes) // last, for directories that their owner may not write
		}
		return nil
	})
	return max(status, below)
}

// copy copies a file, a link or an empty directory.
func (p *Process) copy(from, to string, info fs.FileInfo) error {
	if old, err := p.FS.Stat(to); err == nil && old.Sys().(*vfs.Stat).Ino == info.Sys().(*vfs.Stat).Ino {
		return errors.New("source and destination are the same file")
	}
	switch {
	case info.IsDir():
		if err := p.FS.Mkdir(to, info.Mode()|0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := p.FS.Readlink(from)
		if err != nil {
			return err
		}
		_ = p.FS.Remove(to) // Symlink says what is wrong
		return p.FS.Symlink(target, to)
	}
	in, done, err := p.open(from)
	if err != nil {
		return err
	}
	defer done()
	const flags = vfs.O_WRONLY | vfs.O_CREATE | vfs.O_TRUNC
	out, err := p.FS.OpenFile(to, flags, info.Mode().Perm()&^fs.FileMode(p.sh.umask))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// copyAttributes gives a copy the mode, the times and, if root does it, the owner of its source.
func (p *Process) copyAttributes(_, to string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
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
