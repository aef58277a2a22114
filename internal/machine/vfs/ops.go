package vfs

import (
	"io/fs"
	"path"
	"strings"
	"time"
)

// Info describes a file; it is an fs.FileInfo and an fs.DirEntry.
type Info struct {
	name     string
	mode     fs.FileMode
	size     int64
	mtime    time.Time
	UID, GID int
	// Target of a symbolic link.
	Target string
	same   *node
}

func (i Info) Name() string               { return i.name }
func (i Info) Size() int64                { return i.size }
func (i Info) Mode() fs.FileMode          { return i.mode }
func (i Info) Type() fs.FileMode          { return i.mode.Type() }
func (i Info) ModTime() time.Time         { return i.mtime }
func (i Info) IsDir() bool                { return i.mode.IsDir() }
func (i Info) Sys() any                   { return nil }
func (i Info) Info() (fs.FileInfo, error) { return i, nil }

// Same says whether both are the same file.
func (i Info) Same(other Info) bool { return i.same == other.same }

func (n *node) info(name string) Info {
	i := Info{name: name, mode: n.mode, size: int64(len(n.data)), mtime: n.mtime, UID: n.uid, GID: n.gid, Target: n.target, same: n}
	if n.mode&fs.ModeSymlink != 0 {
		i.size = int64(len(n.target))
	}
	if n.mode.IsDir() {
		i.size = 4096
	}
	return i
}

// Stat describes what is at path, following links.
func (v View) Stat(p string) (Info, error) { return v.stat("stat", p, true) }

// Lstat describes what is at path, not following a link in the last place.
func (v View) Lstat(p string) (Info, error) { return v.stat("lstat", p, false) }

func (v View) stat(op, p string, follow bool) (Info, error) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	n, err := v.find(p, follow)
	if err != nil {
		return Info{}, pathError(op, p, err)
	}
	return n.info(path.Base(p)), nil
}

// Access says whether the user may read (4), write (2) or execute (1) what is at path.
func (v View) Access(p string, perm fs.FileMode) bool {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	n, err := v.find(p, true)
	return err == nil && v.may(n, perm&7)
}

// ReadDir lists a directory, sorted by name.
func (v View) ReadDir(p string) ([]Info, error) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	n, err := v.find(p, true)
	switch {
	case err != nil:
	case !n.mode.IsDir():
		err = ErrNotDir
	case !v.may(n, permRead):
		err = ErrPermission
	}
	if err != nil {
		return nil, pathError("open", p, err)
	}
	infos := make([]Info, 0, len(n.children))
	for _, name := range sortedNames(n) {
		infos = append(infos, n.children[name].info(name))
	}
	return infos, nil
}

// RealPath is path without links, "." and "..".
func (v View) RealPath(p string) (string, error) {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	dir, name, n, err := v.walk(p, true)
	if err != nil {
		return "", pathError("readlink", p, err)
	}
	if n != nil && n.mode.IsDir() {
		return n.path(), nil
	}
	return path.Join(dir.path(), name), nil
}

// path of a directory.
func (n *node) path() string {
	var parts []string
	for ; n.parent != n; n = n.parent {
		for name, child := range n.parent.children {
			if child == n {
				parts = append([]string{name}, parts...)
				break
			}
		}
	}
	return "/" + strings.Join(parts, "/")
}

// Mkdir makes a directory.
func (v View) Mkdir(p string, perm fs.FileMode) error {
	return v.create("mkdir", strings.TrimRight(p, "/"), &node{mode: fs.ModeDir | perm&(fs.ModePerm|special), children: map[string]*node{}})
}

// MkdirAll makes a directory and those above it that are missing.
func (v View) MkdirAll(p string, perm fs.FileMode) error {
	if info, err := v.Stat(p); err == nil {
		if info.IsDir() {
			return nil
		}
		return pathError("mkdir", p, ErrExist)
	}
	if parent := path.Dir(strings.TrimRight(p, "/")); parent != p && len(parent) > 1 {
		if err := v.MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	if err := v.Mkdir(p, perm); err != nil {
		// Somebody else may have been faster.
		if info, statErr := v.Stat(p); statErr != nil || !info.IsDir() {
			return err
		}
	}
	return nil
}

// Symlink makes a symbolic link at p.
func (v View) Symlink(target, p string) error {
	if target == "" || len(target) > v.fs.limits.PathLength {
		return pathError("symlink", p, ErrNameTooLong)
	}
	return v.create("symlink", p, &node{mode: fs.ModeSymlink | 0o777, target: target})
}

// Mkdev makes a character device; only root may.
func (v View) Mkdev(p string, device Device, perm fs.FileMode) error {
	if v.cred.UID != 0 {
		return pathError("mknod", p, ErrNotPermit)
	}
	return v.create("mknod", p, &node{mode: fs.ModeDevice | fs.ModeCharDevice | perm.Perm(), device: device})
}

func (v View) create(op, p string, n *node) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	dir, name, existing, err := v.walk(p, false)
	if err == nil && existing != nil {
		err = ErrExist
	}
	if err == nil {
		err = v.link(dir, name, n)
	}
	return pathError(op, p, err)
}

