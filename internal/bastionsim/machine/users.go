package machine

import (
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// shadowOf is the line of a user in /etc/shadow, or nil.
func shadowOf(files *vfs.FS, name string) []string {
	data, _ := files.ReadFile("/etc/shadow") // without the file, there is no line
	for line := range strings.SplitSeq(string(data), "\n") {
		if fields := strings.Split(line, ":"); len(fields) >= 9 && fields[0] == name {
			return fields
		}
	}
	return nil
}

// locked reports whether a line of /etc/shadow locks the account. An account that never had a password ("!" or "*") is
// open for keys, as with PAM. An account whose password is locked ("!" before it, by usermod -L) or that has expired is
// not.
func locked(shadow []string, now time.Time) bool {
	if shadow == nil {
		return false
	}
	password, marked := strings.CutPrefix(shadow[1], "!")
	if marked && password != "" && password != "*" {
		return true
	}
	days, err := strconv.ParseInt(shadow[7], 10, 64)
	return err == nil && days >= 0 && now.Unix()/(24*60*60) >= days
}
