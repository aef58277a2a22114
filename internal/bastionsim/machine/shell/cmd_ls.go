package shell

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

func lsProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "laAhR1dtrSniFpqGsLv", map[string]byte{"all": 'a', "human-readable": 'h', "recursive": 'R', "color": 'G', "almost-all": 'A', "directory": 'd'}, false)
	if err != nil {
		return p.Failf(2, "%v", err)
	}
	l := &lister{p: p, f: f}
	args := f.args
	if len(args) == 0 {
		args = []string{"."}
	}
	var files []fs.FileInfo
	var dirs []string
	for _, name := range args {
		info, err := p.FS.Stat(p.Path(name))
		if err != nil || f.has('l') {
			info, err = p.FS.Lstat(p.Path(name))
		}
		switch {
		case err != nil:
			l.status = p.Failf(2, "cannot access '%s': %v", name, reason(err))
		case info.IsDir() && !f.has('d'):
			dirs = append(dirs, name)
		default:
			files = append(files, named{info, name})
		}
	}
	l.print(files, "")
	for i, dir := range dirs {
		if len(args) > 1 || f.has('R') {
			if i > 0 || len(files) > 0 {
				p.Printf("\n")
			}
			p.Printf("%s:\n", dir)
		}
		l.dir(dir, 0)
	}
	return l.status
}

// named is a file under the name that the user gave.
type named struct {
	fs.FileInfo
	name string
}

func (n named) Name() string { return n.name }

type lister struct {
	p      *Process
	f      flags
	status int
}

func (l *lister) dir(name string, depth int) {
	entries, err := l.p.FS.ReadDir(l.p.Path(name))
	if err != nil || depth > 64 {
		l.status = l.p.Failf(2, "cannot open directory '%s': %v", name, reason(err))
		return
	}
	var infos []fs.FileInfo
	total := int64(0)
	if l.f.has('a') {
		for _, dot := range []string{".", ".."} {
			if info, err := l.p.FS.Stat(l.p.Path(name) + "/" + dot); err == nil {
				infos = append(infos, named{info, dot})
			}
		}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !l.f.has('a') && !l.f.has('A') {
			continue
		}
		info, err := e.Info()
		if err == nil {
			infos = append(infos, info)
			total += info.Sys().(*vfs.Stat).Blocks / 2
		}
	}
	if l.f.has('l') {
		l.p.Printf("total %d\n", total)
	}
	l.print(infos, name)
	if !l.f.has('R') {
		return
	}
	for _, info := range infos {
		if info.IsDir() && info.Name() != "." && info.Name() != ".." && l.p.step() == nil {
			sub := strings.TrimSuffix(name, "/") + "/" + info.Name()
			l.p.Printf("\n%s:\n", sub)
			l.dir(sub, depth+1)
		}
	}
}

