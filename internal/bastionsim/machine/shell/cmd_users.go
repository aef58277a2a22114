package shell

import (
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

func randomName(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, min(n, 64))
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// idProgram is id, groups and whoami.
func idProgram(p *Process, f flags) int {
	switch p.name() {
	case "groups":
		f.set['G'], f.set['n'] = true, true
	case "whoami":
		f.set['u'], f.set['n'] = true, true
	}
	u := p.User
	if len(f.args) > 0 {
		var ok bool
		if u, ok = LookupUser(p.FS.FS(), f.args[0]); !ok {
			return p.Failf(1, "'%s': no such user", f.args[0])
		}
	}
	all := loadNames(p.FS.FS())
	show := func(id uint32, name string) string {
		switch {
		case f.has('n'):
			return name
		case len(f.set) > 0:
			return strconv.Itoa(int(id))
		}
		return fmt.Sprintf("%d(%s)", id, name)
	}
	user := show(u.UID, all.user(u.UID))
	var groups []string
	for _, g := range append([]uint32{u.GID}, u.Groups...) {
		groups = append(groups, show(g, all.group(g)))
	}
	switch {
	case f.has('u'):
		p.Printf("%s\n", user)
	case f.has('g'):
		p.Printf("%s\n", groups[0])
	case f.has('G'):
		p.Printf("%s\n", strings.Join(groups, " "))
	default:
		p.Printf("uid=%s gid=%s groups=%s\n", user, groups[0], strings.Join(groups, ","))
	}
	return 0
}

func getentProgram(p *Process, f flags) int {
	if f.args[0] != "passwd" && f.args[0] != "group" {
		return p.Failf(1, "unknown database")
	}
	status := 2
	for _, row := range table(p.FS.FS(), "/etc/"+f.args[0]) {
		if len(f.args) == 1 || row[0] == f.args[1] || len(row) > 2 && row[2] == f.args[1] {
			p.Printf("%s\n", strings.Join(row, ":"))
			status = 0
		}
	}
	return status
}

// The files of accounts.
const (
	passwdFile = "/etc/passwd"
	shadowFile = "/etc/shadow"
	groupFile  = "/etc/group"
)

// account is the line of a name in a file of accounts, cut at colons, or nil.
func (p *Process) account(file, name string) []string {
	for _, row := range table(p.FS.FS(), file) {
		if row[0] == name {
			return row
		}
	}
	return nil
}

// setAccount replaces the line of a name in a file of accounts, adds it, or, with nil, removes it.
func (p *Process) setAccount(file, name string, row []string) error {
	data, err := p.FS.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := p.FS.Stat(file)
	if err = cmp.Or(err, p.sh.step(1+len(data)>>10)); err != nil {
		return err
	}
	lines := splitLines(string(data))
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+":") })
	switch {
	case i < 0 && row != nil:
		lines = append(lines, strings.Join(row, ":"))
	case i >= 0 && row != nil:
		lines[i] = strings.Join(row, ":")
	case i >= 0:
		lines = slices.Delete(lines, i, i+1)
	}
	tmp, st := file+"."+randomName(8), info.Sys().(*vfs.Stat)
	if err := p.FS.WriteFile(tmp, []byte(strings.Join(lines, "\n")+"\n"), info.Mode()); err != nil {
		return err
	}
	if err := p.FS.Chown(tmp, int(st.UID), int(st.GID)); err != nil {
		return err
	}
	return p.FS.Rename(tmp, file)
}

func validAccount(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return len(name) <= 32 && strings.Trim(name, letters+"0123456789-.") == "" && strings.IndexAny(name, letters) == 0
}

// freeID is the first number from the one given that no line of a file has.
func (p *Process) freeID(file string, from int64) int64 {
	used := map[int64]bool{}
	for _, row := range table(p.FS.FS(), file) {
		used[groupID(row)] = true
	}
	for used[from] {
		from++
	}
	return from
}

// accountFields are the options of useradd and usermod that are a field of /etc/passwd.
var accountFields = map[byte]int{'c': 4, 'd': 5, 's': 6}

