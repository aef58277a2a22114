package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

var userCommands = map[string]Command{
	"id": idProgram, "whoami": whoamiProgram, "groups": idProgram, "getent": getentProgram,
	"useradd": rootOnly(useraddProgram), "usermod": rootOnly(usermodProgram), "userdel": rootOnly(userdelProgram),
	"groupadd": rootOnly(groupaddProgram), "passwd": passwdProgram, "chpasswd": passwdProgram,
	"sudo": sudoProgram, "su": suProgram,
}

func randomName(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, min(n, 64))
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

func whoamiProgram(_ context.Context, p *Process) int {
	p.Printf("%s\n", loadNames(p.FS.FS()).user(p.User.UID))
	return 0
}

func idProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "ugGnr", map[string]byte{"user": 'u', "group": 'g', "groups": 'G', "name": 'n'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	u := p.User
	if len(f.args) > 0 {
		var ok bool
		if u, ok = LookupUser(p.FS.FS(), f.args[0]); !ok {
			return p.Failf(1, "'%s': no such user", f.args[0])
		}
	}
	who := loadNames(p.FS.FS())
	groups := append([]uint32{u.GID}, u.Groups...)
	if p.name() == "groups" {
		f.set['G'], f.set['n'] = true, true
	}
	show := func(id uint32, name func(uint32) string) string {
		if f.has('n') {
			return name(id)
		}
		return strconv.Itoa(int(id))
	}
	switch {
	case f.has('u'):
		p.Printf("%s\n", show(u.UID, who.user))
	case f.has('g'):
		p.Printf("%s\n", show(u.GID, who.group))
	case f.has('G'):
		var all []string
		for _, g := range groups {
			all = append(all, show(g, who.group))
		}
		p.Printf("%s\n", strings.Join(all, " "))
	default:
		var all []string
		for _, g := range groups {
			all = append(all, fmt.Sprintf("%d(%s)", g, who.group(g)))
		}
		p.Printf("uid=%d(%s) gid=%d(%s) groups=%s\n", u.UID, who.user(u.UID), u.GID, who.group(u.GID), strings.Join(all, ","))
	}
	return 0
}

func getentProgram(_ context.Context, p *Process) int {
	if len(p.Args) < 2 || !slices.Contains([]string{"passwd", "group", "hosts", "shadow"}, p.Args[1]) {
		return p.Failf(1, "unknown database")
	}
	text, err := p.readFile("/etc/" + p.Args[1])
	if err != nil {
		return p.Fail(err)
	}
	status := 2
	for _, line := range splitLines(text) {
		row := strings.Split(line, ":")
		if len(p.Args) == 2 || row[0] == p.Args[2] || len(row) > 2 && row[2] == p.Args[2] || p.Args[1] == "hosts" && slices.Contains(strings.Fields(line), p.Args[2]) {
			p.Printf("%s\n", line)
			status = 0
		}
	}
	return status
}

// edit changes the lines of a file of accounts. Lines that fn makes empty go; more are added.
func (p *Process) edit(name string, fn func(row []string) []string, more ...string) error {
	data, err := p.FS.ReadFile(name)
	if err != nil {
		return err
	}
	info, err := p.FS.Stat(name)
	if err != nil {
		return err
	}
	var out []string
	for _, line := range splitLines(string(data)) {
		row := strings.Split(line, ":")
		if fn != nil {
			row = fn(row)
		}
		if row != nil {
			out = append(out, strings.Join(row, ":"))
		}
	}
	out = append(out, more...)
	tmp := name + "." + randomName(8)
	if err := p.FS.WriteFile(tmp, []byte(strings.Join(out, "\n")+"\n"), info.Mode()); err != nil {
		return err
	}
	if err := p.FS.Chown(tmp, int(info.Sys().(*vfs.Stat).UID), int(info.Sys().(*vfs.Stat).GID)); err != nil {
		return err
	}
	return p.FS.Rename(tmp, name)
}

func validAccount(name string) bool {
	if name == "" || len(name) > 32 || name[0] >= '0' && name[0] <= '9' || name[0] == '-' {
		return false
	}
	return strings.IndexFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.')
	}) < 0
}

// freeID is the first number from the first one given that no line of a file has.
func (p *Process) freeID(name string, from int64) int64 {
	used := map[int64]bool{}
	for _, row := range table(p.FS.FS(), name) {
		used[groupID(row)] = true
	}
	for used[from] {
		from++
	}
	return from
}

