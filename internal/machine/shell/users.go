package shell

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// LookupUser is an account of a machine by its name, from the machine's own /etc/passwd and /etc/group.
func LookupUser(f *vfs.FS, name string) (User, bool) {
	return findUser(f, func(n string, _ uint32) bool { return n == name })
}

func (s *Session) lookupUser(name string) (User, bool) { return LookupUser(s.o.FS, name) }

func findUser(f *vfs.FS, is func(name string, uid uint32) bool) (User, bool) {
	for _, row := range table(f, "/etc/passwd") {
		if len(row) < 7 {
			continue
		}
		uid, gid := parseID(row[2]), parseID(row[3])
		if uid < 0 || gid < 0 || !is(row[0], uint32(uid)) {
			continue
		}
		u := User{Name: row[0], UID: uint32(uid), GID: uint32(gid), Home: row[5]}
		for _, g := range table(f, "/etc/group") {
			if id := groupID(g); id >= 0 && len(g) > 3 && uint32(id) != u.GID && inList(g[3], u.Name) {
				u.Groups = append(u.Groups, uint32(id))
			}
		}
		return u, true
	}
	return User{}, false
}

func parseID(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return -1
	}
	return int64(n)
}

func groupID(row []string) int64 {
	if len(row) < 3 {
		return -1
	}
	return parseID(row[2])
}

func inList(list, name string) bool {
	for n := range strings.SplitSeq(list, ",") {
		if n == name {
			return true
		}
	}
	return false
}

// table has the lines of a file of /etc, cut at colons.
func table(f *vfs.FS, name string) [][]string {
	data, err := f.ReadFile(name)
	if err != nil {
		return nil
	}
	var rows [][]string
	for line := range strings.SplitSeq(string(data), "\n") {
		if line != "" && line[0] != '#' {
			rows = append(rows, strings.Split(line, ":"))
		}
	}
	return rows
}

// names caches what users and groups are called, for lists of files.
type names struct {
	users, groups map[uint32]string
}

func loadNames(f *vfs.FS) names {
	n := names{map[uint32]string{}, map[uint32]string{}}
	for _, row := range table(f, "/etc/passwd") {
		if id := groupID(row); id >= 0 {
			n.users[uint32(id)] = row[0]
		}
	}
	for _, row := range table(f, "/etc/group") {
		if id := groupID(row); id >= 0 {
			n.groups[uint32(id)] = row[0]
		}
	}
	return n
}

func (n names) user(id uint32) string  { return orNumber(n.users[id], id) }
func (n names) group(id uint32) string { return orNumber(n.groups[id], id) }

func orNumber(name string, id uint32) string {
	if name == "" {
		return strconv.FormatUint(uint64(id), 10)
	}
	return name
}

// userID is the number of a user that is given by name or number; -1 if there is none.
func userID(f *vfs.FS, name string) int {
	if u, ok := LookupUser(f, name); ok {
		return int(u.UID)
	}
	return int(parseID(name))
}

func groupIDOf(f *vfs.FS, name string) int {
	for _, row := range table(f, "/etc/group") {
		if row[0] == name {
			return int(groupID(row))
		}
	}
	return int(parseID(name))
}

// realPath is a path without symbolic links.
func realPath(v *vfs.View, name string) (string, error) {
	if _, err := v.Stat(name); err != nil {
		return "", err
	}
	done, rest := "/", strings.Trim(name, "/")
	for links := 0; rest != ""; {
		part, after, _ := strings.Cut(rest, "/")
		rest = strings.TrimLeft(after, "/")
		switch part {
		case ".", "":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		target, err := v.Readlink(next)
		if err != nil {
			done = next
			continue
		}
		if links++; links > vfs.MaxSymlinks {
			return "", &fs.PathError{Op: "readlink", Path: name, Err: syscall.ELOOP}
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		rest = strings.Trim(target+"/"+rest, "/")
	}
	return done, nil
}

// permissions writes a mode as ls does.
func permissions(m fs.FileMode) string {
	b := []byte("----------")
	switch {
	case m.IsDir():
		b[0] = 'd'
	case m&fs.ModeSymlink != 0:
		b[0] = 'l'
	case m&fs.ModeCharDevice != 0:
		b[0] = 'c'
	case m&fs.ModeDevice != 0:
		b[0] = 'b'
	}
	for i := range 9 {
		if m&(1<<(8-i)) != 0 {
			b[i+1] = "rwx"[i%3]
		}
	}
	special := func(i int, on fs.FileMode, x, none byte) {
		if m&on != 0 {
			if b[i] == 'x' {
				b[i] = x
			} else {
				b[i] = none
			}
		}
	}
	special(3, fs.ModeSetuid, 's', 'S')
	special(6, fs.ModeSetgid, 's', 'S')
	special(9, fs.ModeSticky, 't', 'T')
	return string(b)
}

// unixMode is a mode as chmod and stat write it.
func unixMode(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	if m&fs.ModeSetuid != 0 {
		n |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		n |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		n |= 0o1000
	}
	return n
}

func fileMode(n uint32) fs.FileMode {
	m := fs.FileMode(n & 0o777)
	if n&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if n&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if n&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// time formats a time for printf's %(...)T.
func (p *printer) time(format, arg string) string {
	now := p.sh.s.o.Clock.Now()
	if n, err := strconv.ParseInt(arg, 10, 64); err == nil && n >= 0 {
		now = time.Unix(n, 0)
	} else if arg != "" && arg != "-1" && arg != "-2" {
		p.warn(arg)
	}
	return strftime(format, now.UTC())
}
