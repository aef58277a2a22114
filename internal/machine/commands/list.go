package commands

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/users"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

func listCommands() map[string]shell.Command {
	return map[string]shell.Command{"ls": ls, "stat": stat, "find": find, "df": df, "du": du}
}

func ls(in *invocation) int {
	f := parse(in.Args, "")
	names := f.args
	if len(names) == 0 {
		names = []string{"."}
	}
	l := lister{in: in, long: f.has("l", "n"), all: f.has("a", "all"), almost: f.has("A"), numeric: f.has("n"), slash: f.has("F", "p")}
	l.users, l.groups = map[int]string{}, map[int]string{}
	status := 0
	for i, name := range names {
		info, err := in.FS.Lstat(in.Abs(name))
		if err == nil && !l.long {
			info, err = in.FS.Stat(in.Abs(name))
		}
		if err != nil {
			fail(in, "cannot access '%s': %v", name, reason(err))
			status = 2
			continue
		}
		if !info.IsDir() || f.has("d") {
			l.print(name, info)
			continue
		}
		if len(names) > 1 {
			fmt.Fprintf(in.Stdout, "%s%s:\n", strings.Repeat("\n", min(i, 1)), name)
		}
		if err := l.dir(in.Abs(name), f.has("R")); err != nil {
			fail(in, "cannot open directory '%s': %v", name, reason(err))
			status = 2
		}
	}
	return status
}

type lister struct {
	in                                *invocation
	long, all, almost, numeric, slash bool
	users, groups                     map[int]string
}

func (l *lister) dir(name string, recursive bool) error {
	entries, err := l.in.FS.ReadDir(name)
	if err != nil {
		return err
	}
	if l.all {
		for _, dots := range []string{".", ".."} {
			if info, err := l.in.FS.Stat(name + "/" + dots); err == nil {
				l.print(dots, info)
			}
		}
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") || l.all || l.almost {
			l.print(e.Name(), e)
		}
	}
	for _, e := range entries {
		if recursive && e.IsDir() && l.in.Ctx.Err() == nil {
			sub := path.Join(name, e.Name())
			fmt.Fprintf(l.in.Stdout, "\n%s:\n", sub)
			if err := l.dir(sub, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lister) print(name string, info vfs.Info) {
	if l.slash && info.IsDir() {
		name += "/"
	}
	if !l.long {
		fmt.Fprintln(l.in.Stdout, name)
		return
	}
	if info.Target != "" {
		name += " -> " + info.Target
	}
	links := 1
	if info.IsDir() {
		links = 2
	}
	fmt.Fprintf(l.in.Stdout, "%s %d %-8s %-8s %8d %s %s\n", modeString(info.Mode()), links, l.user(info.UID), l.group(info.GID),
		info.Size(), info.ModTime().UTC().Format("Jan _2 15:04"), name)
}

func (l *lister) user(uid int) string {
	if _, ok := l.users[uid]; !ok {
		l.users[uid] = users.NameOf(l.in.FS, uid)
	}
	if l.numeric {
		return fmt.Sprint(uid)
	}
	return l.users[uid]
}

func (l *lister) group(gid int) string {
	if _, ok := l.groups[gid]; !ok {
		l.groups[gid] = users.GroupName(l.in.FS, gid)
	}
	if l.numeric {
		return fmt.Sprint(gid)
	}
	return l.groups[gid]
}

func modeString(m fs.FileMode) string {
	b := []byte("-rwxrwxrwx")
	switch {
	case m.IsDir():
		b[0] = 'd'
	case m&fs.ModeSymlink != 0:
		b[0] = 'l'
	case m&fs.ModeCharDevice != 0:
		b[0] = 'c'
	}
	for i := range 9 {
		if m&(1<<(8-i)) == 0 {
			b[i+1] = '-'
		}
	}
	for i, special := range []fs.FileMode{fs.ModeSetuid, fs.ModeSetgid, fs.ModeSticky} {
		if m&special != 0 {
			b[3+3*i] = "sst"[i]
		}
	}
	return string(b)
}

func octal(m fs.FileMode) string {
	n := uint32(m.Perm())
	for bit, special := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&special != 0 {
			n |= bit
		}
	}
	return fmt.Sprintf("%o", n)
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeCharDevice != 0:
		return "character special file"
	}
	return "regular file"
}

