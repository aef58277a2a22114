package shell

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

var (
	symbolicMode    = regexp.MustCompile(`^([ugoa]*)([-+=])([rwxXst]*)$`)
	modeClasses     = map[rune]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o1007, 'a': 0o7777}
	modePermissions = map[rune]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0o111, 's': 0o6000, 't': 0o1000}
)

// parseMode reads a mode, in octal or by letters, which change old.
func parseMode(text string, old fs.FileMode) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return vfs.FileMode(uint32(n)), nil
	}
	bits := vfs.UnixMode(old)
	for part := range strings.SplitSeq(text, ",") {
		m := symbolicMode.FindStringSubmatch(part)
		if m == nil {
			return 0, fmt.Errorf("invalid mode: '%s'", text)
		}
		var mask, set uint32
		for _, class := range m[1] {
			mask |= modeClasses[class]
		}
		if mask == 0 {
			mask = modeClasses['a']
		}
		for _, permission := range m[3] {
			if permission != 'X' || old.IsDir() || bits&0o111 != 0 {
				set |= modePermissions[permission] & mask
			}
		}
		switch m[2] {
		case "+":
			bits |= set
		case "-":
			bits &^= set
		default:
			bits = bits&^mask | set
		}
	}
	return vfs.FileMode(bits), nil
}

// deepest is how many levels below a directory a recursive program goes: more than a path can have.
const deepest = vfs.MaxPath

func chmodProgram(p *Process, f flags) int {
	args, levels := f.args, 0
	if len(args) > 2 && slices.Contains([]string{"-R", "--recursive"}, args[0]) {
		args, levels = args[1:], deepest
	}
	return p.walk(args[1:], "cannot change mode of", levels, func(name string, info fs.FileInfo) error {
		if info.Mode()&fs.ModeSymlink != 0 {
			if levels > 0 {
				return nil
			}
			var err error
			if info, err = p.FS.Stat(p.Path(name)); err != nil {
				return err
			}
		}
		mode, err := parseMode(args[0], info.Mode())
		if err != nil {
			return err
		}
		return p.FS.Chmod(p.Path(name), mode)
	})
}

// owner reads "user", "user:group", ":group", and "user:", which is the group of the user too. What is not there is -1.
func (p *Process) owner(text string) (uid, gid int, _ error) {
	user, group, more := strings.Cut(text, ":")
	uid, gid = -1, -1
	if user != "" {
		if uid = userID(p.FS.FS(), user); uid < 0 {
			return 0, 0, fmt.Errorf("invalid user: '%s'", text)
		}
		if u, ok := LookupUser(p.FS.FS(), user); ok && more {
			gid = int(u.GID)
		}
	}
	if group != "" {
		if gid = groupIDOf(p.FS.FS(), group); gid < 0 {
			return 0, 0, fmt.Errorf("invalid group: '%s'", text)
		}
	}
	return uid, gid, nil
}

func chownProgram(p *Process, f flags) int {
	uid, gid, err := p.owner(f.args[0])
	if err != nil {
		return p.Fail(err)
	}
	levels, change := 0, p.FS.Chown
	if f.has('R') {
		levels, change = deepest, p.FS.Lchown
	}
	return p.walk(f.args[1:], "changing ownership of", levels, func(name string, _ fs.FileInfo) error {
		return change(p.Path(name), uid, gid)
	})
}
