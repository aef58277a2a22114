package vfs

import (
	"io/fs"
	"syscall"
	"time"
)

// edit changes a node, or returns an error. It is called twice, first with a copy, so that a refused change leaves no
// trace.
type edit func(n *node) syscall.Errno

// change changes the node at a path.
func (v *View) change(op, name string, follow bool, fn edit) error {
	v.fs.mu.Lock()
	defer v.fs.mu.Unlock()
	p, err := v.fs.find(v.cred, name, follow)
	if err == 0 {
		err = v.fs.edit(p.node, fn)
	}
	return fail(op, name, err)
}

// change changes the node of an open file, even if the file's name leads to another node by now.
func (f *File) change(op string, fn edit) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.closedError(op)
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n := f.fs.get(f.ino)
	if n == nil {
		return fail(op, f.name, syscall.ESTALE)
	}
	return fail(op, f.name, f.fs.edit(n, fn))
}

func (f *FS) edit(n *node, fn edit) syscall.Errno {
	check := *n // fn decides before anything is copied
	if err := fn(&check); err != 0 {
		return err
	}
	own, err := f.own(n.ino)
	if err == 0 {
		err = fn(own)
		own.ctime = f.clock.Now()
	}
	return err
}

// Chmod sets the permissions, setuid, setgid and the sticky bit.
func (v *View) Chmod(name string, mode fs.FileMode) error {
	return v.change("chmod", name, true, chmod(v.cred, mode))
}

// Chown sets the owner and the group; -1 leaves the owner or the group as it is.
func (v *View) Chown(name string, uid, gid int) error {
	return v.change("chown", name, true, chown(v.cred, uid, gid))
}

// Lchown is like Chown, but changes a symbolic link itself.
func (v *View) Lchown(name string, uid, gid int) error {
	return v.change("chown", name, false, chown(v.cred, uid, gid))
}

// Chtimes sets the times of access and change; a zero time leaves the old one.
func (v *View) Chtimes(name string, atime, mtime time.Time) error {
	return v.change("chtimes", name, true, chtimes(v.cred, atime, mtime))
}

// Chmod is like View.Chmod, with the rights of the user who opened the file, as in the methods that follow.
func (f *File) Chmod(mode fs.FileMode) error { return f.change("chmod", chmod(f.cred, mode)) }

// Chown is like View.Chown.
func (f *File) Chown(uid, gid int) error { return f.change("chown", chown(f.cred, uid, gid)) }

// Chtimes is like View.Chtimes.
func (f *File) Chtimes(atime, mtime time.Time) error {
	return f.change("chtimes", chtimes(f.cred, atime, mtime))
}

func chmod(c Cred, mode fs.FileMode) edit {
	return func(n *node) syscall.Errno {
		if c.UID != 0 && c.UID != n.uid {
			return syscall.EPERM
		}
		n.mode = n.mode&^modeBits | mode&modeBits
		return 0
	}
}

func chown(c Cred, uid, gid int) edit {
	return func(n *node) syscall.Errno {
		if c.UID != 0 {
			own := c.UID == n.uid && (uid < 0 || uint32(uid) == n.uid)
			if !own || gid >= 0 && !c.in(uint32(gid)) {
				return syscall.EPERM
			}
		}
		if uid >= 0 {
			n.uid = uint32(uid)
		}
		if gid >= 0 {
			n.gid = uint32(gid)
		}
		n.mode &^= fs.ModeSetuid | fs.ModeSetgid
		return 0
	}
}

func chtimes(c Cred, atime, mtime time.Time) edit {
	return func(n *node) syscall.Errno {
		if c.UID != 0 && c.UID != n.uid && !n.may(c, 2) {
			return syscall.EPERM
		}
		if !atime.IsZero() {
			n.atime = atime
		}
		if !mtime.IsZero() {
			n.mtime = mtime
		}
		return 0
	}
}
