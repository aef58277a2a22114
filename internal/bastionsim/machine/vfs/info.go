package vfs

import (
	"io/fs"
	"time"
)

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
