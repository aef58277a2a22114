package shell

import (
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// LookupUser is an account of a machine by its name, from the machine's own /etc/passwd and /etc/group.
func LookupUser(f *vfs.FS, name string) (User, bool) {
	return findUser(f, func(n string, _ uint32) bool { return n == name })
}

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

// realPath is a path without symbolic links. What it leads to is there.
func realPath(v *vfs.View, name string) (string, error) {
	if _, err := v.Stat(name); err != nil {
		return "", err
	}
	return v.Resolve(name)
}
