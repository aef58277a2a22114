package shell

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

func randomName(n int) string {
	name := rand.Text()
	for len(name) < n && len(name) < 64 {
		name += rand.Text()
	}
	return name[:min(n, 64)]
}

// idProgram implements id and whoami.
func idProgram(p *Process, f flags) int {
	if p.name() == "whoami" {
		f.set['u'], f.set['n'] = true, true
	}
	u := p.user
	if len(f.args) > 0 {
		var ok bool
		if u, ok = LookupUser(p.fs.FS(), f.args[0]); !ok {
			return p.Failf(1, "'%s': no such user", f.args[0])
		}
	}
	all := LoadNames(p.fs.FS())
	show := func(id uint32, name string) string {
		switch {
		case f.has('n'):
			return name
		case len(f.set) > 0:
			return strconv.Itoa(int(id))
		}
		return fmt.Sprintf("%d(%s)", id, name)
	}
	text := show(u.UID, all.User(u.UID))
	var groups []string
	for _, g := range append([]uint32{u.GID}, u.Groups...) {
		groups = append(groups, show(g, all.Group(g)))
	}
	switch {
	case f.has('g'):
		text = groups[0]
	case f.has('G'):
		text = strings.Join(groups, " ")
	case !f.has('u'):
		text = fmt.Sprintf("uid=%s gid=%s groups=%s", text, groups[0], strings.Join(groups, ","))
	}
	p.Printf("%s\n", text)
	return 0
}

// editLines edits a file of accounts. It renames a new file to the old one, so that a machine that stops meanwhile has
// one of them.
func (p *Process) editLines(file string, edit func(lines []string) []string) error {
	data, err := p.fs.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := p.fs.Stat(file)
	if err = cmp.Or(err, p.step(1+len(data)>>10)); err != nil {
		return err
	}
	lines := edit(splitLines(string(data)))
	tmp, st := file+"."+randomName(8), info.Sys().(*vfs.Stat)
	if err := p.fs.WriteFile(tmp, []byte(strings.Join(lines, "\n")+"\n"), info.Mode()); err != nil {
		return err
	}
	if err := p.fs.Chown(tmp, int(st.UID), int(st.GID)); err != nil {
		return err
	}
	return p.fs.Rename(tmp, file)
}

var accountName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)

// freeID returns the first number from 1000 that neither a user nor a group has.
func freeID(f *vfs.FS) uint32 {
	used := map[uint32]bool{}
	for _, file := range []string{"/etc/passwd", "/etc/group"} {
		for id := range accounts(f, file) {
			used[id] = true
		}
	}
	id := uint32(1000)
	for used[id] {
		id++
	}
	return id
}

// useraddProgram creates a user, and a group of the same name unless the group exists.
func useraddProgram(p *Process, f flags) int {
	name, files := f.args[0], p.fs.FS()
	groups := strings.FieldsFunc(f.value('G', ""), func(c rune) bool { return c == ',' })
	home, shell, comment := f.value('d', "/home/"+name), f.value('s', "/bin/bash"), f.value('c', "")
	if !accountName.MatchString(name) {
		return p.Failf(3, "invalid user name '%s'", name)
	}
	if _, exists := LookupUser(files, name); exists {
		return p.Failf(9, "user '%s' already exists", name)
	}
	if strings.ContainsAny(home+shell+comment, ":\n") {
		return p.Failf(3, "invalid field")
	}
	for _, group := range groups {
		if idOf(files, "/etc/group", group) < 0 {
			return p.Failf(6, "group '%s' does not exist", group)
		}
	}
	uid := freeID(files)
	gid := idOf(files, "/etc/group", name)
	newGroup := gid < 0
	if newGroup {
		gid = int(uid)
	}
	err := p.editLines("/etc/group", func(lines []string) []string {
		for i, line := range lines {
			if group, _, _ := strings.Cut(line, ":"); slices.Contains(groups, group) {
				lines[i] = line + "," + name
				if strings.HasSuffix(line, ":") {
					lines[i] = line + name
				}
			}
		}
		if newGroup {
			lines = append(lines, fmt.Sprintf("%s:x:%d:", name, gid))
		}
		return lines
	})
	for _, entry := range [][2]string{
		{"/etc/passwd", fmt.Sprintf("%s:x:%d:%d:%s:%s:%s", name, uid, gid, comment, home, shell)},
		{"/etc/shadow", fmt.Sprintf("%s:!:%d:0:99999:7:::", name, p.s.o.Clock.Now().Unix()/86400)},
	} {
		if err == nil {
			err = p.editLines(entry[0], func(lines []string) []string { return append(lines, entry[1]) })
		}
	}
	if _, missing := p.fs.Stat(home); err == nil && missing != nil && !f.has('M') {
		err = cmp.Or(p.fs.MkdirAll(home, 0o755), p.fs.Chown(home, int(uid), gid), p.fs.Chmod(home, 0o750))
	}
	return p.done(err)
}

// maySudo reports whether a user may become another user: root may, and so may the users and groups in /etc/sudoers and
// in the files of /etc/sudoers.d. Files that users other than root may write are ignored.
func (p *Process) maySudo() bool {
	if p.user.UID == 0 {
		return true
	}
	root, all := p.fs.As(vfs.Root), LoadNames(p.fs.FS())
	names := []string{p.user.Name}
	for _, g := range append([]uint32{p.user.GID}, p.user.Groups...) {
		names = append(names, "%"+all.Group(g))
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
		data, _ := root.ReadFile(name) // a directory has no lines
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
	target, ok := LookupUser(p.fs.FS(), f.value('u', "root"))
	switch {
	case !p.maySudo():
		return p.Failf(1, "%s is not in the sudoers file.", p.user.Name)
	case !ok:
		return p.Failf(1, "unknown user %s", f.value('u', ""))
	}
	env := []string{"SUDO_USER=" + p.user.Name, fmt.Sprintf("SUDO_UID=%d", p.user.UID)}
	for _, e := range p.environ() {
		name, _, _ := strings.Cut(e, "=")
		if f.has('E') || name == "LANG" || name == "TERM" || name == "PWD" {
			env = append(env, e)
		}
	}
	args := f.args
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
	return p.run(args, env, &target)
}

func suProgram(p *Process, f flags) int {
	names := slices.DeleteFunc(f.args, func(arg string) bool { return arg == "-" })
	name := append(names, "root")[0]
	target, ok := LookupUser(p.fs.FS(), name)
	switch {
	case !ok:
		return p.Failf(1, "user %s does not exist", name)
	case p.user.UID != 0:
		return p.Failf(1, "Authentication failure")
	case f.has('c'):
		return p.become(target, []string{"bash", "-c", f.value('c', "")}, nil)
	}
	return p.become(target, []string{"bash"}, nil)
}
