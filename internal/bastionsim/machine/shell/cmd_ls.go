package shell

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

func lsProgram(p *Process, f flags) int {
	names := f.args
	if len(names) == 0 {
		names = []string{"."}
	}
	var files, dirs []string
	status := p.each(names, "cannot access", func(name string) error {
		info, err := p.fs.Stat(p.abs(name))
		if err != nil || f.has('l') {
			info, err = p.fs.Lstat(p.abs(name))
		}
		if err == nil && info.IsDir() && !f.has('d') {
			dirs = append(dirs, name)
		} else if err == nil {
			files = append(files, name)
		}
		return err
	})
	p.listFiles(f, "", files)
	gap := strings.Repeat("\n", min(1, len(files)))
	failed := p.each(dirs, "cannot open directory", func(dir string) error {
		entries, err := p.readDir(dir)
		if err != nil {
			return err
		}
		if len(names) > 1 {
			p.Printf("%s%s:\n", gap, dir)
			gap = "\n"
		}
		var inside []string
		if f.has('a') {
			inside = []string{".", ".."}
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") || f.has('a') || f.has('A') {
				inside = append(inside, e.Name())
			}
		}
		p.listFiles(f, dir+"/", inside)
		return nil
	})
	return 2 * max(status, failed)
}

// listFiles lists the files of a directory or, if dir is "", the files that the user named.
func (p *Process) listFiles(f flags, dir string, names []string) {
	owners, blocks := LoadNames(p.fs.FS()), int64(0)
	var rows []string
	for _, name := range names {
		full := p.abs(dir + name)
		info, err := p.fs.Lstat(full)
		if err != nil { // it has been removed meanwhile
			continue
		}
		if f.has('l') {
			st, size := info.Sys().(*vfs.Stat), strconv.FormatInt(info.Size(), 10)
			if f.has('h') {
				size = human(info.Size())
			}
			if target, err := p.fs.Readlink(full); err == nil {
				name += " -> " + target
			}
			blocks += st.Blocks / 2
			name = fmt.Sprintf("%s %2d %-8s %-8s %8s %s %s", vfs.ListMode(info.Mode()), st.Nlink,
				owners.User(st.UID), owners.Group(st.GID), size, info.ModTime().UTC().Format("Jan _2 15:04"), name)
		}
		rows = append(rows, name)
	}
	if f.has('l') && dir != "" {
		p.Printf("total %d\n", blocks)
	}
	sep := "\n"
	if out := p.fds[1]; out != nil && out.tty && !f.has('1') && !f.has('l') {
		sep = "  "
	}
	if len(rows) > 0 {
		p.Printf("%s\n", strings.Join(rows, sep))
	}
}

// human returns a size with a unit, as with -h.
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

const statFormat = "  File: %n\n  Size: %s\tBlocks: %b\t%F\nInode: %i\tLinks: %h\n" +
	"Access: (%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nModify: %y"

func statProgram(p *Process, f flags) int {
	owners := LoadNames(p.fs.FS())
	kinds := map[byte]string{'d': "directory", 'l': "symbolic link", 'c': "character special file"}
	return p.each(f.args, "cannot statx", func(name string) error {
		info, err := p.fs.Lstat(p.abs(name))
		if err != nil {
			return err
		}
		st, mode := info.Sys().(*vfs.Stat), vfs.ListMode(info.Mode())
		if format := f.value('c', statFormat); len(format)+strings.Count(format, "%n")*len(name)+strings.Count(format, "%")*64 > 4*maxString {
			return p.r.kill("string")
		}
		p.Printf("%s\n", strings.NewReplacer("%n", name, "%s", fmt.Sprint(info.Size()), "%b", fmt.Sprint(st.Blocks),
			"%F", cmp.Or(kinds[mode[0]], "regular file"), "%i", fmt.Sprint(st.Ino), "%h", fmt.Sprint(st.Nlink),
			"%a", fmt.Sprintf("%o", vfs.UnixMode(info.Mode())), "%A", mode,
			"%u", fmt.Sprint(st.UID), "%U", owners.User(st.UID), "%g", fmt.Sprint(st.GID), "%G", owners.Group(st.GID),
			"%Y", fmt.Sprint(info.ModTime().Unix()), "%%", "%",
			"%y", info.ModTime().UTC().Format("2006-01-02 15:04:05.000000000 -0700"),
		).Replace(f.value('c', statFormat)))
		return nil
	})
}

// dfProgram shows sizes as with -h.
func dfProgram(p *Process, _ flags) int {
	used, size, _, _ := p.fs.FS().Usage()
	p.Printf("%-14s %6s %6s %6s %4s %s\n", "Filesystem", "Size", "Used", "Avail", "Use%", "Mounted on")
	p.Printf("%-14s %6s %6s %6s %3d%% %s\n", "/dev/vda1", human(size), human(used), human(size-used),
		used*100/max(1, size), "/")
	return 0
}
