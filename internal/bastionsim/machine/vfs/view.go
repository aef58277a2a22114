package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// View is a file system with the permissions of a user. Paths begin at the root, with or without a leading slash. They
// are not cleaned before they are followed, so that "link/.." means the same as for a kernel.
type View struct {
	fs   *FS
	cred Cred
}

// As returns a view of the same file system with the permissions of another user.
func (v *View) As(c Cred) *View { return v.fs.As(c) }

// FS returns the file system.
func (v *View) FS() *FS { return v.fs }

// Stat describes the file at a path, and follows symbolic links.
func (v *View) Stat(name string) (fs.FileInfo, error) { return v.stat("stat", name, true) }

// Lstat describes the file at a path. It does not follow a symbolic link at the end of the path.
func (v *View) Lstat(name string) (fs.FileInfo, error) { return v.stat("lstat", name, false) }

func (v *View) stat(op, name string, follow bool) (fs.FileInfo, error) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.find(v.cred, name, follow)
	if err != 0 {
		return nil, fail(op, name, err)
	}
	return p.node.info(path.Base(name)), nil
}

// Access returns an error if the user has not the wanted rights: to read (4), to write (2) and to execute (1).
func (v *View) Access(name string, mode fs.FileMode) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.find(v.cred, name, true)
	if err == 0 && (!p.node.may(v.cred, mode) || mode&2 != 0 && p.node.fixed) {
		err = syscall.EACCES
	}
	return fail("access", name, err)
}

// ReadDir returns the entries of a directory, sorted by name.
func (v *View) ReadDir(name string) ([]fs.DirEntry, error) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.find(v.cred, name, true)
	switch {
	case err != 0:
	case !p.node.mode.IsDir():
		err = syscall.ENOTDIR
	case !p.node.may(v.cred, 4):
		err = syscall.EACCES
	}
	if err != 0 {
		return nil, fail("open", name, err)
	}
	entries := make([]fs.DirEntry, 0, len(p.node.children))
	for child, ino := range p.node.children {
		if n := v.fs.get(ino); n != nil {
			entries = append(entries, n.info(child))
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// create adds a node at a path that does not exist.
func (v *View) create(op, name string, n *node) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.findNew(v.cred, name)
	if err == 0 && p.slash && !n.mode.IsDir() {
		err = syscall.ENOENT
	}
	if err == 0 {
		err = v.add(p, n)
	}
	return fail(op, name, err)
}

// add adds a new node of the user to a directory.
func (v *View) add(p place, n *node) syscall.Errno {
	n.uid, n.gid = v.cred.UID, v.cred.GID
	if dir := v.fs.get(p.parent()); dir.mode&fs.ModeSetgid != 0 {
		n.gid = dir.gid
		if n.mode.IsDir() {
			n.mode |= fs.ModeSetgid
		}
	}
	return v.fs.add(p.parent(), p.name, n)
}

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Mkdir creates a directory.
func (v *View) Mkdir(name string, perm fs.FileMode) error {
	return v.create("mkdir", name, &node{mode: fs.ModeDir | perm&modeBits, children: map[string]uint64{}})
}

// MkdirAll creates a directory and its missing parents.
func (v *View) MkdirAll(name string, perm fs.FileMode) error {
	if len(name) >= MaxPath {
		return fail("mkdir", name, syscall.ENAMETOOLONG)
	}
	if info, err := v.Stat(name); err == nil {
		if info.IsDir() {
			return nil
		}
		return fail("mkdir", name, syscall.ENOTDIR)
	}
	if up := path.Dir(strings.TrimRight(name, "/")); up != name && up != "." && up != "/" {
		if err := v.MkdirAll(up, perm); err != nil {
			return err
		}
	}
	err := v.Mkdir(name, perm)
	if info, statErr := v.Stat(name); err != nil && statErr == nil && info.IsDir() {
		return nil // a concurrent Mkdir was faster
	}
	return err
}

// Symlink creates a symbolic link.
func (v *View) Symlink(target, name string) error {
	switch {
	case target == "":
		return fail("symlink", name, syscall.ENOENT)
	case len(target) >= MaxPath:
		return fail("symlink", name, syscall.ENAMETOOLONG)
	}
	return v.create("symlink", name, &node{mode: fs.ModeSymlink | 0o777, target: target})
}

// Readlink returns the target of a symbolic link.
func (v *View) Readlink(name string) (string, error) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.find(v.cred, name, false)
	if err == 0 && p.node.mode&fs.ModeSymlink == 0 {
		err = syscall.EINVAL
	}
	if err != 0 {
		return "", fail("readlink", name, err)
	}
	return p.node.target, nil
}

// Link gives a file another name.
func (v *View) Link(old, name string) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	from, err := v.fs.find(v.cred, old, false)
	if err == 0 && (from.node.mode.IsDir() || from.node.fixed || v.cred.UID != 0 && v.cred.UID != from.node.uid) {
		err = syscall.EPERM
	}
	var to place
	if err == 0 {
		to, err = v.fs.findNew(v.cred, name)
	}
	var n *node
	if err == 0 {
		n, err = v.fs.own(from.node.ino)
	}
	if err == 0 {
		err = v.fs.add(to.parent(), to.name, n)
	}
	return fail("link", name, err)
}

