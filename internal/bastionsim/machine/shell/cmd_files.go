package shell

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

func (p *Process) done(err error) int {
	if err != nil {
		return p.Fail(err)
	}
	return 0
}

// each calls fn for every name. After an error, which it reports with the text what ("cannot remove"), it continues. It
// returns the exit status.
func (p *Process) each(names []string, what string, fn func(name string) error) int {
	status := 0
	for _, name := range names {
		if p.step(1) != nil {
			return statusKilled
		}
		if err := fn(name); err != nil {
			status = p.Failf(1, "%s", strings.TrimLeft(fmt.Sprintf("%s '%s': %v", what, name, reason(err)), " "))
		}
	}
	return status
}

// walk is like each, but also calls fn for everything below the names, for the given number of levels. A directory
// comes before its entries.
func (p *Process) walk(names []string, what string, levels int, fn func(name string, info fs.FileInfo) error) int {
	below := 0
	status := p.each(names, what, func(name string) error {
		info, err := p.fs.Lstat(p.abs(name))
		if err == nil {
			err = fn(name, info)
		}
		if err != nil || !info.IsDir() || levels == 0 {
			return err
		}
		entries, err := p.readDir(name)
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
	create := p.fs.Mkdir
	if f.has('p') {
		create = p.fs.MkdirAll
	}
	return p.each(f.args, "cannot create directory", func(name string) error {
		return create(p.abs(name), fs.FileMode(0o777&^p.umask))
	})
}

func rmProgram(p *Process, f flags) int {
	return p.each(f.args, "cannot remove", func(name string) error {
		if base := path.Base(name); base == "." || base == ".." || path.Clean(p.abs(name)) == "/" {
			return errors.New("it is dangerous to remove this directory")
		}
		info, err := p.fs.Lstat(p.abs(name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.has('f'):
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			return p.fs.Remove(p.abs(name))
		case !f.has('r'):
			return &fs.PathError{Op: "unlink", Path: name, Err: syscall.EISDIR}
		}
		return p.fs.RemoveAll(p.abs(name))
	})
}

// createFile creates an empty file. flag is vfs.O_EXCL if the file must not exist.
func (p *Process) createFile(name string, flag int, mode fs.FileMode) error {
	file, err := p.fs.OpenFile(name, vfs.O_WRONLY|vfs.O_CREATE|flag, mode)
	if err != nil {
		return err
	}
	return file.Close()
}

func touchProgram(p *Process, f flags) int {
	when, err := parseDate(f.value('t', f.value('d', "now")), p.s.o.Clock.Now())
	if err != nil {
		return p.Fail(err)
	}
	return p.each(f.args, "cannot touch", func(name string) error {
		if _, err := p.fs.Stat(p.abs(name)); errors.Is(err, fs.ErrNotExist) {
			if err := p.createFile(p.abs(name), 0, fs.FileMode(0o666&^p.umask)); err != nil {
				return err
			}
		}
		return p.fs.Chtimes(p.abs(name), when, when)
	})
}

func readlinkProgram(p *Process, f flags) int {
	for _, name := range f.args {
		text, err := p.fs.Readlink(p.abs(name))
		if f.has('f') {
			text, err = p.fs.Resolve(p.abs(name))
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
		template = path.Join(cmp.Or(p.value("TMPDIR"), "/tmp"), template)
	}
	head := strings.TrimRight(template, "X")
	random := len(template) - len(head)
	if random < 3 {
		return p.Failf(1, "too few X's in template '%s'", template)
	}
	name := head + randomName(random)
	var err error
	if f.has('d') {
		err = p.fs.Mkdir(p.abs(name), 0o700)
	} else {
		err = p.createFile(p.abs(name), vfs.O_EXCL, 0o600)
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

// transfer calls fn for each source of cp, mv and ln and its destination.
func (p *Process) transfer(f flags, what string, fn func(src, dst string) error) int {
	last := len(f.args) - 1
	if last < 1 {
		return p.Failf(1, "missing destination file operand")
	}
	sources, target := f.args[:last], f.args[last]
	info, err := p.fs.Stat(p.abs(target))
	isDir := err == nil && info.IsDir() && !f.has('T')
	if len(sources) > 1 && !isDir {
		return p.Failf(1, "target '%s' is not a directory", target)
	}
	return p.each(sources, what, func(src string) error {
		dst := p.abs(target)
		if isDir {
			dst = strings.TrimSuffix(dst, "/") + "/" + path.Base(src)
		}
		return fn(src, dst)
	})
}

func mvProgram(p *Process, f flags) int {
	return p.transfer(f, "cannot move", func(src, dst string) error { return p.fs.Rename(p.abs(src), dst) })
}

func lnProgram(p *Process, f flags) int {
	return p.transfer(f, "failed to create link to", func(src, dst string) error {
		if f.has('f') {
			_ = p.fs.Remove(dst) // an error shows when the link is made
		}
		if f.has('s') {
			return p.fs.Symlink(src, dst)
		}
		return p.fs.Link(p.abs(src), dst)
	})
}

func cpProgram(p *Process, f flags) int {
	levels, stat := 0, p.fs.Stat
	if f.has('r') {
		levels, stat = deepest, p.fs.Lstat
	}
	below := 0
	status := p.transfer(f, "cannot copy", func(src, dst string) error {
		from := path.Clean(src)
		if levels > 0 && strings.HasPrefix(path.Clean(dst)+"/", strings.TrimSuffix(path.Clean(p.abs(src)), "/")+"/") {
			return errors.New("cannot copy a directory into itself")
		}
		below = max(below, p.walk([]string{from}, "cannot copy", levels, func(name string, _ fs.FileInfo) error {
			info, err := stat(p.abs(name))
			if err == nil && info.IsDir() && levels == 0 {
				err = errors.New("-r not specified; omitting directory")
			}
			if err != nil {
				return err
			}
			return p.copy(p.abs(name), dst+strings.TrimPrefix(name, from), info)
		}))
		return nil
	})
	return max(status, below)
}

func (p *Process) copy(from, to string, info fs.FileInfo) error {
	if old, err := p.fs.Stat(to); err == nil && old.Sys().(*vfs.Stat).Ino == info.Sys().(*vfs.Stat).Ino {
		return errors.New("source and destination are the same file")
	}
	switch {
	case info.IsDir():
		if err := p.fs.Mkdir(to, info.Mode()|0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := p.fs.Readlink(from)
		if err != nil {
			return err
		}
		_ = p.fs.Remove(to) // an error shows in Symlink
		return p.fs.Symlink(target, to)
	}
	in, done, err := p.open(from)
	if err != nil {
		return err
	}
	defer done()
	const flags = vfs.O_WRONLY | vfs.O_CREATE | vfs.O_TRUNC
	out, err := p.fs.OpenFile(to, flags, info.Mode().Perm()&^fs.FileMode(p.umask))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

var (
	symbolicMode    = regexp.MustCompile(`^([ugoa]*)([-+=])([rwxXst]*)$`)
	modeClasses     = map[rune]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o1007, 'a': 0o7777}
	modePermissions = map[rune]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0o111, 's': 0o6000, 't': 0o1000}
)

// parseMode parses an octal mode, or a symbolic mode that changes old.
func parseMode(text string, old fs.FileMode) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return vfs.FileMode(uint32(n)), nil
	}
	bits := vfs.UnixMode(old)
	for part := range strings.SplitSeq(text, ",") {
		m := symbolicMode.FindStringSubmatch(part)
		if m == nil {
			return 0, fmt.Errorf("invalid mode: '%s'", text)
		}
		var mask, set uint32
		for _, class := range m[1] {
			mask |= modeClasses[class]
		}
		if mask == 0 {
			mask = modeClasses['a']
		}
		for _, permission := range m[3] {
			if permission != 'X' || old.IsDir() || bits&0o111 != 0 {
				set |= modePermissions[permission] & mask
			}
		}
		switch m[2] {
		case "+":
			bits |= set
		case "-":
			bits &^= set
		default:
			bits = bits&^mask | set
		}
	}
	return vfs.FileMode(bits), nil
}

// deepest is the number of levels that a recursive program descends: more than a path can have.
const deepest = vfs.MaxPath

func chmodProgram(p *Process, f flags) int {
	args, levels := f.args, 0
	if len(args) > 2 && slices.Contains([]string{"-R", "--recursive"}, args[0]) {
		args, levels = args[1:], deepest
	}
	return p.walk(args[1:], "cannot change mode of", levels, func(name string, info fs.FileInfo) error {
		if info.Mode()&fs.ModeSymlink != 0 {
			if levels > 0 {
				return nil
			}
			var err error
			if info, err = p.fs.Stat(p.abs(name)); err != nil {
				return err
			}
		}
		mode, err := parseMode(args[0], info.Mode())
		if err != nil {
			return err
		}
		return p.fs.Chmod(p.abs(name), mode)
	})
}

// owner parses "user", "user:group", ":group", and "user:" (with the user's group). A missing part is -1.
func (p *Process) owner(text string) (uid, gid int, _ error) {
	user, group, more := strings.Cut(text, ":")
	uid, gid = -1, -1
	if user != "" {
		if uid = idOf(p.fs.FS(), "/etc/passwd", user); uid < 0 {
			return 0, 0, fmt.Errorf("invalid user: '%s'", text)
		}
		if u, ok := LookupUser(p.fs.FS(), user); ok && more {
			gid = int(u.GID)
		}
	}
	if group != "" {
		if gid = idOf(p.fs.FS(), "/etc/group", group); gid < 0 {
			return 0, 0, fmt.Errorf("invalid group: '%s'", text)
		}
	}
	return uid, gid, nil
}

func chownProgram(p *Process, f flags) int {
	uid, gid, err := p.owner(f.args[0])
	if err != nil {
		return p.Fail(err)
	}
	levels, change := 0, p.fs.Chown
	if f.has('R') {
		levels, change = deepest, p.fs.Lchown
	}
	return p.walk(f.args[1:], "changing ownership of", levels, func(name string, _ fs.FileInfo) error {
		return change(p.abs(name), uid, gid)
	})
}