var useraddLong = map[string]byte{
	"create-home": 'm', "no-create-home": 'M', "shell": 's', "home-dir": 'd', "home": 'd', "uid": 'u', "gid": 'g', "groups": 'G', "system": 'r', "comment": 'c', "gecos": 'c',
	"user-group": 'U', "no-user-group": 'N', "password": 'p', "disabled-password": 'D', "append": 'a', "lock": 'L', "unlock": 'U', "expiredate": 'e', "inactive": 'f',
}

func useraddProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "mMs:d:u:g:G:rc:UNp:De:f:k:o", useraddLong, false)
	if err != nil || len(f.args) == 0 {
		return p.Failf(2, "%v", cmp.Or(err, errors.New("usage: useradd [options] LOGIN")))
	}
	name := f.args[0]
	if !validAccount(name) {
		return p.Failf(3, "invalid user name '%s'", name)
	}
	if f.has('p') {
		return p.Failf(1, "passwords are refused on this machine: log in with a key")
	}
	if _, ok := LookupUser(p.FS.FS(), name); ok {
		return p.Failf(9, "user '%s' already exists", name)
	}
	first := int64(1000)
	if f.has('r') {
		first = 201
	}
	uid := p.freeID("/etc/passwd", first)
	if f.has('u') {
		if uid = parseID(f.value('u', "")); uid < 0 || loadNames(p.FS.FS()).users[uint32(uid)] != "" {
			return p.Failf(4, "UID %s is not unique or invalid", f.value('u', ""))
		}
	}
	gid := int64(-1)
	if g := f.value('g', ""); g != "" {
		if gid = int64(groupIDOf(p.FS.FS(), g)); gid < 0 {
			return p.Failf(6, "group '%s' does not exist", g)
		}
	} else if gid = int64(groupIDOf(p.FS.FS(), name)); gid < 0 {
		gid = p.freeID("/etc/group", uid)
		if err := p.edit("/etc/group", nil, fmt.Sprintf("%s:x:%d:", name, gid)); err != nil {
			return p.Fail(err)
		}
	}
	home, shell := f.value('d', "/home/"+name), f.value('s', "/bin/bash")
	if strings.ContainsAny(home+shell+f.value('c', ""), ":\n") {
		return p.Failf(3, "invalid field")
	}
	err = cmp.Or(p.edit("/etc/passwd", nil, fmt.Sprintf("%s:x:%d:%d:%s:%s:%s", name, uid, gid, f.value('c', ""), home, shell)),
		p.edit("/etc/shadow", nil, fmt.Sprintf("%s:!:%d:0:99999:7:::", name, p.now().Unix()/86400)))
	if err == nil && f.has('G') {
		err = p.addGroups(name, f.value('G', ""), true)
	}
	if err == nil && (f.has('m') || !f.has('M') && !f.has('r')) {
		err = p.makeHome(home, int(uid), int(gid))
	}
	if err != nil {
		return p.Fail(err)
	}
	return 0
}

func (p *Process) makeHome(home string, uid, gid int) error {
	if _, err := p.FS.Stat(home); err == nil {
		return nil
	}
	if err := p.FS.MkdirAll(home, 0o755); err != nil {
		return err
	}
	entries, err := p.FS.ReadDir("/etc/skel")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		data, err := p.FS.ReadFile("/etc/skel/" + e.Name())
		if err != nil {
			continue // only files are copied
		}
		to := home + "/" + e.Name()
		if err := errors.Join(p.FS.WriteFile(to, data, 0o644), p.FS.Chown(to, uid, gid)); err != nil {
			return err
		}
	}
	return errors.Join(p.FS.Chmod(home, 0o750), p.FS.Chown(home, uid, gid))
}

// addGroups adds a user to groups; without more it is in no others.
func (p *Process) addGroups(user, list string, more bool) error {
	wanted := strings.Split(list, ",")
	for _, g := range wanted {
		if g != "" && groupIDOf(p.FS.FS(), g) < 0 {
			return fmt.Errorf("group '%s' does not exist", g)
		}
	}
	return p.edit("/etc/group", func(row []string) []string {
		if len(row) < 4 {
			return row
		}
		members := slices.DeleteFunc(strings.Split(row[3], ","), func(m string) bool { return m == "" || m == user && !more })
		if slices.Contains(wanted, row[0]) && !slices.Contains(members, user) {
			members = append(members, user)
		}
		row[3] = strings.Join(members, ",")
		return row
	})
}

func usermodProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "aG:s:d:c:g:LUmp:u:l:e:", useraddLong, false)
	if err != nil || len(f.args) == 0 {
		return p.Failf(2, "%v", cmp.Or(err, errors.New("usage: usermod [options] LOGIN")))
	}
	name := f.args[0]
	if _, ok := LookupUser(p.FS.FS(), name); !ok {
		return p.Failf(6, "user '%s' does not exist", name)
	}
	if f.has('p') || f.has('u') || f.has('l') {
		return p.Failf(1, "passwords, numbers and names cannot be changed on this machine")
	}
	if strings.ContainsAny(f.value('d', "")+f.value('s', "")+f.value('c', ""), ":\n") {
		return p.Failf(3, "invalid field")
	}
	err = p.edit("/etc/passwd", func(row []string) []string {
		if row[0] == name && len(row) > 6 {
			row[4], row[5], row[6] = f.value('c', row[4]), f.value('d', row[5]), f.value('s', row[6])
			if g := f.value('g', ""); g != "" && groupIDOf(p.FS.FS(), g) >= 0 {
				row[3] = strconv.Itoa(groupIDOf(p.FS.FS(), g))
			}
		}
		return row
	})
	if err == nil && f.has('G') {
		err = p.addGroups(name, f.value('G', ""), f.has('a'))
	}
	if err == nil && (f.has('L') || f.has('U')) {
		err = p.lock(name, f.has('L'))
	}
	if err != nil {
		return p.Fail(err)
	}
	return 0
}

// lock locks an account. Unlocked ones have no password either: keys are the way in.
func (p *Process) lock(name string, locked bool) error {
	return p.edit("/etc/shadow", func(row []string) []string {
		if row[0] == name && len(row) > 1 {
			row[1] = map[bool]string{true: "!", false: "*"}[locked]
		}
		return row
	})
}

func userdelProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "rf", map[string]byte{"remove": 'r', "force": 'f', "remove-home": 'r'}, false)
	if err != nil || len(f.args) == 0 {
		return p.Failf(2, "%v", cmp.Or(err, errors.New("usage: userdel [options] LOGIN")))
	}
	u, ok := LookupUser(p.FS.FS(), f.args[0])
	switch {
	case !ok:
		return p.Failf(6, "user '%s' does not exist", f.args[0])
	case u.UID == 0:
		return p.Failf(8, "root cannot be removed")
	}
	without := func(row []string) []string {
		if row[0] == u.Name {
			return nil
		}
		return row
	}
	err = cmp.Or(p.edit("/etc/passwd", without), p.edit("/etc/shadow", without), p.addGroups(u.Name, "", false))
	if err == nil {
		err = p.edit("/etc/group", func(row []string) []string {
			if row[0] == u.Name && groupID(row) == int64(u.GID) && (len(row) < 4 || row[3] == "") {
				return nil
			}
			return row
		})
	}
	if err == nil && f.has('r') && strings.HasPrefix(u.Home, "/home/") {
		err = p.FS.RemoveAll(u.Home)
	}
	if err != nil {
		return p.Fail(err)
	}
	return 0
}

func groupaddProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "rfg:", map[string]byte{"system": 'r', "force": 'f', "gid": 'g'}, false)
	if err != nil || len(f.args) == 0 || !validAccount(f.args[0]) {
		return p.Failf(2, "%v", cmp.Or(err, errors.New("usage: groupadd [options] GROUP")))
	}
	if groupIDOf(p.FS.FS(), f.args[0]) >= 0 {
		if f.has('f') {
			return 0
		}
		return p.Failf(9, "group '%s' already exists", f.args[0])
	}
	gid := p.freeID("/etc/group", map[bool]int64{true: 201, false: 1000}[f.has('r')])
	if f.has('g') {
		if gid = parseID(f.value('g', "")); gid < 0 {
			return p.Failf(3, "invalid group ID '%s'", f.value('g', ""))
		}
	}
	if err := p.edit("/etc/group", nil, fmt.Sprintf("%s:x:%d:", f.args[0], gid)); err != nil {
		return p.Fail(err)
	}
	return 0
}

