package vfs

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits bound a file system; zero fields take the value of DefaultLimits.
type Limits struct {
	// Bytes is the size of all files, links and names together.
	Bytes int64
	// FileSize is the size of one file in bytes.
	FileSize int64
	// Inodes is the number of files, directories, links and devices.
	Inodes int
	// Depth is the number of components of a path after links are followed.
	Depth int
	// PathLength is the length of a path as it is given, in bytes.
	PathLength int
}

// DefaultLimits are those of a machine whose maker does not say.
var DefaultLimits = Limits{Bytes: 16 << 20, FileSize: 4 << 20, Inodes: 8192, Depth: 64, PathLength: 4096}

const (
	maxName     = 255
	maxSymlinks = 40
)

func (l Limits) orDefault() Limits {
	d := DefaultLimits
	return Limits{
		Bytes: orElse(l.Bytes, d.Bytes), FileSize: orElse(l.FileSize, d.FileSize), Inodes: orElse(l.Inodes, d.Inodes),
		Depth: orElse(l.Depth, d.Depth), PathLength: orElse(l.PathLength, d.PathLength),
	}
}

func orElse[T int | int64](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// Cred says who does something. UID 0 may everything.
type Cred struct {
	UID    int
	GID    int
	Groups []int
}

// Root is the superuser.
var Root = Cred{}

func (c Cred) in(gid int) bool { return c.GID == gid || slices.Contains(c.Groups, gid) }

// FS is a file system.
type FS struct {
	mu     sync.Mutex
	root   *node
	limits Limits
	now    func() time.Time
	bytes  int64
	inodes int
}

type node struct {
	mode     fs.FileMode
	uid, gid int
	mtime    time.Time
	data     []byte           // of a regular file
	target   string           // of a symbolic link
	children map[string]*node // of a directory
	parent   *node            // of a directory; the root's is itself
	device   Device
	opens    int
	unlinked bool
}

// Device is a character device.
type Device string

// The devices that exist.
const (
	DeviceNull   Device = "null"
	DeviceZero   Device = "zero"
	DeviceFull   Device = "full"
	DeviceRandom Device = "random"
	DeviceTTY    Device = "tty"
)

// New makes an empty file system whose root belongs to root. now is the machine's clock.
func New(limits Limits, now func() time.Time) *FS {
	f := &FS{limits: limits.orDefault(), now: now, inodes: 1}
	f.root = &node{mode: fs.ModeDir | 0o755, mtime: now(), children: map[string]*node{}}
	f.root.parent = f.root
	return f
}

// As is the file system as one user sees it.
func (f *FS) As(cred Cred) View { return View{fs: f, cred: cred} }

// Usage is how much of the limits is used.
type Usage struct {
	Bytes  int64
	Inodes int
	Limits Limits
}

// Usage of the file system now.
func (f *FS) Usage() Usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Usage{Bytes: f.bytes, Inodes: f.inodes, Limits: f.limits}
}

// View is the file system as one user sees it. Paths are absolute; a relative one starts at the root.
type View struct {
	fs   *FS
	cred Cred
}

// Cred says whose view it is.
func (v View) Cred() Cred { return v.cred }

const (
	permRead  fs.FileMode = 4
	permWrite fs.FileMode = 2
	permExec  fs.FileMode = 1
)

func (v View) may(n *node, perm fs.FileMode) bool {
	mode := n.mode.Perm()
	switch {
	case v.cred.UID == 0:
		// As on Linux, even root executes only what is executable for somebody.
		return perm&permExec == 0 || n.mode.IsDir() || mode&0o111 != 0
	case n.uid == v.cred.UID:
		return (mode>>6)&perm == perm
	case v.cred.in(n.gid):
		return (mode>>3)&perm == perm
	}
	return mode&perm == perm
}

func (v View) owns(n *node) bool { return v.cred.UID == 0 || v.cred.UID == n.uid }

