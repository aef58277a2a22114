package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// LookupUser is an account of a machine by its name, from the machine's own /etc/passwd and /etc/group.
func LookupUser(f *vfs.FS, name string) (User, bool) {
	for _, row := range table(f, "/etc/passwd") {
		if len(row) < 7 || row[0] != name {
			continue
		}
		uid, gid := parseID(row[2]), parseID(row[3])
		if uid < 0 || gid < 0 {
			continue
		}
		u := User{Name: row[0], UID: uint32(uid), GID: uint32(gid), Home: row[5]}
		for _, g := range table(f, "/etc/group") {
			id := groupID(g)
			if id >= 0 && len(g) > 3 && id != gid && inList(g[3], u.Name) {
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

func inList(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }

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

// names are those of users and groups by their numbers, for lists of files.
type names struct{ users, groups map[uint32]string }

func loadNames(f *vfs.FS) names {
	byID := func(file string) map[uint32]string {
		all := map[uint32]string{}
		for _, row := range table(f, file) {
			if id := groupID(row); id >= 0 {
				all[uint32(id)] = row[0]
			}
		}
		return all
	}
	return names{byID("/etc/passwd"), byID("/etc/group")}
}

func (n names) user(id uint32) string  { return cmp.Or(n.users[id], fmt.Sprint(id)) }
func (n names) group(id uint32) string { return cmp.Or(n.groups[id], fmt.Sprint(id)) }

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
