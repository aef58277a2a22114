// Package users is the user database of a simulated machine: /etc/passwd, /etc/group and /etc/shadow in its file system.
package users

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// User is a line of /etc/passwd.
type User struct {
	Name, Comment, Home, Shell string
	UID, GID                   int
}

// Group is a line of /etc/group.
type Group struct {
	Name    string
	GID     int
	Members []string
}

// Errors of this package; they come wrapped.
var (
	ErrUnknown = errors.New("does not exist")
	ErrExists  = errors.New("already exists")
	ErrName    = errors.New("is no valid name")
)

func lines(v vfs.View, file string) [][]string {
	data, _ := v.ReadFile(file)
	var out [][]string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, strings.Split(line, ":"))
		}
	}
	return out
}

func parseUser(f []string) (User, bool) {
	if len(f) < 7 {
		return User{}, false
	}
	uid, err1 := strconv.Atoi(f[2])
	gid, err2 := strconv.Atoi(f[3])
	return User{Name: f[0], UID: uid, GID: gid, Comment: f[4], Home: f[5], Shell: f[6]}, err1 == nil && err2 == nil
}

// All users.
func All(v vfs.View) []User {
	var all []User
	for _, f := range lines(v, "/etc/passwd") {
		if u, ok := parseUser(f); ok {
			all = append(all, u)
		}
	}
	return all
}

// Groups are all groups.
func Groups(v vfs.View) []Group {
	var all []Group
	for _, f := range lines(v, "/etc/group") {
		if len(f) < 4 {
			continue
		}
		if gid, err := strconv.Atoi(f[2]); err == nil {
			all = append(all, Group{f[0], gid, strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })})
		}
	}
	return all
}

// Lookup finds a user by name.
func Lookup(v vfs.View, name string) (User, bool) {
	all := All(v)
	i := slices.IndexFunc(all, func(u User) bool { return u.Name == name })
	if i < 0 {
		return User{}, false
	}
	return all[i], true
}

// NameOf a UID, or the number.
func NameOf(v vfs.View, uid int) string {
	for _, u := range All(v) {
		if u.UID == uid {
			return u.Name
		}
	}
	return strconv.Itoa(uid)
}

// GroupName of a GID, or the number.
func GroupName(v vfs.View, gid int) string {
	for _, g := range Groups(v) {
		if g.GID == gid {
			return g.Name
		}
	}
	return strconv.Itoa(gid)
}

// LookupGroup finds a group by name.
func LookupGroup(v vfs.View, name string) (Group, bool) {
	for _, g := range Groups(v) {
		if g.Name == name {
			return g, true
		}
	}
	return Group{}, false
}

// Cred is what processes of a user have.
func Cred(v vfs.View, u User) vfs.Cred {
	c := vfs.Cred{UID: u.UID, GID: u.GID}
	for _, g := range Groups(v) {
		if slices.Contains(g.Members, u.Name) {
			c.Groups = append(c.Groups, g.GID)
		}
	}
	return c
}

// Locked says whether the user cannot log in at all: the account is expired or its shell says no.
func Locked(u User) bool {
	return strings.HasSuffix(u.Shell, "/nologin") || strings.HasSuffix(u.Shell, "/false")
}

func validName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (i == 0 || r != '-' && r != '.' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= 32
}

func valid(fields ...string) error {
	for _, f := range fields {
		if strings.ContainsAny(f, ":\n") {
			return fmt.Errorf("%q %w", f, ErrName)
		}
	}
	return nil
}

