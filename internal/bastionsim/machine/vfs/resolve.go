package vfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

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