// walk finds the directory that holds path's last component, that component's name, and the node itself if it exists. For
// the root and for paths that end in ".", ".." or "/", name is empty and n is that directory. follow says whether a link
// in the last place is followed.
func (v View) walk(path string, follow bool) (dir *node, name string, n *node, err error) {
	limits := v.fs.limits
	if len(path) > limits.PathLength {
		return nil, "", nil, ErrNameTooLong
	}
	if path == "" {
		return nil, "", nil, ErrNotExist
	}
	rest, cur, depth, links := path, v.fs.root, []*node{}, 0
	for {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			return cur.parent, "", cur, nil
		}
		if !v.may(cur, permExec) {
			return nil, "", nil, ErrPermission
		}
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		last := strings.Trim(rest, "/") == ""
		mustBeDir := last && strings.HasSuffix(path, "/") && links == 0
		switch part {
		case ".":
			continue
		case "..":
			cur, depth = cur.parent, depth[:max(0, len(depth)-1)]
			continue
		}
		if len(part) > maxName || strings.ContainsRune(part, 0) {
			return nil, "", nil, ErrNameTooLong
		}
		child := cur.children[part]
		if child == nil {
			if last {
				return cur, part, nil, nil
			}
			return nil, "", nil, ErrNotExist
		}
		if child.mode&fs.ModeSymlink != 0 && (!last || follow || mustBeDir) {
			if links++; links > maxSymlinks {
				return nil, "", nil, ErrLoop
			}
			if strings.HasPrefix(child.target, "/") {
				cur, depth = v.fs.root, nil
			}
			if rest = child.target + "/" + rest; last {
				rest = child.target
			}
			if len(rest) > limits.PathLength*2 {
				return nil, "", nil, ErrNameTooLong
			}
			continue
		}
		if last {
			if mustBeDir && !child.mode.IsDir() {
				return nil, "", nil, ErrNotDir
			}
			return cur, part, child, nil
		}
		if !child.mode.IsDir() {
			return nil, "", nil, ErrNotDir
		}
		if depth = append(depth, child); len(depth) >= limits.Depth {
			return nil, "", nil, ErrNameTooLong
		}
		cur = child
	}
}

// find is walk for what has to exist.
func (v View) find(path string, follow bool) (*node, error) {
	_, _, n, err := v.walk(path, follow)
	if err == nil && n == nil {
		err = ErrNotExist
	}
	return n, err
}

// charge takes bytes and inodes, or refuses. Negative amounts give back.
func (f *FS) charge(bytes int64, inodes int) error {
	if (bytes > 0 && f.bytes+bytes > f.limits.Bytes) || (inodes > 0 && f.inodes+inodes > f.limits.Inodes) {
		return ErrNoSpace
	}
	f.bytes += bytes
	f.inodes += inodes
	return nil
}

func (n *node) depth() int {
	d := 0
	for ; n.parent != n; n = n.parent {
		d++
	}
	return d
}

// link puts a new node into a directory.
func (v View) link(dir *node, name string, n *node) error {
	if name == "" {
		return ErrExist
	}
	if !v.may(dir, permWrite|permExec) {
		return ErrPermission
	}
	if n.mode.IsDir() && dir.depth()+1 >= v.fs.limits.Depth {
		return ErrNameTooLong
	}
	if err := v.fs.charge(int64(len(name)+len(n.target)+len(n.data)), 1); err != nil {
		return err
	}
	n.uid, n.gid, n.mtime = v.cred.UID, v.cred.GID, v.fs.now()
	if n.mode.IsDir() {
		n.parent = dir
	}
	dir.children[name], dir.mtime = n, n.mtime
	return nil
}

// mayUnlink follows the sticky bit.
func (v View) mayUnlink(dir, n *node) bool {
	if !v.may(dir, permWrite|permExec) {
		return false
	}
	return dir.mode&fs.ModeSticky == 0 || v.owns(dir) || v.owns(n)
}

func (v View) unlink(dir *node, name string, n *node) {
	delete(dir.children, name)
	dir.mtime = v.fs.now()
	n.unlinked = true
	freed := int64(len(name) + len(n.target))
	if n.opens == 0 {
		freed += int64(len(n.data))
	}
	_ = v.fs.charge(-freed, -1)
}

func sortedNames(n *node) []string { return slices.Sorted(maps.Keys(n.children)) }

// Usage of the file system now, as df shows it.
func (v View) Usage() Usage { return v.fs.Usage() }
