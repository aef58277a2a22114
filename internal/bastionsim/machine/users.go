package machine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// account is a user of the machine as its files say.
type account struct {
	name, home, shell string
	uid, gid          uint32
	groups            []uint32
	locked            bool
}

// lookupUser reads an account from the machine's /etc/passwd, /etc/shadow and /etc/group.
func lookupUser(files *vfs.FS, name string, now time.Time) (account, bool) {
	if name == "" || strings.ContainsAny(name, ":\n") {
		return account{}, false
	}
	entry, ok := findLine(files, "/etc/passwd", 7, func(fields []string) bool { return fields[0] == name })
	if !ok {
		return account{}, false
	}
	uid, errUID := strconv.ParseUint(entry[2], 10, 32)
	gid, errGID := strconv.ParseUint(entry[3], 10, 32)
	if errUID != nil || errGID != nil {
		return account{}, false
	}
	a := account{name: name, home: entry[5], shell: entry[6], uid: uint32(uid), gid: uint32(gid)}
	a.groups = groupsOf(files, name)
	if shadow, ok := findLine(files, "/etc/shadow", 9, func(fields []string) bool { return fields[0] == name }); ok {
		a.locked = locked(shadow, now)
	}
	return a, true
}

// locked says whether a line of /etc/shadow locks the account. One that has only never had a password ("!" or "*") is open
// for keys, as with PAM; one whose password has been locked ("!" before it, by usermod -L) or that has expired is not.
func locked(shadow []string, now time.Time) bool {
	password, marked := strings.CutPrefix(shadow[1], "!")
	if marked && password != "" && password != "*" {
		return true
	}
	days, err := strconv.ParseInt(shadow[7], 10, 64)
	return err == nil && days >= 0 && now.Unix()/(24*60*60) >= days
}

func groupsOf(files *vfs.FS, name string) (groups []uint32) {
	eachLine(files, "/etc/group", 4, func(fields []string) bool {
		if slices.Contains(strings.Split(fields[3], ","), name) {
			if gid, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
				groups = append(groups, uint32(gid))
			}
		}
		return true
	})
	return groups
}

func findLine(files *vfs.FS, file string, width int, wanted func([]string) bool) (found []string, ok bool) {
	eachLine(files, file, width, func(fields []string) bool {
		if wanted(fields) {
			found, ok = fields, true
		}
		return !ok
	})
	return found, ok
}

// eachLine calls f with the fields of the lines of a file that have enough of them, until f returns false.
func eachLine(files *vfs.FS, file string, width int, f func(fields []string) bool) {
	data, err := files.ReadFile(file)
	if err != nil {
		return
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if fields := strings.Split(line, ":"); len(fields) >= width && !f(fields) {
			return
		}
	}
}
