package shell

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// accounts returns the lines of /etc/passwd or /etc/group that have a number, which is the id.
func accounts(f *vfs.FS, file string) iter.Seq2[uint32, []string] {
	return func(yield func(id uint32, fields []string) bool) {
		data, _ := f.ReadFile(file) // without the file, there are no accounts
		for line := range strings.SplitSeq(string(data), "\n") {
			fields := strings.Split(line, ":")
			if len(fields) < 4 || fields[0] == "" {
				continue
			}
			if id, err := strconv.ParseUint(fields[2], 10, 32); err == nil && !yield(uint32(id), fields) {
				return
			}
		}
	}
}

// LookupUser returns an account of the machine by name, from /etc/passwd and /etc/group of the machine.
func LookupUser(f *vfs.FS, name string) (User, bool) {
	for uid, row := range accounts(f, "/etc/passwd") {
		if len(row) < 7 || row[0] != name {
			continue
		}
		gid, err := strconv.ParseUint(row[3], 10, 32)
		if err != nil {
			continue
		}
		u := User{Name: name, UID: uid, GID: uint32(gid), Home: row[5], Shell: row[6]}
		for id, group := range accounts(f, "/etc/group") {
			if id != u.GID && slices.Contains(strings.Split(group[3], ","), name) {
				u.Groups = append(u.Groups, id)
			}
		}
		return u, true
	}
	return User{}, false
}

// maxNames is how many users and how many groups LoadNames reads; all others are shown as numbers.
const maxNames = 1024

// Names are the names of users and groups by number.
type Names struct{ users, groups map[uint32]string }

// LoadNames reads the names of a machine's users and groups.
func LoadNames(f *vfs.FS) Names {
	byID := func(file string) map[uint32]string {
		all := map[uint32]string{}
		for id, row := range accounts(f, file) {
			if all[id] = cmp.Or(all[id], row[0]); len(all) == maxNames {
				break
			}
		}
		return all
	}
	return Names{byID("/etc/passwd"), byID("/etc/group")}
}

// User returns the name of a user, or the number if it has no name.
func (n Names) User(id uint32) string { return cmp.Or(n.users[id], fmt.Sprint(id)) }

// Group returns the name of a group, or the number if it has no name.
func (n Names) Group(id uint32) string { return cmp.Or(n.groups[id], fmt.Sprint(id)) }

// idOf returns the number of a user or group that is given by name or number, or -1.
func idOf(f *vfs.FS, file, name string) int {
	for id, row := range accounts(f, file) {
		if row[0] == name {
			return int(id)
		}
	}
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return int(id)
	}
	return -1
}
