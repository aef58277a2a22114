package commands

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/users"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

func userCommands() map[string]shell.Command {
	return map[string]shell.Command{
		"id": id, "whoami": whoami, "groups": groups, "useradd": useradd, "adduser": useradd, "usermod": usermod, "userdel": userdel,
		"deluser": userdel, "groupadd": groupadd, "passwd": passwd, "chpasswd": passwd, "getent": getent, "sudo": sudo, "su": su,
		"who": func(*invocation) int { return 0 }, "logname": whoami,
	}
}

func current(in *invocation) users.User {
	for _, u := range users.All(in.FS) {
		if u.UID == in.Cred.UID {
			return u
		}
	}
	return users.User{Name: strconv.Itoa(in.Cred.UID), UID: in.Cred.UID, GID: in.Cred.GID, Home: "/", Shell: "/bin/sh"}
}

func whoami(in *invocation) int {
	fmt.Fprintln(in.Stdout, current(in).Name)
	return 0
}

func id(in *invocation) int {
	f := parse(in.Args, "")
	u, cred := current(in), in.Cred
	if len(f.args) > 0 {
		var ok bool
		if u, ok = users.Lookup(in.FS, f.args[0]); !ok {
			return fail(in, "'%s': no such user", f.args[0])
		}
		cred = users.Cred(in.FS, u)
	}
	switch {
	case f.has("u") && f.has("n"):
		fmt.Fprintln(in.Stdout, u.Name)
	case f.has("u"):
		fmt.Fprintln(in.Stdout, cred.UID)
	case f.has("g") && f.has("n"):
		fmt.Fprintln(in.Stdout, users.GroupName(in.FS, cred.GID))
	case f.has("g"):
		fmt.Fprintln(in.Stdout, cred.GID)
	default:
		var all []string
		for _, g := range slices.Concat([]int{cred.GID}, cred.Groups) {
			all = append(all, fmt.Sprintf("%d(%s)", g, users.GroupName(in.FS, g)))
		}
		if f.has("G") {
			return groups(in)
		}
		fmt.Fprintf(in.Stdout, "uid=%d(%s) gid=%s groups=%s\n", cred.UID, u.Name, all[0], strings.Join(all, ","))
	}
	return 0
}

func groups(in *invocation) int {
	var names []string
	for _, g := range slices.Concat([]int{in.Cred.GID}, in.Cred.Groups) {
		names = append(names, users.GroupName(in.FS, g))
	}
	fmt.Fprintln(in.Stdout, strings.Join(names, " "))
	return 0
}

func useradd(in *invocation) int {
	f := parse(in.Args, "u g G d s c k p e f K uid gid groups home-dir shell comment home gecos ingroup")
	if len(f.args) == 0 {
		return fail(in, "no user name")
	}
	if in.Cred.UID != 0 {
		return fail(in, "Permission denied.")
	}
	u := users.User{Name: f.args[0], UID: -1, GID: -1, Comment: f.get("c", "comment", "gecos"), Home: f.get("d", "home-dir", "home"), Shell: f.get("s", "shell")}
	if u.Home == "" {
		u.Home = "/home/" + u.Name
	}
	if u.Shell == "" {
		u.Shell = "/bin/bash"
	}
	if n, err := strconv.Atoi(f.get("u", "uid")); err == nil {
		u.UID = n
	}
	if g := f.get("g", "gid", "ingroup"); g != "" {
		if group, ok := users.LookupGroup(in.FS, g); ok {
			u.GID = group.GID
		} else if n, err := strconv.Atoi(g); err == nil {
			u.GID = n
		} else {
			fail(in, "group '%s' does not exist", g)
			return 6
		}
	}
	u, err := users.Add(in.FS, u)
	if err != nil {
		fail(in, "%v", err)
		return 9
	}
	if f.has("m", "create-home") || strings.HasPrefix(in.Args[0], "adduser") {
		if err := makeHome(in, u); err != nil {
			return fail(in, "cannot create directory %s: %v", u.Home, reason(err))
		}
	}
	return memberships(in, u.Name, f.get("G", "groups"), true)
}

func makeHome(in *invocation, u users.User) error {
	if _, err := in.FS.Stat(u.Home); err == nil {
		return nil
	}
	if err := in.FS.MkdirAll(u.Home, 0o755); err != nil {
		return err
	}
	return in.FS.Chown(u.Home, u.UID, u.GID, true)
}

func memberships(in *invocation, name, list string, add bool) int {
	if list == "" {
		return 0
	}
	if err := users.SetGroups(in.FS, name, strings.Split(list, ","), add); err != nil {
		fail(in, "%v", err)
		return 6
	}
	return 0
}

func usermod(in *invocation) int {
	f := parse(in.Args, "u g G d s c e l p shell groups home comment expiredate")
	if len(f.args) == 0 {
		return fail(in, "no user name")
	}
	if in.Cred.UID != 0 {
		return fail(in, "Permission denied.")
	}
	err := users.Update(in.FS, f.args[0], func(u *users.User) {
		for _, field := range []struct {
			value *string
			names []string
		}{{&u.Shell, []string{"s", "shell"}}, {&u.Home, []string{"d", "home"}}, {&u.Comment, []string{"c", "comment"}}} {
			if f.has(field.names...) {
				*field.value = f.get(field.names...)
			}
		}
	})
	if err != nil {
		fail(in, "%v", err)
		return 6
	}
	return memberships(in, f.args[0], f.get("G", "groups"), f.has("a", "append"))
}