func (l *lister) print(infos []fs.FileInfo, dir string) {
	switch {
	case l.f.has('t'):
		slices.SortStableFunc(infos, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	case l.f.has('S'):
		slices.SortStableFunc(infos, func(a, b fs.FileInfo) int { return cmp.Compare(b.Size(), a.Size()) })
	}
	if l.f.has('r') {
		slices.Reverse(infos)
	}
	if !l.f.has('l') && !l.f.has('n') {
		sep := "\n"
		if l.p.sh.fds[1] != nil && l.p.sh.fds[1].tty && !l.f.has('1') {
			sep = "  "
		}
		var all []string
		for _, info := range infos {
			all = append(all, l.prefix(info)+info.Name()+l.suffix(info))
		}
		if len(all) > 0 {
			l.p.Printf("%s\n", strings.Join(all, sep))
		}
		return
	}
	who := loadNames(l.p.FS.FS())
	for _, info := range infos {
		st := info.Sys().(*vfs.Stat)
		size := strconv.FormatInt(info.Size(), 10)
		if l.f.has('h') {
			size = human(info.Size())
		}
		user, group := who.user(st.UID), who.group(st.GID)
		if l.f.has('n') {
			user, group = strconv.Itoa(int(st.UID)), strconv.Itoa(int(st.GID))
		}
		name := info.Name() + l.suffix(info)
		if info.Mode()&fs.ModeSymlink != 0 {
			full := l.p.Path(info.Name())
			if dir != "" {
				full = l.p.Path(dir) + "/" + info.Name()
			}
			if target, err := l.p.FS.Readlink(full); err == nil {
				name += " -> " + target
			}
		}
		l.p.Printf("%s%s %2d %-8s %-8s %8s %s %s\n", l.prefix(info), vfs.ListMode(info.Mode()), st.Nlink, user, group, size, info.ModTime().UTC().Format("Jan _2 15:04"), name)
	}
}

func (l *lister) prefix(info fs.FileInfo) string {
	if l.f.has('i') {
		return fmt.Sprint(info.Sys().(*vfs.Stat).Ino) + " "
	}
	return ""
}

func (l *lister) suffix(info fs.FileInfo) string {
	switch {
	case !l.f.has('F') && !l.f.has('p'):
	case info.IsDir():
		return "/"
	case l.f.has('F') && info.Mode()&0o111 != 0:
		return "*"
	}
	return ""
}

// human is a size as people read it.
func human(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	size, unit := float64(n), 0
	for ; size >= 1024 && unit < 4; unit++ {
		size /= 1024
	}
	return fmt.Sprintf("%.1f%c", size, " KMGT"[unit])
}

func statProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "c:Lft", map[string]byte{"format": 'c', "printf": 'c', "dereference": 'L'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	who, status := loadNames(p.FS.FS()), 0
	for _, name := range f.args {
		stat := p.FS.Lstat
		if f.has('L') {
			stat = p.FS.Stat
		}
		info, err := stat(p.Path(name))
		if err != nil {
			status = p.Failf(1, "cannot statx '%s': %v", name, reason(err))
			continue
		}
		st := info.Sys().(*vfs.Stat)
		kind := "regular file"
		switch {
		case info.IsDir():
			kind = "directory"
		case info.Mode()&fs.ModeSymlink != 0:
			kind = "symbolic link"
		case info.Mode()&fs.ModeCharDevice != 0:
			kind = "character special file"
		case info.Size() == 0:
			kind = "regular empty file"
		}
		format := f.value('c', "  File: %n\n  Size: %s\tBlocks: %b\t%F\nDevice: 254,1\tInode: %i\tLinks: %h\nAccess: (%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nModify: %y")
		p.Printf("%s\n", strings.NewReplacer("%n", name, "%s", fmt.Sprint(info.Size()), "%a", strconv.FormatUint(uint64(vfs.UnixMode(info.Mode())), 8),
			"%A", vfs.ListMode(info.Mode()), "%u", fmt.Sprint(st.UID), "%U", who.user(st.UID), "%g", fmt.Sprint(st.GID), "%G", who.group(st.GID),
			"%i", fmt.Sprint(st.Ino), "%h", fmt.Sprint(st.Nlink), "%b", fmt.Sprint(st.Blocks), "%F", kind,
			"%Y", fmt.Sprint(info.ModTime().Unix()), "%y", info.ModTime().UTC().Format("2006-01-02 15:04:05.000000000 -0700"), "\\n", "\n", "%%", "%").Replace(format))
	}
	return status
}

func dfProgram(_ context.Context, p *Process) int {
	used, size, _, _ := p.FS.FS().Usage()
	show := func(n int64) string { return strconv.FormatInt(n>>10, 10) }
	title := "1K-blocks"
	if len(p.Args) > 1 && strings.Contains(p.Args[1], "h") {
		show, title = human, "Size"
	}
	p.Printf("%-14s %10s %10s %10s %4s %s\n%-14s %10s %10s %10s %3d%% %s\n", "Filesystem", title, "Used", "Available", "Use%", "Mounted on",
		"/dev/vda1", show(size), show(used), show(size-used), used*100/max(1, size), "/")
	return 0
}
