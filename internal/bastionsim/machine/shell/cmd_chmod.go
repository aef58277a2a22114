package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// parseMode reads a mode, in octal or by letters, which change old.
func parseMode(text string, old fs.FileMode) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return vfs.FileMode(uint32(n)), nil
	}
	bits := vfs.UnixMode(old)
	for part := range strings.SplitSeq(text, ",") {
		i := strings.IndexAny(part, "+-=")
		if i < 0 {
			return 0, fmt.Errorf("invalid mode: '%s'", text)
		}
		who := part[:i]
		if who == "" || who == "a" {
			who = "ugo"
		}
		var set, mask uint32
		for _, w := range who {
			shift, ok := map[rune]uint32{'u': 6, 'g': 3, 'o': 0}[w]
			if !ok {
				return 0, fmt.Errorf("invalid mode: '%s'", text)
			}
			mask |= 7 << shift
			for _, c := range part[i+1:] {
				switch c {
				case 'r':
					set |= 4 << shift
				case 'w':
					set |= 2 << shift
				case 'x':
					set |= 1 << shift
				case 'X':
					if old.IsDir() || bits&0o111 != 0 {
						set |= 1 << shift
					}
				case 's':
					set |= map[rune]uint32{'u': 0o4000, 'g': 0o2000}[w]
				case 't':
					set |= 0o1000
				default:
					return 0, fmt.Errorf("invalid mode: '%s'", text)
				}
			}
		}
		switch part[i] {
		case '+':
			bits |= set
		case '-':
			bits &^= set
		default:
			bits = bits&^mask | set
		}
	}
	return vfs.FileMode(bits), nil
}

// walk calls fn for a file and, if deep, for all that is below it.
func (p *Process) walk(name string, deep bool, fn func(name string, info fs.FileInfo) error) error {
	info, err := p.FS.Lstat(p.Path(name))
	if err == nil {
		err = errors.Join(p.step(), fn(name, info))
	}
	if err != nil || !deep || !info.IsDir() {
		return err
	}
	entries, err := p.FS.ReadDir(p.Path(name))
	for _, e := range entries {
		if childErr := p.walk(strings.TrimSuffix(name, "/")+"/"+e.Name(), deep, fn); err == nil {
			err = childErr
		}
	}
	return err
}

func chmodProgram(_ context.Context, p *Process) int {
	args := p.Args[1:]
	deep := false
	for len(args) > 0 && (args[0] == "-R" || args[0] == "-v" || args[0] == "-f" || args[0] == "-c" || args[0] == "--recursive" || args[0] == "--") {
		deep = deep || args[0] == "-R" || args[0] == "--recursive"
		args = args[1:]
	}
	if len(args) < 2 {
		return p.Failf(1, "missing operand")
	}
	status := 0
	for _, name := range args[1:] {
		if err := p.walk(name, deep, func(name string, info fs.FileInfo) error {
			if info.Mode()&fs.ModeSymlink != 0 {
				if deep {
					return nil
				}
				if target, err := p.FS.Stat(p.Path(name)); err == nil {
					info = target
				}
			}
			mode, err := parseMode(args[0], info.Mode())
			if err != nil {
				return err
			}
			return p.FS.Chmod(p.Path(name), mode)
		}); err != nil {
			status = p.Failf(1, "cannot change mode of '%s': %v", name, reason(err))
		}
	}
	return status
}

func chownProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "Rvfhc", map[string]byte{"recursive": 'R', "no-dereference": 'h'}, false)
	if err != nil || len(f.args) < 2 {
		return p.Failf(1, "%v", cmp.Or(err, errors.New("missing operand")))
	}
	owner, group, hasGroup := strings.Cut(f.args[0], ":")
	if p.name() == "chgrp" {
		owner, group, hasGroup = "", f.args[0], true
	}
	uid, gid := -1, -1
	if owner != "" {
		if uid = userID(p.FS.FS(), owner); uid < 0 {
			return p.Failf(1, "invalid user: '%s'", f.args[0])
		}
		if u, ok := LookupUser(p.FS.FS(), owner); ok && hasGroup && group == "" {
			gid = int(u.GID)
		}
	}
	if group != "" {
		if gid = groupIDOf(p.FS.FS(), group); gid < 0 {
			return p.Failf(1, "invalid group: '%s'", f.args[0])
		}
	}
	status := 0
	for _, name := range f.args[1:] {
		if err := p.walk(name, f.has('R'), func(name string, info fs.FileInfo) error {
			if info.Mode()&fs.ModeSymlink != 0 && (f.has('h') || f.has('R')) {
				return p.FS.Lchown(p.Path(name), uid, gid)
			}
			return p.FS.Chown(p.Path(name), uid, gid)
		}); err != nil {
			status = p.Failf(1, "changing ownership of '%s': %v", name, reason(err))
		}
	}
	return status
}
