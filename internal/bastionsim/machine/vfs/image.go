package vfs

import (
	"hash/fnv"
	"io/fs"
	"path"
	"sync"
	"time"
)

// image is the file system that all machines begin with. It is immutable.
type image struct {
	nodes map[uint64]*node
}

var baseTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var baseImage = sync.OnceValue(func() *image {
	im := &image{nodes: map[uint64]*node{}}
	im.nodes[rootIno] = &node{ino: rootIno, mode: fs.ModeDir | 0o755, nlink: 2, children: map[string]uint64{},
		atime: baseTime, mtime: baseTime, ctime: baseTime}
	for _, name := range baseDirs {
		im.dir(name, 0o755)
	}
	for name, mode := range baseModes {
		im.dir(name, mode)
	}
	for _, l := range baseLinks {
		im.put(l.name, &node{mode: fs.ModeSymlink | 0o777, target: l.text})
	}
	for _, f := range baseFiles {
		im.put(f.name, &node{mode: f.mode, gid: f.gid, data: []byte(f.text)})
	}
	for _, name := range Programs {
		mode := fs.FileMode(0o755)
		if name == "sudo" || name == "su" || name == "passwd" {
			mode |= fs.ModeSetuid
		}
		im.put("/usr/bin/"+name, &node{mode: mode, data: []byte(ProgramMagic + name + "\n")})
	}
	for name, dev := range map[string]device{"null": devNull, "zero": devZero, "urandom": devRandom, "random": devRandom,
		"full": devFull, "tty": devTTY} {
		im.put("/dev/"+name, &node{mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, dev: dev, fixed: true})
	}
	im.dir("/proc", 0o555)
	for name := range procTexts {
		im.put("/proc/"+name, &node{mode: 0o444, proc: name})
	}
	im.lookup("/proc/self/environ").mode = 0o400
	for name, target := range map[string]string{"self/root": "/", "self/cwd": "/", "self/exe": "/usr/bin/bash", "mounts": "self/mounts"} {
		im.put("/proc/"+name, &node{mode: fs.ModeSymlink | 0o777, target: target})
	}
	im.fix("/proc")
	return im
})

// number returns the inode of a path in the image. It depends on the path alone, so that a journal fits the image of a
// later version, too. The highest bit distinguishes it from the inodes of new files.
func number(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64() | 1<<63
}

func (im *image) lookup(name string) *node {
	if name == "/" {
		return im.nodes[rootIno]
	}
	return im.nodes[number(name)]
}

func (im *image) dir(name string, mode fs.FileMode) {
	if im.lookup(name) == nil {
		im.put(name, &node{mode: fs.ModeDir | mode, children: map[string]uint64{}})
	}
}

func (im *image) put(name string, n *node) {
	up := path.Dir(name)
	im.dir(up, 0o755)
	parent := im.lookup(up)
	n.ino, n.nlink = number(name), 1
	if n.mode.IsDir() {
		n.nlink = 2
		parent.nlink++
	}
	n.atime, n.mtime, n.ctime = baseTime, baseTime, baseTime
	im.nodes[n.ino] = n
	parent.children[path.Base(name)] = n.ino
}

// fix makes a tree read-only.
func (im *image) fix(name string) {
	n := im.lookup(name)
	n.fixed = true
	if n.mode.IsDir() {
		n.mode = fs.ModeDir | 0o555
	}
	for child := range n.children {
		im.fix(path.Join(name, child))
	}
}
