package vfs

import (
	"io/fs"
	"maps"
	"syscall"
	"time"
)

type device byte

const (
	noDevice device = iota
	devNull
	devZero
	devRandom
	devFull
	devTTY
)

// node is an inode. Nodes of the image are never changed; those of a file system only under its lock.
type node struct {
	ino                 uint64
	mode                fs.FileMode
	uid, gid            uint32
	nlink               int
	atime, mtime, ctime time.Time

	data     []byte
	shared   bool // data belongs to the image
	target   string
	children map[string]uint64

	dev   device
	proc  string // the name that the content's function has
	fixed bool   // read-only, as in /proc
}

const rootIno = 1

func (n *node) size() int64 {
	switch {
	case n.mode&fs.ModeSymlink != 0:
		return int64(len(n.target))
	case n.mode.IsDir():
		return 4096
	default:
		return int64(len(n.data))
	}
}

// get is a node as it is now, for reading. It is nil if there is none.
func (f *FS) get(ino uint64) *node {
	if n := f.nodes[ino]; n != nil {
		return n
	}
	return f.base.nodes[ino]
}

// own is a node for changing. It copies one of the image, and marks it to be written.
func (f *FS) own(ino uint64) (*node, syscall.Errno) {
	n := f.nodes[ino]
	if n == nil {
		b := f.base.nodes[ino]
		if b == nil {
			return nil, syscall.ENOENT
		}
		if b.fixed {
			return nil, syscall.EPERM
		}
		if err := f.room(inodeCost+int64(len(b.data)), 1); err != 0 {
			return nil, err
		}
		c := *b
		c.shared, c.children = true, maps.Clone(b.children)
		n = &c
		f.nodes[ino] = n
		f.used += inodeCost + int64(len(n.data))
	}
	f.touch(ino)
	return n, 0
}

func (f *FS) room(bytes int64, inodes int) syscall.Errno {
	if bytes > 0 && f.used+bytes > f.limits.Bytes || len(f.nodes)+inodes > f.limits.Inodes {
		return syscall.ENOSPC
	}
	return 0
}

func (f *FS) touch(ino uint64) {
	if f.journal != nil {
		f.dirty[ino] = struct{}{}
		f.journal.wake()
	}
}

// add makes a node and its name in a directory.
func (f *FS) add(dir uint64, name string, n *node) syscall.Errno {
	if err := f.room(2*inodeCost+int64(len(name)+len(n.data)+len(n.target)), 2); err != 0 {
		return err
	}
	d, err := f.own(dir)
	if err != 0 {
		return err
	}
	if n.ino == 0 {
		n.ino, f.next = f.next, f.next+1
		now := f.clock.Now()
		n.atime, n.mtime, n.ctime = now, now, now
		f.nodes[n.ino] = n
		f.used += inodeCost + int64(len(n.data)+len(n.target))
	}
	n.nlink++
	if n.mode.IsDir() {
		n.nlink++
		d.nlink++
	}
	f.used += int64(len(name))
	d.children[name] = n.ino
	d.mtime, d.ctime = f.clock.Now(), f.clock.Now()
	f.touch(n.ino)
	return 0
}

// drop takes a name out of a directory, and the node with its last name unless a process has it open.
func (f *FS) drop(dir uint64, name string) syscall.Errno {
	d, err := f.own(dir)
	if err != 0 {
		return err
	}
	ino := d.children[name]
	delete(d.children, name)
	d.mtime, d.ctime = f.clock.Now(), f.clock.Now()
	n := f.nodes[ino]
	if n == nil { // of the image: it has no other name
		if b := f.base.nodes[ino]; b != nil && b.mode.IsDir() {
			d.nlink--
		}
		return 0
	}
	f.used -= int64(len(name))
	n.nlink--
	if n.mode.IsDir() {
		n.nlink--
		d.nlink--
	}
	n.ctime = f.clock.Now()
	f.touch(ino)
	f.forget(n)
	return 0
}

func (f *FS) forget(n *node) {
	if n.nlink > 0 || f.opens[n.ino] > 0 || f.nodes[n.ino] == nil {
		return
	}
	delete(f.nodes, n.ino)
	f.used -= inodeCost + int64(len(n.data)+len(n.target))
	f.touch(n.ino)
}

// resize makes a file shorter, or longer by zeros.
func (f *FS) resize(n *node, size int64) syscall.Errno {
	if size < 0 {
		return syscall.EINVAL
	}
	if size > f.limits.FileSize {
		return syscall.EFBIG
	}
	grow := size - int64(len(n.data))
	if err := f.room(grow, 0); err != 0 {
		return err
	}
	switch {
	case n.shared || size == 0:
		data := make([]byte, size)
		copy(data, n.data)
		n.data, n.shared = data, false
	case grow <= 0:
		clear(n.data[size:])
		n.data = n.data[:size]
	default:
		n.data = append(n.data, make([]byte, grow)...)
	}
	f.used += grow
	now := f.clock.Now()
	n.mtime, n.ctime = now, now
	return 0
}

// may says whether credentials have the rights given (4 read, 2 write, 1 execute or search) on a node.
func (n *node) may(c Cred, want fs.FileMode) bool {
	if c.UID == 0 {
		return want&1 == 0 || n.mode.IsDir() || n.mode&0o111 != 0
	}
	bits := n.mode.Perm()
	switch {
	case c.UID == n.uid:
		bits >>= 6
	case c.in(n.gid):
		bits >>= 3
	}
	return bits&want == want
}

// mayRemove says whether credentials allow to take a node out of a directory: with the sticky bit only to an owner of
// either.
func mayRemove(c Cred, dir, n *node) bool {
	if dir.fixed || !dir.may(c, 3) {
		return false
	}
	return dir.mode&fs.ModeSticky == 0 || c.UID == 0 || c.UID == dir.uid || c.UID == n.uid
}