// useraddProgram is useradd, adduser and usermod.
func useraddProgram(p *Process, f flags) int {
	name := f.args[0]
	row := p.account(passwdFile, name)
	isNew := p.name() != "usermod"
	switch {
	case f.has('p'):
		return p.Failf(1, noPasswords)
	case isNew && !validAccount(name):
		return p.Failf(3, "invalid user name '%s'", name)
	case isNew && row != nil:
		return p.Failf(9, "user '%s' already exists", name)
	case !isNew && len(row) < 7:
		return p.Failf(6, "user '%s' does not exist", name)
	case !isNew && f.has('u'):
		return p.Failf(1, "numbers cannot be changed on this machine")
	}
	for _, group := range append(strings.Split(f.value('G', ""), ","), f.value('g', "")) {
		if group != "" && groupIDOf(p.FS.FS(), group) < 0 {
			return p.Failf(6, "group '%s' does not exist", group)
		}
	}
	if isNew {
		uid := p.freeID(passwdFile, firstID(f))
		if f.has('u') {
			if uid = parseID(f.value('u', "")); uid < 0 || p.freeID(passwdFile, uid) != uid {
				return p.Failf(4, "UID %s is not unique or invalid", f.value('u', ""))
			}
		}
		row = []string{name, "x", strconv.FormatInt(uid, 10), "", "", "/home/" + name, "/bin/bash"}
	}
	for option, field := range accountFields {
		row[field] = f.value(option, row[field])
		if strings.ContainsAny(row[field], ":\n") {
			return p.Failf(3, "invalid field")
		}
	}
	if g := f.value('g', name); isNew || f.has('g') {
		if groupIDOf(p.FS.FS(), g) < 0 {
			gid := p.freeID(groupFile, parseID(row[2]))
			if err := p.setAccount(groupFile, g, []string{g, "x", fmt.Sprint(gid), ""}); err != nil {
				return p.Fail(err)
			}
		}
		row[3] = strconv.Itoa(groupIDOf(p.FS.FS(), g))
	}
	err := p.setAccount(passwdFile, name, row)
	shadow := p.account(shadowFile, name)
	if len(shadow) < 2 {
		shadow = []string{name, "!", strconv.FormatInt(p.now().Unix()/86400, 10), "0", "99999", "7", "", "", ""}
	}
	switch {
	case f.has('L'):
		shadow[1] = "!" + shadow[1]
	case f.has('U') && !isNew && strings.HasPrefix(shadow[1], "!!"):
		shadow[1] = shadow[1][1:]
	}
	if err == nil {
		err = p.setAccount(shadowFile, name, shadow)
	}
	if err == nil && f.has('G') {
		err = p.setGroups(name, strings.Split(f.value('G', ""), ","), isNew || f.has('a'))
	}
	if err == nil && isNew && (f.has('m') || !f.has('M') && !f.has('r')) {
		return p.makeHome(row[5], int(parseID(row[2])), int(parseID(row[3])))
	}
	return p.done(err)
}

// firstID is where the numbers of new users and groups begin.
func firstID(f flags) int64 {
	if f.has('r') {
		return 201
	}
	return 1000
}

// makeHome makes a home directory with what is in /etc/skel, unless it is there.
func (p *Process) makeHome(home string, uid, gid int) int {
	if _, err := p.FS.Stat(home); err == nil {
		return 0
	}
	if err := p.FS.MkdirAll(home, 0o755); err != nil {
		return p.Fail(err)
	}
	const skeleton = "/etc/skel"
	status := p.walk([]string{skeleton}, "cannot copy", deepest, func(name string, info fs.FileInfo) error {
		to := home + strings.TrimPrefix(name, skeleton)
		return cmp.Or(p.copy(name, to, info), p.FS.Chown(to, uid, gid))
	}, nil)
	return max(status, p.done(p.FS.Chmod(home, 0o750)))
}

// setGroups makes a user a member of groups. Unless it keeps those that it has, it is in no others afterwards.
func (p *Process) setGroups(user string, groups []string, keep bool) error {
	for _, row := range table(p.FS.FS(), groupFile) {
		if len(row) < 4 {
			continue
		}
		is, wanted := inList(row[3], user), slices.Contains(groups, row[0])
		if is == wanted || is && keep {
			continue
		}
		members := slices.DeleteFunc(strings.Split(row[3], ","), func(m string) bool { return m == "" || m == user })
		if wanted {
			members = append(members, user)
		}
		row[3] = strings.Join(members, ",")
		if err := p.setAccount(groupFile, row[0], row); err != nil {
			return err
		}
	}
	return nil
}