func passwdProgram(_ context.Context, p *Process) int {
	return p.Failf(1, "passwords are refused on this machine: log in with a key")
}

// sudoers says whether a user may become others: root, and whom a line of /etc/sudoers or a file in /etc/sudoers.d names.
func (p *Process) sudoers() bool {
	if p.User.UID == 0 {
		return true
	}
	root := p.FS.As(vfs.Root)
	files := []string{"/etc/sudoers"}
	entries, err := root.ReadDir("/etc/sudoers.d")
	if err == nil {
		for _, e := range entries {
			files = append(files, "/etc/sudoers.d/"+e.Name())
		}
	}
	who := loadNames(p.FS.FS())
	for _, name := range files {
		info, err := root.Stat(name)
		if err != nil || info.Sys().(*vfs.Stat).UID != 0 || info.Mode()&0o022 != 0 {
			continue // what others may write decides nothing
		}
		data, err := root.ReadFile(name)
		if err != nil {
			continue
		}
		for _, line := range splitLines(string(data)) {
			words := strings.Fields(line)
			if len(words) < 2 || !strings.HasPrefix(words[1], "ALL") || !strings.HasSuffix(line, "ALL") {
				continue
			}
			group, isGroup := strings.CutPrefix(words[0], "%")
			if words[0] == p.User.Name || isGroup && slices.ContainsFunc(append([]uint32{p.User.GID}, p.User.Groups...), func(g uint32) bool { return who.group(g) == group }) {
				return true
			}
		}
	}
	return false
}

func sudoProgram(ctx context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "nu:g:EHiskvlKbSA", map[string]byte{"non-interactive": 'n', "user": 'u', "preserve-env": 'E', "login": 'i'}, true)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	if !p.sudoers() {
		if f.has('n') {
			return p.Failf(1, "a password is required")
		}
		return p.Failf(1, "%s is not in the sudoers file.", p.User.Name)
	}
	target, ok := LookupUser(p.FS.FS(), cmp.Or(f.value('u', ""), "root"))
	if !ok {
		return p.Failf(1, "unknown user %s", f.value('u', ""))
	}
	switch {
	case f.has('l'):
		p.Printf("User %s may run the following commands on %s:\n    (ALL : ALL) NOPASSWD: ALL\n", p.User.Name, p.sh.s.hostname())
		return 0
	case f.has('v') || f.has('k') || f.has('K'):
		return 0
	}
	env := []string{"SUDO_USER=" + p.User.Name, fmt.Sprintf("SUDO_UID=%d", p.User.UID)}
	for _, e := range p.Env {
		name, _, _ := strings.Cut(e, "=")
		if f.has('E') || name == "LANG" || name == "TERM" || name == "PWD" {
			env = append(env, e)
		}
	}
	args := f.args
	for len(args) > 0 && strings.Contains(args[0], "=") {
		env, args = append(env, args[0]), args[1:]
	}
	if f.has('i') || f.has('s') {
		if len(args) > 0 {
			args = []string{"bash", "-c", strings.Join(args, " ")}
		} else {
			args = []string{"bash"}
		}
	}
	if len(args) == 0 {
		return p.Failf(1, "usage: sudo [-n] [-u user] command")
	}
	return p.become(ctx, target, args, env)
}

func (p *Process) become(ctx context.Context, target User, args, env []string) int {
	env = append(env, "HOME="+target.Home, "USER="+target.Name, "LOGNAME="+target.Name, "SHELL=/bin/bash", "PATH="+defaultPath)
	return p.run(ctx, args, env, &target)
}

func suProgram(ctx context.Context, p *Process) int {
	args, command := []string{}, ""
	for i := 1; i < len(p.Args); i++ {
		switch a := p.Args[i]; {
		case a == "-c" && i+1 < len(p.Args):
			i++
			command = p.Args[i]
		case a == "-s" && i+1 < len(p.Args):
			i++
		case strings.HasPrefix(a, "-"):
		default:
			args = append(args, a)
		}
	}
	target, ok := LookupUser(p.FS.FS(), append(args, "root")[0])
	switch {
	case !ok:
		return p.Failf(1, "user %s does not exist", args[0])
	case p.User.UID != 0:
		return p.Failf(1, "Authentication failure")
	}
	run := []string{"bash"}
	if command != "" {
		run = []string{"bash", "-c", command}
	}
	return p.become(ctx, target, run, nil)
}