func userdel(in *invocation) int {
	f := parse(in.Args, "")
	if len(f.args) == 0 {
		return fail(in, "no user name")
	}
	u, ok := users.Lookup(in.FS, f.args[0])
	if !ok {
		fail(in, "user '%s' does not exist", f.args[0])
		return 6
	}
	if err := users.Delete(in.FS, u.Name); err != nil {
		return fail(in, "%v", err)
	}
	if f.has("r", "remove", "remove-home") && strings.HasPrefix(u.Home, "/home/") {
		_ = removeAll(in, u.Home)
	}
	return 0
}

func groupadd(in *invocation) int {
	f := parse(in.Args, "g gid")
	gid := -1
	if n, err := strconv.Atoi(f.get("g", "gid")); err == nil {
		gid = n
	}
	if len(f.args) == 0 {
		return fail(in, "no group name")
	}
	if _, ok := users.LookupGroup(in.FS, f.args[0]); ok && f.has("f", "force") {
		return 0
	}
	if _, err := users.AddGroup(in.FS, f.args[0], gid); err != nil {
		fail(in, "%v", err)
		return 9
	}
	return 0
}

// passwd locks and unlocks nothing that counts: no password opens a machine.
func passwd(in *invocation) int {
	if f := parse(in.Args, ""); f.has("l", "u", "d", "e", "S") {
		return 0
	}
	return fail(in, "passwords open nothing on this machine; use keys")
}

func getent(in *invocation) int {
	f := parse(in.Args, "")
	if len(f.args) == 0 {
		return 1
	}
	file := map[string]string{"passwd": "/etc/passwd", "group": "/etc/group", "hosts": "/etc/hosts"}[f.args[0]]
	data, err := in.FS.ReadFile(file)
	if err != nil {
		return fail(in, "Unknown database: %s", f.args[0])
	}
	status := 0
	if len(f.args) > 1 {
		status = 2
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(line, ":")
		if len(f.args) == 1 || slices.Contains(f.args[1:], fields[0]) || len(fields) > 2 && slices.Contains(f.args[1:], fields[2]) {
			fmt.Fprint(in.Stdout, line)
			status = 0
		}
	}
	return status
}

// maySudo reads /etc/sudoers and /etc/sudoers.d as far as this: lines "name ALL=..." and "%group ALL=...".
func maySudo(in *invocation, root vfs.View) bool {
	if in.Cred.UID == 0 {
		return true
	}
	u := current(in)
	files := []string{"/etc/sudoers"}
	entries, _ := root.ReadDir("/etc/sudoers.d")
	for _, e := range entries {
		if info, err := root.Stat("/etc/sudoers.d/" + e.Name()); err == nil && info.UID == 0 && info.Mode()&0o022 == 0 {
			files = append(files, "/etc/sudoers.d/"+e.Name())
		}
	}
	for _, file := range files {
		data, _ := root.ReadFile(file)
		for line := range strings.Lines(string(data)) {
			words := strings.Fields(line)
			if len(words) < 2 || !strings.Contains(line, "ALL=") {
				continue
			}
			if words[0] == u.Name {
				return true
			}
			if name, ok := strings.CutPrefix(words[0], "%"); ok {
				g, found := users.LookupGroup(in.FS, name)
				if found && (g.GID == in.Cred.GID || slices.Contains(in.Cred.Groups, g.GID)) {
					return true
				}
			}
		}
	}
	return false
}

func sudo(in *invocation) int {
	args, target := in.Args[1:], "root"
	login := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag := args[0]
		args = args[1:]
		if flag == "--" {
			break
		}
		if (flag == "-u" || flag == "--user") && len(args) > 0 {
			target, args = args[0], args[1:]
		}
		if flag == "-l" {
			fmt.Fprintln(in.Stdout, "(ALL) NOPASSWD: ALL")
			return bool2int(!maySudo(in, in.Root()))
		}
		login = login || flag == "-i" || flag == "-s"
	}
	if !maySudo(in, in.Root()) {
		return fail(in, "%s is not in the sudoers file", current(in).Name)
	}
	var extra []string
	for len(args) > 0 && strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "=") {
		extra, args = append(extra, args[0]), args[1:]
	}
	return runAs(in, target, login || len(args) == 0, extra, args)
}

func runAs(in *invocation, target string, login bool, extra, args []string) int {
	u, ok := users.Lookup(in.FS, target)
	if !ok {
		return fail(in, "unknown user %s", target)
	}
	if login {
		if len(args) == 0 {
			args = []string{"bash"}
		} else {
			args = []string{"bash", "-c", strings.Join(args, " ")}
		}
	}
	env := slices.Concat([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + u.Home, "USER=" + u.Name,
		"LOGNAME=" + u.Name, "SHELL=" + u.Shell, "LANG=" + in.Getenv("LANG"), "SUDO_USER=" + current(in).Name, "SUDO_UID=" + strconv.Itoa(in.Cred.UID)}, extra)
	return in.Run(users.Cred(in.Root(), u), env, in.Stdin, in.Stdout, args...)
}

func su(in *invocation) int {
	f := parse(in.Args, "c s")
	target := "root"
	for _, a := range f.args {
		if a != "-" {
			target = a
		}
	}
	if in.Cred.UID != 0 {
		return fail(in, "Authentication failure")
	}
	if c := f.get("c"); c != "" {
		return runAs(in, target, false, nil, []string{"bash", "-c", c})
	}
	return runAs(in, target, true, nil, nil)
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func randomName(n int) string {
	b := make([]byte, min(n, 64))
	_, _ = rand.Read(b)
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}
