package vfs

import (
	"io/fs"
	"strings"
	"syscall"
)

// place is the result of following a path.
type place struct {
	dir   []uint64 // from the root to the directory of the node
	name  string   // the name in this directory; "" for a path that ends in "/", "." or ".."
	node  *node    // nil if it does not exist
	slash bool     // the path ends in a slash: the node must be a directory
}

func (p place) parent() uint64 { return p.dir[len(p.dir)-1] }

// walk follows a path from the root. It requires the right to search every directory on the path.
func (f *FS) walk(c Cred, path string, follow bool) (place, syscall.Errno) {
	if path == "" {
		return place{}, syscall.ENOENT
	}
	if len(path) >= MaxPath {
		return place{}, syscall.ENAMETOOLONG
	}
	if strings.IndexByte(path, 0) >= 0 {
		return place{}, syscall.EINVAL
	}
	stack, rest, links := []uint64{rootIno}, path, 0
	for {
		rest = strings.TrimLeft(rest, "/")
		cur := f.get(stack[len(stack)-1])
		if rest == "" {
			up := stack[:max(1, len(stack)-1)]
			return place{dir: up, node: cur}, 0
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		last := strings.Trim(rest, "/") == ""
		slash := strings.HasSuffix(path, "/")
		if !cur.may(c, 1) {
			return place{}, syscall.EACCES
		}
		switch {
		case name == ".":
			continue
		case name == "..":
			stack = stack[:max(1, len(stack)-1)]
			continue
		case len(name) > MaxName:
			return place{}, syscall.ENAMETOOLONG
		}
		child := f.get(cur.children[name])
		if child == nil {
			if last {
				return place{dir: stack, name: name, slash: slash}, 0
			}
			return place{}, syscall.ENOENT
		}
		if child.mode&fs.ModeSymlink != 0 && (!last || follow || slash) {
			if links++; links > MaxSymlinks {
				return place{}, syscall.ELOOP
			}
			if strings.HasPrefix(child.target, "/") {
				stack = stack[:1]
			}
			rest = child.target + "/" + rest
			if len(rest) >= 2*MaxPath {
				return place{}, syscall.ENAMETOOLONG
			}
			continue
		}
		if last {
			if slash && !child.mode.IsDir() {
				return place{}, syscall.ENOTDIR
			}
			return place{dir: stack, name: name, node: child, slash: slash}, 0
		}
		if !child.mode.IsDir() {
			return place{}, syscall.ENOTDIR
		}
		stack = append(stack[:len(stack):len(stack)], child.ino)
	}
}

// find is like walk, but fails if the path does not exist.
func (f *FS) find(c Cred, path string, follow bool) (place, syscall.Errno) {
	p, err := f.walk(c, path, follow)
	if err == 0 && p.node == nil {
		err = syscall.ENOENT
	}
	return p, err
}

// findNew is like walk, but fails if the path exists, or if its directory must not be written.
func (f *FS) findNew(c Cred, path string) (place, syscall.Errno) {
	p, err := f.walk(c, path, false)
	if err != 0 {
		return p, err
	}
	if p.node != nil {
		return p, syscall.EEXIST
	}
	return p, f.mayAdd(c, p)
}

func (f *FS) mayAdd(c Cred, p place) syscall.Errno {
	dir := f.get(p.parent())
	switch {
	case dir.fixed:
		return syscall.EPERM
	case !dir.may(c, 3):
		return syscall.EACCES
	case dir.nlink == 0: // removed while it was a working directory
		return syscall.ENOENT
	}
	return 0
}
