package vfs

import (
	"errors"
	"io/fs"
	"path"
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
func (f *FS) walk(c Cred, name string, follow bool) (place, syscall.Errno) {
	if name == "" {
		return place{}, syscall.ENOENT
	}
	if len(name) >= MaxPath {
		return place{}, syscall.ENAMETOOLONG
	}
	if strings.IndexByte(name, 0) >= 0 {
		return place{}, syscall.EINVAL
	}
	stack, rest, links := []uint64{rootIno}, name, 0
	for {
		rest = strings.TrimLeft(rest, "/")
		cur := f.get(stack[len(stack)-1])
		if rest == "" {
			up := stack[:max(1, len(stack)-1)]
			return place{dir: up, node: cur}, 0
		}
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		last := strings.Trim(rest, "/") == ""
		slash := strings.HasSuffix(name, "/")
		if !cur.may(c, 1) {
			return place{}, syscall.EACCES
		}
		switch {
		case part == ".":
			continue
		case part == "..":
			stack = stack[:max(1, len(stack)-1)]
			continue
		case len(part) > MaxName:
			return place{}, syscall.ENAMETOOLONG
		}
		child := f.get(cur.children[part])
		if child == nil {
			if last {
				return place{dir: stack, name: part, slash: slash}, 0
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
			return place{dir: stack, name: part, node: child, slash: slash}, 0
		}
		if !child.mode.IsDir() {
			return place{}, syscall.ENOTDIR
		}
		stack = append(stack, child.ino)
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

// Resolve returns a path without symbolic links, "." and "..". Its last part may be missing, but no directory before
// it.
func (v *View) Resolve(name string) (string, error) {
	done, rest, links := "/", name, 0
	for steps := 0; strings.Trim(rest, "/") != ""; steps++ {
		if steps > MaxPath {
			return "", fail("realpath", name, syscall.ENAMETOOLONG)
		}
		var part string
		part, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if part == "." {
			continue
		}
		if part == ".." {
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := v.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.Trim(rest, "/") == "":
			return next, nil
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			if done = next; !info.IsDir() && strings.Trim(rest, "/") != "" {
				return "", fail("realpath", name, syscall.ENOTDIR)
			}
			continue
		}
		if links++; links > MaxSymlinks {
			return "", fail("realpath", name, syscall.ELOOP)
		}
		target, err := v.Readlink(next)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		if rest = target + "/" + rest; len(rest) >= 2*MaxPath {
			return "", fail("realpath", name, syscall.ENAMETOOLONG)
		}
	}
	return done, nil
}