// Remove removes a file or an empty directory.
func (v *View) Remove(name string) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.find(v.cred, name, false)
	if err == 0 {
		err = v.mayDrop(p)
	}
	if err == 0 && p.node.mode.IsDir() && len(p.node.children) > 0 {
		err = syscall.ENOTEMPTY
	}
	if err == 0 {
		err = v.fs.drop(p.parent(), p.name)
	}
	return fail("remove", name, err)
}

// mayDrop returns an error if the user may not remove a node from its directory. With the sticky bit, only the owner of
// the node or of the directory may do so.
func (v *View) mayDrop(p place) syscall.Errno {
	dir := v.fs.get(p.parent())
	switch {
	case p.name == "":
		return syscall.EBUSY
	case p.node.fixed || dir.fixed:
		return syscall.EPERM
	case !dir.may(v.cred, 3):
		return syscall.EACCES
	case dir.mode&fs.ModeSticky != 0 && !slices.Contains([]uint32{0, dir.uid, p.node.uid}, v.cred.UID):
		return syscall.EPERM
	}
	return 0
}

// RemoveAll removes a file, or a directory with everything in it. It returns no error if the path does not exist. After
// an error, it continues with the rest, and then returns the first error.
func (v *View) RemoveAll(name string) error {
	info, err := v.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if info.IsDir() {
		entries, readErr := v.ReadDir(name)
		err = readErr
		for _, e := range entries {
			if childErr := v.RemoveAll(strings.TrimRight(name, "/") + "/" + e.Name()); err == nil {
				err = childErr
			}
		}
		if err != nil && len(entries) > 0 {
			return err
		}
	}
	return v.Remove(name)
}

// Rename moves a file or a directory, and replaces a file at the new path, like rename(2).
func (v *View) Rename(from, to string) error { return fail("rename", from, v.rename(from, to, true)) }

// RenameNew is like Rename, but fails if the new path exists.
func (v *View) RenameNew(from, to string) error {
	return fail("rename", from, v.rename(from, to, false))
}

func (v *View) rename(from, to string, replace bool) syscall.Errno {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	src, err := v.fs.find(v.cred, strings.TrimRight(from, "/"), false)
	if err != 0 {
		return err
	}
	dst, err := v.fs.walk(v.cred, strings.TrimRight(to, "/"), false)
	if err != 0 {
		return err
	}
	if dst.node != nil && !replace {
		return syscall.EEXIST
	}
	if err := v.mayDrop(src); err != 0 {
		return err
	}
	if slices.Contains(dst.dir, src.node.ino) {
		return syscall.EINVAL // into itself
	}
	if dst.node == nil {
		err = v.fs.mayAdd(v.cred, dst)
	} else {
		err = v.mayReplace(src.node, dst)
	}
	if err != 0 || dst.node != nil && dst.node.ino == src.node.ino {
		return err
	}
	// A second inode may have to be copied for each directory, and for the file itself. After this nothing fails.
	if err := v.fs.room(3*inodeCost+int64(len(src.node.data)+len(dst.name)), 3); err != 0 {
		return err
	}
	n, err := v.fs.own(src.node.ino)
	if err != 0 {
		return err
	}
	if dst.node != nil {
		if err := v.fs.drop(dst.parent(), dst.name); err != 0 {
			return err
		}
	}
	if err := v.fs.add(dst.parent(), dst.name, n); err != 0 {
		return err
	}
	return v.fs.drop(src.parent(), src.name)
}

func (v *View) mayReplace(src *node, dst place) syscall.Errno {
	if err := v.mayDrop(dst); err != 0 {
		return err
	}
	switch {
	case src.mode.IsDir() && !dst.node.mode.IsDir():
		return syscall.ENOTDIR
	case !src.mode.IsDir() && dst.node.mode.IsDir():
		return syscall.EISDIR
	case dst.node.mode.IsDir() && len(dst.node.children) > 0:
		return syscall.ENOTEMPTY
	}
	return 0
}

// Truncate shortens a file, or extends it with zeros.
func (v *View) Truncate(name string, size int64) error {
	f, err := v.OpenFile(name, O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	_ = f.Close() // closing a file in memory never fails
	return err
}

// ReadFile reads a whole file.
func (v *View) ReadFile(name string) ([]byte, error) {
	f, err := v.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, v.fs.limits.FileSize))
}

// WriteFile replaces a file's content atomically, or creates the file. Without room, the old content stays. The file gets
// the mode even if it exists already.
func (v *View) WriteFile(name string, data []byte, mode fs.FileMode) error {
	f, err := v.OpenFile(name, O_WRONLY|O_CREATE, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.replace(data); err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Mode()&modeBits == mode&modeBits || !info.Mode().IsRegular() {
		return err
	}
	return v.Chmod(name, mode)
}