// Remove removes a file, a link or an empty directory.
func (v View) Remove(p string) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	dir, name, n, err := v.walk(strings.TrimRight(p, "/"), false)
	switch {
	case err != nil:
	case n == nil:
		err = ErrNotExist
	case name == "":
		err = ErrBusy
	case !v.mayUnlink(dir, n):
		err = ErrPermission
	case len(n.children) > 0:
		err = ErrNotEmpty
	default:
		v.unlink(dir, name, n)
	}
	return pathError("remove", p, err)
}

// Rename moves a file, replacing what is there as rename(2) does.
func (v View) Rename(from, to string) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	return pathError("rename", from, v.rename(strings.TrimRight(from, "/"), strings.TrimRight(to, "/")))
}

func (v View) rename(from, to string) error {
	dir, name, n, err := v.walk(from, false)
	if err != nil {
		return err
	}
	newDir, newName, existing, err := v.walk(to, false)
	switch {
	case err != nil:
		return err
	case n == nil:
		return ErrNotExist
	case name == "" || newName == "":
		return ErrBusy
	case existing == n:
		return nil
	case !v.mayUnlink(dir, n) || !v.may(newDir, permWrite|permExec):
		return ErrPermission
	case n.mode.IsDir() && within(newDir, n):
		return ErrInvalid
	case n.mode.IsDir() && newDir.depth()+1+n.height() > v.fs.limits.Depth:
		return ErrNameTooLong
	}
	if existing != nil {
		switch {
		case !v.mayUnlink(newDir, existing):
			return ErrPermission
		case existing.mode.IsDir() && !n.mode.IsDir():
			return ErrIsDir
		case !existing.mode.IsDir() && n.mode.IsDir():
			return ErrNotDir
		case len(existing.children) > 0:
			return ErrNotEmpty
		}
	}
	if err := v.fs.charge(int64(len(newName)-len(name)), 0); err != nil {
		return err
	}
	if existing != nil {
		v.unlink(newDir, newName, existing)
	}
	delete(dir.children, name)
	newDir.children[newName] = n
	if n.mode.IsDir() {
		n.parent = newDir
	}
	dir.mtime, newDir.mtime = v.fs.now(), v.fs.now()
	return nil
}

func within(n, ancestor *node) bool {
	for ; ; n = n.parent {
		if n == ancestor {
			return true
		}
		if n.parent == n {
			return false
		}
	}
}

func (n *node) height() int {
	h := 1
	for _, child := range n.children {
		h = max(h, 1+child.height())
	}
	return h
}

const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Chmod sets permissions and the setuid, setgid and sticky bits.
func (v View) Chmod(p string, mode fs.FileMode) error {
	return v.change("chmod", p, true, func(n *node) error {
		if !v.owns(n) {
			return ErrNotPermit
		}
		n.mode = n.mode.Type() | mode&(fs.ModePerm|special)
		return nil
	})
}

// Chown sets owner and group; -1 leaves one as it is. Only root gives files away; an owner may choose among their groups.
func (v View) Chown(p string, uid, gid int, follow bool) error {
	return v.change("chown", p, follow, func(n *node) error {
		if v.cred.UID != 0 && (!v.owns(n) || (uid >= 0 && uid != n.uid) || (gid >= 0 && !v.cred.in(gid))) {
			return ErrNotPermit
		}
		if uid >= 0 {
			n.uid = uid
		}
		if gid >= 0 {
			n.gid = gid
		}
		if v.cred.UID != 0 {
			n.mode &^= fs.ModeSetuid | fs.ModeSetgid
		}
		return nil
	})
}

// Chtimes sets the modification time.
func (v View) Chtimes(p string, mtime time.Time) error {
	return v.change("chtimes", p, true, func(n *node) error {
		if !v.owns(n) && !v.may(n, permWrite) {
			return ErrPermission
		}
		n.mtime = mtime
		return nil
	})
}

func (v View) change(op, p string, follow bool, do func(*node) error) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	n, err := v.find(p, follow)
	if err == nil {
		err = do(n)
	}
	return pathError(op, p, err)
}