// Add adds a user; UID or GID -1 are chosen: a group of the user's own name.
func Add(v vfs.View, u User) (User, error) {
	if !validName(u.Name) {
		return u, fmt.Errorf("%q %w", u.Name, ErrName)
	}
	if err := valid(u.Comment, u.Home, u.Shell); err != nil {
		return u, err
	}
	if _, ok := Lookup(v, u.Name); ok {
		return u, fmt.Errorf("user '%s' %w", u.Name, ErrExists)
	}
	if u.UID < 0 {
		u.UID = 1000
		for _, other := range All(v) {
			if other.UID >= u.UID && other.UID < 60000 {
				u.UID = other.UID + 1
			}
		}
	}
	if u.GID < 0 {
		g, ok := LookupGroup(v, u.Name)
		if !ok {
			var err error
			if g, err = AddGroup(v, u.Name, u.UID); err != nil {
				return u, err
			}
		}
		u.GID = g.GID
	}
	line := fmt.Sprintf("%s:x:%d:%d:%s:%s:%s\n", u.Name, u.UID, u.GID, u.Comment, u.Home, u.Shell)
	if err := v.AppendFile("/etc/passwd", []byte(line), 0o644); err != nil {
		return u, err
	}
	return u, v.AppendFile("/etc/shadow", []byte(u.Name+":!:::::::\n"), 0o640)
}

// AddGroup adds a group; a GID that is -1 or taken is chosen.
func AddGroup(v vfs.View, name string, gid int) (Group, error) {
	if !validName(name) {
		return Group{}, fmt.Errorf("%q %w", name, ErrName)
	}
	if _, ok := LookupGroup(v, name); ok {
		return Group{}, fmt.Errorf("group '%s' %w", name, ErrExists)
	}
	taken := map[int]bool{}
	for _, g := range Groups(v) {
		taken[g.GID] = true
	}
	if gid < 0 {
		gid = 1000
	}
	for taken[gid] {
		gid++
	}
	return Group{Name: name, GID: gid}, v.AppendFile("/etc/group", fmt.Appendf(nil, "%s:x:%d:\n", name, gid), 0o644)
}

// edit rewrites the lines of a file; a nil line goes.
func edit(v vfs.View, file string, change func(fields []string) []string) error {
	info, err := v.Stat(file)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range lines(v, file) {
		if f = change(f); f != nil {
			b.WriteString(strings.Join(f, ":") + "\n")
		}
	}
	return v.WriteFile(file, []byte(b.String()), info.Mode().Perm()&fs.ModePerm)
}

// Update changes a user's line.
func Update(v vfs.View, name string, change func(*User)) error {
	found := false
	err := edit(v, "/etc/passwd", func(f []string) []string {
		u, ok := parseUser(f)
		if !ok || u.Name != name {
			return f
		}
		found = true
		change(&u)
		if valid(u.Comment, u.Home, u.Shell) != nil {
			return f
		}
		return []string{name, f[1], strconv.Itoa(u.UID), strconv.Itoa(u.GID), u.Comment, u.Home, u.Shell}
	})
	if err == nil && !found {
		err = fmt.Errorf("user '%s' %w", name, ErrUnknown)
	}
	return err
}

// SetGroups makes a user member of these groups; with add in addition to those it is in.
func SetGroups(v vfs.View, name string, groups []string, add bool) error {
	for _, g := range groups {
		if _, ok := LookupGroup(v, g); !ok {
			return fmt.Errorf("group '%s' %w", g, ErrUnknown)
		}
	}
	return edit(v, "/etc/group", func(f []string) []string {
		if len(f) < 4 {
			return f
		}
		members := strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })
		in, want := slices.Contains(members, name), slices.Contains(groups, f[0])
		switch {
		case want && !in:
			members = append(members, name)
		case !want && in && !add:
			members = slices.DeleteFunc(members, func(s string) bool { return s == name })
		}
		f[3] = strings.Join(members, ",")
		return f
	})
}

// Delete removes a user and its own group.
func Delete(v vfs.View, name string) error {
	if _, ok := Lookup(v, name); !ok {
		return fmt.Errorf("user '%s' %w", name, ErrUnknown)
	}
	drop := func(f []string) []string {
		if f[0] == name {
			return nil
		}
		return f
	}
	for _, file := range []string{"/etc/passwd", "/etc/shadow", "/etc/group"} {
		if err := edit(v, file, drop); err != nil {
			return err
		}
	}
	return SetGroups(v, name, nil, false)
}
