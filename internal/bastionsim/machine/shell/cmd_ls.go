package shell

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// listed is a file as ls shows it.
type listed struct {
	fs.FileInfo
	name, path string
}

type lister struct {
	p      *Process
	f      flags
	status int
}

func lsProgram(p *Process, f flags) int {
	l := &lister{p: p, f: f}
	names := f.args
	if len(names) == 0 {
		names = []string{"."}
	}
	var files []listed
	var dirs []string
	for _, name := range names {
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
			files = append(files, listed{info, name, p.Path(name)})
		}
	}
	l.print(files)
	for i, dir := range dirs {
		if i > 0 || len(files) > 0 {
			p.Printf("\n")
		}
		l.dir(dir, len(names) > 1 || f.has('R'))
	}
	return l.status
}

// dir lists a directory and, with -R, those below it. Paths have a greatest length, so that this has an end.
func (l *lister) dir(name string, title bool) {
	if l.p.step() != nil {
		return
	}
	entries, err := l.p.FS.ReadDir(l.p.Path(name))
	if err != nil {
		l.status = l.p.Failf(2, "cannot open directory '%s': %v", name, reason(err))
		return
	}
	var names, below []string
	if l.f.has('a') {
		names = []string{".", ".."}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !l.f.has('a') && !l.f.has('A') {
			continue
		}
		names = append(names, e.Name())
		if e.IsDir() {
			below = append(below, strings.TrimSuffix(name, "/")+"/"+e.Name())
		}
	}
	var files []listed
	blocks := int64(0)
	for _, entry := range names {
		full := l.p.Path(name) + "/" + entry
		if info, err := l.p.FS.Lstat(full); err == nil {
			files = append(files, listed{info, entry, full})
			blocks += info.Sys().(*vfs.Stat).Blocks / 2
		}
	}
	if title {
		l.p.Printf("%s:\n", name)
	}
	if l.f.has('l') {
		l.p.Printf("total %d\n", blocks)
	}
	l.print(files)
	if l.f.has('R') {
		for _, dir := range below {
			l.p.Printf("\n")
			l.dir(dir, true)
		}
	}
}

func (l *lister) print(files []listed) {
	if l.f.has('t') {
		slices.SortStableFunc(files, func(a, b listed) int { return b.ModTime().Compare(a.ModTime()) })
	}
	if l.f.has('r') {
		slices.Reverse(files)
	}
	owners := loadNames(l.p.FS.FS())
	var rows []string
	for _, file := range files {
		row := file.name
		if l.f.has('l') {
			row = l.long(file, owners)
		}
		rows = append(rows, row)
	}
	sep := "\n"
	if out := l.p.sh.fds[1]; out != nil && out.tty && !l.f.has('1') && !l.f.has('l') {
		sep = "  "
	}
	if len(rows) > 0 {
		l.p.Printf("%s\n", strings.Join(rows, sep))
	}
}

func (l *lister) long(file listed, owners names) string {
	st := file.Sys().(*vfs.Stat)
	name, size := file.name, strconv.FormatInt(file.Size(), 10)
	if l.f.has('h') {
		size = human(file.Size())
	}
	if target, err := l.p.FS.Readlink(file.path); err == nil {
		name += " -> " + target
	}
	return fmt.Sprintf("%s %2d %-8s %-8s %8s %s %s", vfs.ListMode(file.Mode()), st.Nlink,
		owners.user(st.UID), owners.group(st.GID), size, file.ModTime().UTC().Format("Jan _2 15:04"), name)
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

const statFormat = "  File: %n\n  Size: %s\tBlocks: %b\t%F\nDevice: 254,1\tInode: %i\tLinks: %h\n" +
	"Access: (%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nModify: %y"

func statProgram(p *Process, f flags) int {
	owners, stat := loadNames(p.FS.FS()), p.FS.Lstat
	if f.has('L') {
		stat = p.FS.Stat
	}
	return p.each(f.args, "cannot statx", func(name string) error {
		info, err := stat(p.Path(name))
		if err != nil {
			return err
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
		p.Printf("%s\n", strings.NewReplacer("%n", name, "%s", fmt.Sprint(info.Size()), "%b", fmt.Sprint(st.Blocks),
			"%F", kind, "%i", fmt.Sprint(st.Ino), "%h", fmt.Sprint(st.Nlink),
			"%a", fmt.Sprintf("%o", vfs.UnixMode(info.Mode())),
			"%A", vfs.ListMode(info.Mode()), "%u", fmt.Sprint(st.UID), "%U", owners.user(st.UID),
			"%g", fmt.Sprint(st.GID), "%G", owners.group(st.GID), "%Y", fmt.Sprint(info.ModTime().Unix()),
			"%y", info.ModTime().UTC().Format("2006-01-02 15:04:05.000000000 -0700"), "\\n", "\n", "%%", "%",
		).Replace(f.value('c', statFormat)))
		return nil
	})
}

func dfProgram(p *Process, f flags) int {
	used, size, _, _ := p.FS.FS().Usage()
	show, title := func(n int64) string { return strconv.FormatInt(n>>10, 10) }, "1K-blocks"
	if f.has('h') {
		show, title = human, "Size"
	}
	p.Printf("%-14s %10s %10s %10s %4s %s\n", "Filesystem", title, "Used", "Available", "Use%", "Mounted on")
	p.Printf("%-14s %10s %10s %10s %3d%% %s\n", "/dev/vda1", show(size), show(used), show(size-used),
		used*100/max(1, size), "/")
	return 0
}
