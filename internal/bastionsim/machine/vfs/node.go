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

// node is an inode. Nodes of the image are immutable; all other nodes are changed only under the lock of the file
// system.
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
	proc  string // the name in /proc of a synthetic file
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

// get returns a node for reading, or nil.
func (f *FS) get(ino uint64) *node {
	if n := f.nodes[ino]; n != nil {
		return n
	}
	return f.base.nodes[ino]
}

// own returns a node for changing, and marks it as dirty. If the node is of the image, own copies it first.
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

// add adds a name to a directory. If the node is new, it also creates the node.
func (f *FS) add(dir uint64, name string, n *node) syscall.Errno {
	if err := f.room(2*inodeCost+nameSize(name)+int64(len(n.data)+len(n.target)), 2); err != 0 {
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
	f.used += nameSize(name)
	d.children[name] = n.ino
	d.mtime, d.ctime = f.clock.Now(), f.clock.Now()
	f.touch(n.ino)
	return 0
}

// drop removes a name from a directory. It deletes the node with its last name, unless the node is open.
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
	f.used -= nameSize(name)
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

// resize shortens a file, or extends it with zeros.
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
	case n.shared || grow < 0 && int64(cap(n.data)) > 2*size: // else the room that the disk is charged for is not released
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

// may reports whether credentials have the wanted rights (4 read, 2 write, 1 execute or search) on a node.
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

// Stat is the type of FileInfo.Sys, as a *Stat.
type Stat struct {
	Ino          uint64
	Nlink        int
	UID, GID     uint32
	Atime, Ctime time.Time
	// Blocks is the number of blocks of 512 bytes.
	Blocks int64
}

type info struct {
	name  string
	mode  fs.FileMode
	size  int64
	mtime time.Time
	stat  Stat
}

func (i *info) Name() string               { return i.name }
func (i *info) Size() int64                { return i.size }
func (i *info) Mode() fs.FileMode          { return i.mode }
func (i *info) ModTime() time.Time         { return i.mtime }
func (i *info) IsDir() bool                { return i.mode.IsDir() }
func (i *info) Sys() any                   { return &i.stat }
func (i *info) Type() fs.FileMode          { return i.mode.Type() }
func (i *info) Info() (fs.FileInfo, error) { return i, nil }

func (n *node) info(name string) *info {
	if name == "" {
		name = "/"
	}
	return &info{name: name, mode: n.mode, size: n.size(), mtime: n.mtime, stat: Stat{
		Ino: n.ino, Nlink: n.nlink, UID: n.uid, GID: n.gid, Atime: n.atime, Ctime: n.ctime, Blocks: (int64(len(n.data)) + 4095) / 4096 * 8,
	}}
}