func userdelProgram(p *Process, f flags) int {
	u, ok := LookupUser(p.FS.FS(), f.args[0])
	switch {
	case !ok:
		return p.Failf(6, "user '%s' does not exist", f.args[0])
	case u.UID == 0:
		return p.Failf(8, "root cannot be removed")
	}
	err := p.setGroups(u.Name, nil, false)
	files := []string{passwdFile, shadowFile}
	if own := p.account(groupFile, u.Name); groupID(own) == int64(u.GID) && strings.Join(own[3:], "") == "" {
		files = append(files, groupFile)
	}
	for _, file := range files {
		err = cmp.Or(err, p.setAccount(file, u.Name, nil))
	}
	if err == nil && f.has('r') && strings.HasPrefix(u.Home, "/home/") {
		err = p.FS.RemoveAll(u.Home)
	}
	return p.done(err)
}

func groupaddProgram(p *Process, f flags) int {
	name := f.args[0]
	switch {
	case !validAccount(name):
		return p.Failf(3, "invalid group name '%s'", name)
	case p.account(groupFile, name) != nil && f.has('f'):
		return 0
	case p.account(groupFile, name) != nil:
		return p.Failf(9, "group '%s' already exists", name)
	}
	gid := p.freeID(groupFile, firstID(f))
	if f.has('g') {
		if gid = parseID(f.value('g', "")); gid < 0 {
			return p.Failf(3, "invalid group ID '%s'", f.value('g', ""))
		}
	}
	return p.done(p.setAccount(groupFile, name, []string{name, "x", strconv.FormatInt(gid, 10), ""}))
}

// maySudo says whether a user may become others: root, and the users and groups of a line of /etc/sudoers or of a file
// in /etc/sudoers.d. A file that others than root may write is left out.
func (p *Process) maySudo() bool {
	if p.User.UID == 0 {
		return true
	}
	root, all := p.FS.As(vfs.Root), loadNames(p.FS.FS())
	names := []string{p.User.Name}
	for _, g := range append([]uint32{p.User.GID}, p.User.Groups...) {
		names = append(names, "%"+all.group(g))
	}
	files := []string{"/etc/sudoers"}
	entries, _ := root.ReadDir("/etc/sudoers.d") // it may be missing
	for _, e := range entries {
		files = append(files, "/etc/sudoers.d/"+e.Name())
	}
	for _, name := range files {
		info, err := root.Stat(name)
		if err != nil || info.Sys().(*vfs.Stat).UID != 0 || info.Mode()&0o022 != 0 {
			continue
		}
		data, err := root.ReadFile(name)
		if err != nil {
			continue
		}
		for _, line := range splitLines(string(data)) {
			words := strings.Fields(line)
			if len(words) > 1 && slices.Contains(names, words[0]) &&
				strings.HasPrefix(words[1], "ALL") && strings.HasSuffix(line, "ALL") {
				return true
			}
		}
	}
	return false
}

func sudoProgram(p *Process, f flags) int {
	target, ok := LookupUser(p.FS.FS(), f.value('u', "root"))
	switch {
	case !p.maySudo() && f.has('n'):
		return p.Failf(1, "a password is required")
	case !p.maySudo():
		return p.Failf(1, "%s is not in the sudoers file.", p.User.Name)
	case !ok:
		return p.Failf(1, "unknown user %s", f.value('u', ""))
	case f.has('l'):
		p.Printf("User %s may run the following commands:\n    (ALL : ALL) NOPASSWD: ALL\n", p.User.Name)
		return 0
	case f.has('v'):
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
	switch {
	case f.has('i') && len(args) > 0:
		args = []string{"bash", "-c", strings.Join(args, " ")}
	case f.has('i'):
		args = []string{"bash"}
	case len(args) == 0:
		return p.Failf(1, "usage: sudo [-n] [-u user] command")
	}
	return p.become(target, args, env)
}

func (p *Process) become(target User, args, env []string) int {
	env = append(env, "HOME="+target.Home, "USER="+target.Name, "LOGNAME="+target.Name, "SHELL=/bin/bash",
		"PATH="+defaultPath)
	return p.run(p.sh.ctx, args, env, &target)
}

func suProgram(p *Process, f flags) int {
	names := slices.DeleteFunc(f.args, func(arg string) bool { return arg == "-" })
	name := append(names, "root")[0]
	target, ok := LookupUser(p.FS.FS(), name)
	switch {
	case !ok:
		return p.Failf(1, "user %s does not exist", name)
	case p.User.UID != 0:
		return p.Failf(1, "Authentication failure")
	case f.has('c'):
		return p.become(target, []string{"bash", "-c", f.value('c', "")}, nil)
	}
	return p.become(target, []string{"bash"}, nil)
}