func stat(in *invocation) int {
	f := parse(in.Args, "c format printf")
	status := 0
	for _, name := range f.args {
		info, err := in.FS.Lstat(in.Abs(name))
		if f.has("L") {
			info, err = in.FS.Stat(in.Abs(name))
		}
		if err != nil {
			status = fail(in, "cannot statx '%s': %v", name, reason(err))
			continue
		}
		format := f.get("c", "format", "printf")
		if format == "" {
			format = "  File: %n\n  Size: %s\t%F\nAccess: (%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nModify: %y"
		}
		fmt.Fprintln(in.Stdout, strings.NewReplacer("%n", name, "%s", fmt.Sprint(info.Size()), "%F", kind(info.Mode()),
			"%a", octal(info.Mode()), "%A", modeString(info.Mode()), "%u", fmt.Sprint(info.UID), "%g", fmt.Sprint(info.GID),
			"%U", users.NameOf(in.FS, info.UID), "%G", users.GroupName(in.FS, info.GID), "%Y", fmt.Sprint(info.ModTime().Unix()),
			"%y", info.ModTime().UTC().Format("2006-01-02 15:04:05.000000000 +0000"), "%%", "%").Replace(format))
	}
	return status
}

// find knows -name, -iname, -type, -maxdepth, -mindepth, -user, -print, -delete.
func find(in *invocation) int {
	var roots []string
	args := in.Args[1:]
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	s := search{in: in, most: 1 << 20}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-print", "-xdev":
			continue
		case "-delete":
			s.remove = true
			continue
		}
		if i+1 == len(args) {
			return fail(in, "missing argument to `%s'", args[i])
		}
		value := args[i+1]
		switch args[i] {
		case "-name":
			s.name = value
		case "-iname":
			s.iname = strings.ToLower(value)
		case "-type":
			s.kind = value
		case "-user":
			s.user = value
		case "-maxdepth":
			fmt.Sscan(value, &s.most)
		case "-mindepth":
			fmt.Sscan(value, &s.least)
		default:
			return fail(in, "unknown predicate `%s'", args[i])
		}
		i++
	}
	for _, root := range roots {
		if err := s.walk(root, 0); err != nil {
			s.status = fail(in, "'%s': %v", root, reason(err))
		}
	}
	return s.status
}

type search struct {
	in                      *invocation
	name, iname, kind, user string
	least, most, status     int
	remove                  bool
}

func (s *search) walk(name string, depth int) error {
	if err := s.in.Ctx.Err(); err != nil {
		return err
	}
	info, err := s.in.FS.Lstat(s.in.Abs(name))
	if err != nil {
		return err
	}
	if depth >= s.least && s.matches(path.Base(name), info) && !s.remove {
		if _, err := fmt.Fprintln(s.in.Stdout, name); err != nil {
			return err
		}
	}
	if info.IsDir() && depth < s.most {
		entries, err := s.in.FS.ReadDir(s.in.Abs(name))
		if err != nil {
			s.status = fail(s.in, "'%s': %v", name, reason(err))
		}
		for _, e := range entries {
			if err := s.walk(strings.TrimSuffix(name, "/")+"/"+e.Name(), depth+1); err != nil {
				return err
			}
		}
	}
	if s.remove && depth >= s.least && s.matches(path.Base(name), info) {
		return s.in.FS.Remove(s.in.Abs(name))
	}
	return nil
}

func (s *search) matches(base string, info vfs.Info) bool {
	letter := map[bool]string{true: "d"}[info.IsDir()]
	if info.Mode().IsRegular() {
		letter = "f"
	} else if info.Mode()&fs.ModeSymlink != 0 {
		letter = "l"
	}
	return (s.name == "" || shell.Match(s.name, base)) && (s.iname == "" || shell.Match(s.iname, strings.ToLower(base))) &&
		(s.kind == "" || s.kind == letter) && (s.user == "" || users.NameOf(s.in.FS, info.UID) == s.user)
}

func df(in *invocation) int {
	u := in.FS.Usage()
	used, total := u.Bytes/1024, u.Limits.Bytes/1024
	fmt.Fprintf(in.Stdout, "Filesystem     1K-blocks      Used Available Use%% Mounted on\n/dev/vda1      %9d %9d %9d %3d%% /\n",
		total, used, total-used, 100*used/max(total, 1))
	return 0
}

func du(in *invocation) int {
	f := parse(in.Args, "d max-depth")
	if len(f.args) == 0 {
		f.args = []string{"."}
	}
	status := 0
	for _, name := range f.args {
		total := int64(0)
		if err := each(in, in.Abs(name), true, func(_ string, info vfs.Info) error { total += info.Size(); return nil }); err != nil {
			status = fail(in, "cannot access '%s': %v", name, reason(err))
			continue
		}
		fmt.Fprintf(in.Stdout, "%d\t%s\n", (total+1023)/1024, name)
	}
	return status
}
