package commands

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/users"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

func fileCommands() map[string]shell.Command {
	return map[string]shell.Command{
		"mkdir": mkdir, "rmdir": rmdir, "rm": rm, "cp": cp, "mv": mv, "ln": ln, "touch": touch, "chmod": chmod, "chown": chown,
		"chgrp": chown, "install": install, "mktemp": mktemp, "readlink": readlink, "realpath": readlink, "basename": basename,
		"dirname": dirname, "truncate": truncate, "sync": func(*invocation) int { return 0 }, "tee": tee,
	}
}

func mkdir(in *invocation) int {
	f := parse(in.Args, "m mode")
	mode, status := fs.FileMode(0o777&^in.Umask), 0
	if m := f.get("m", "mode"); m != "" {
		var err error
		if mode, err = parseMode(m, 0o777); err != nil {
			return fail(in, "invalid mode '%s'", m)
		}
	}
	for _, name := range f.args {
		do := in.FS.Mkdir
		if f.has("p", "parents") {
			do = in.FS.MkdirAll
		}
		if err := do(in.Abs(name), mode); err != nil {
			status = fail(in, "cannot create directory '%s': %v", name, reason(err))
		}
	}
	return status
}

func rmdir(in *invocation) int {
	status := 0
	for _, name := range parse(in.Args, "").args {
		info, err := in.FS.Lstat(in.Abs(name))
		if err == nil && !info.IsDir() {
			err = vfs.ErrNotDir
		}
		if err == nil {
			err = in.FS.Remove(in.Abs(name))
		}
		if err != nil {
			status = fail(in, "failed to remove '%s': %v", name, reason(err))
		}
	}
	return status
}

func rm(in *invocation) int {
	f := parse(in.Args, "")
	status := 0
	for _, name := range f.args {
		info, err := in.FS.Lstat(in.Abs(name))
		switch {
		case err != nil && f.has("f", "force"):
			continue
		case err == nil && info.IsDir() && !f.has("r", "R", "recursive"):
			err = vfs.ErrIsDir
		case err == nil && path.Clean(in.Abs(name)) == "/" && !f.has("no-preserve-root"):
			return fail(in, "it is dangerous to operate recursively on '/'")
		case err == nil:
			err = removeAll(in, in.Abs(name))
		}
		if err != nil {
			status = fail(in, "cannot remove '%s': %v", name, reason(err))
		}
	}
	return status
}

func removeAll(in *invocation, name string) error {
	if err := in.Ctx.Err(); err != nil {
		return err
	}
	if info, err := in.FS.Lstat(name); err == nil && info.IsDir() {
		entries, err := in.FS.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeAll(in, path.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return in.FS.Remove(name)
}

// targets says where each source goes: into a directory, or to a name.
func targets(in *invocation, f flags) (sources []string, to func(string) string, status int) {
	if dir := f.get("t", "target-directory"); dir != "" {
		return f.args, func(s string) string { return path.Join(in.Abs(dir), path.Base(s)) }, 0
	}
	if len(f.args) < 2 {
		return nil, nil, fail(in, "missing destination file operand")
	}
	last := f.args[len(f.args)-1]
	sources = f.args[:len(f.args)-1]
	info, err := in.FS.Stat(in.Abs(last))
	if err == nil && info.IsDir() && !f.has("T", "n") {
		return sources, func(s string) string { return in.Abs(last) + "/" + path.Base(s) }, 0
	}
	if len(sources) > 1 {
		return nil, nil, fail(in, "target '%s' is not a directory", last)
	}
	return sources, func(string) string { return in.Abs(last) }, 0
}

func cp(in *invocation) int {
	f := parse(in.Args, "t target-directory")
	sources, to, status := targets(in, f)
	for _, s := range sources {
		c := copier{in: in, recursive: f.has("r", "R", "a", "recursive"), preserve: f.has("p", "a")}
		if err := c.copy(in.Abs(s), to(s), 0); err != nil {
			status = fail(in, "cannot copy '%s': %v", s, reason(err))
		}
	}
	return status
}

type copier struct {
	in                  *invocation
	recursive, preserve bool
}

func (c copier) copy(from, to string, depth int) error {
	v := c.in.FS
	if err := c.in.Ctx.Err(); err != nil {
		return err
	}
	info, err := v.Stat(from)
	if c.recursive {
		info, err = v.Lstat(from)
	}
	switch {
	case err != nil:
		return err
	case info.IsDir() && !c.recursive:
		return vfs.ErrIsDir
	case info.IsDir() && depth > vfs.DefaultLimits.Depth:
		return vfs.ErrLoop
	case info.Mode()&fs.ModeSymlink != 0:
		_ = v.Remove(to)
		return v.Symlink(info.Target, to)
	case info.IsDir():
		// Listed first, so that a copy into itself ends.
		entries, err := v.ReadDir(from)
		if err != nil {
			return err
		}
		if err := v.MkdirAll(to, info.Mode().Perm()|0o700); err != nil {
			return err
		}
		for _, e := range entries {
			if err := c.copy(path.Join(from, e.Name()), path.Join(to, e.Name()), depth+1); err != nil {
				return err
			}
		}
	default:
		data, err := v.ReadFile(from)
		if err != nil {
			return err
		}
		if err := v.WriteFile(to, data, info.Mode().Perm()&^fs.FileMode(c.in.Umask)); err != nil {
			return err
		}
	}
	if c.preserve {
		_ = v.Chown(to, info.UID, info.GID, false)
		_ = v.Chmod(to, info.Mode())
		_ = v.Chtimes(to, info.ModTime())
	}
	return nil
}

func mv(in *invocation) int {
	f := parse(in.Args, "t target-directory")
	sources, to, status := targets(in, f)
	for _, s := range sources {
		if err := in.FS.Rename(in.Abs(s), to(s)); err != nil {
			status = fail(in, "cannot move '%s': %v", s, reason(err))
		}
	}
	return status
}

func ln(in *invocation) int {
	f := parse(in.Args, "")
	if !f.has("s", "symbolic") {
		return fail(in, "hard links do not exist on this machine; use -s")
	}
	if len(f.args) == 1 {
		f.args = append(f.args, ".")
	}
	sources, to, status := targets(in, f)
	for _, s := range sources {
		if f.has("f", "force") {
			_ = in.FS.Remove(to(s))
		}
		if err := in.FS.Symlink(s, to(s)); err != nil {
			status = fail(in, "failed to create symbolic link '%s': %v", to(s), reason(err))
		}
	}
	return status
}

func touch(in *invocation) int {
	f := parse(in.Args, "d t r")
	status := 0
	for _, name := range f.args {
		_, err := in.FS.Stat(in.Abs(name))
		switch {
		case err == nil:
			err = in.FS.Chtimes(in.Abs(name), in.Clock.Now())
		case !f.has("c"):
			err = in.FS.AppendFile(in.Abs(name), nil, fs.FileMode(0o666&^in.Umask))
		default:
			err = nil
		}
		if err != nil {
			status = fail(in, "cannot touch '%s': %v", name, reason(err))
		}
	}
	return status
}

// parseMode reads 0755 and u+rwx,go-w.
func parseMode(s string, old fs.FileMode) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(s, 8, 16); err == nil {
		mode := fs.FileMode(n & 0o777)
		for bit, m := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
			if n&bit != 0 {
				mode |= m
			}
		}
		return mode, nil
	}
	mode := old
	for clause := range strings.SplitSeq(s, ",") {
		at := strings.IndexAny(clause, "+-=")
		if at < 0 || strings.Trim(clause[:at], "ugoa") != "" || strings.Trim(clause[at+1:], "rwxXst") != "" {
			return 0, fmt.Errorf("invalid mode %q", s)
		}
		var bits fs.FileMode
		for i, r := range "rwx" {
			if strings.ContainsRune(clause[at+1:], r) || r == 'x' && strings.Contains(clause, "X") && (old.IsDir() || old&0o111 != 0) {
				bits |= 4 >> i
			}
		}
		who := clause[:at]
		var mask, value fs.FileMode
		for r, shift := range map[rune]int{'u': 6, 'g': 3, 'o': 0} {
			if who == "" || strings.ContainsRune(who+"", r) || strings.Contains(who, "a") {
				mask |= 7 << shift
				value |= bits << shift
			}
		}
		if strings.Contains(clause[at+1:], "t") {
			value |= fs.ModeSticky
		}
		switch clause[at] {
		case '+':
			mode |= value
		case '-':
			mode &^= value
		default:
			mode = mode&^mask | value
		}
	}
	return mode, nil
}

// each walks into directories with -R.
func each(in *invocation, name string, recursive bool, do func(name string, info vfs.Info) error) error {
	info, err := in.FS.Lstat(name)
	if err != nil || in.Ctx.Err() != nil {
		return err
	}
	if recursive && info.IsDir() {
		entries, err := in.FS.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := each(in, path.Join(name, e.Name()), true, do); err != nil {
				return err
			}
		}
	}
	return do(name, info)
}

func chmod(in *invocation) int {
	args, recursive := in.Args[1:], false
	for len(args) > 0 && (args[0] == "-R" || args[0] == "-v" || args[0] == "-f") {
		recursive = recursive || args[0] == "-R"
		args = args[1:]
	}
	if len(args) < 2 {
		return fail(in, "missing operand")
	}
	status := 0
	for _, name := range args[1:] {
		err := each(in, in.Abs(name), recursive, func(name string, _ vfs.Info) error {
			info, err := in.FS.Stat(name)
			if err != nil {
				return err
			}
			mode, err := parseMode(args[0], info.Mode())
			if err != nil {
				return err
			}
			return in.FS.Chmod(name, mode)
		})
		if err != nil {
			status = fail(in, "changing permissions of '%s': %v", name, reason(err))
		}
	}
	return status
}

// owner reads user, user:group, :group and numbers; -1 is what is not said.
func owner(in *invocation, spec string, groupOnly bool) (uid, gid int, err error) {
	user, group, both := strings.Cut(spec, ":")
	if groupOnly {
		user, group = "", spec
	}
	uid, gid = -1, -1
	if user != "" {
		if u, ok := users.Lookup(in.FS, user); ok {
			uid = u.UID
			if both && group == "" {
				gid = u.GID
			}
		} else if uid, err = strconv.Atoi(user); err != nil || uid < 0 {
			return 0, 0, fmt.Errorf("invalid user: '%s'", spec)
		}
	}
	if group != "" {
		if g, ok := users.LookupGroup(in.FS, group); ok {
			gid = g.GID
		} else if gid, err = strconv.Atoi(group); err != nil || gid < 0 {
			return 0, 0, fmt.Errorf("invalid group: '%s'", spec)
		}
	}
	return uid, gid, nil
}

func chown(in *invocation) int {
	f := parse(in.Args, "")
	if len(f.args) < 2 {
		return fail(in, "missing operand")
	}
	uid, gid, err := owner(in, f.args[0], path.Base(in.Args[0]) == "chgrp")
	if err != nil {
		return fail(in, "%v", err)
	}
	status := 0
	for _, name := range f.args[1:] {
		err := each(in, in.Abs(name), f.has("R", "recursive"), func(name string, info vfs.Info) error {
			return in.FS.Chown(name, uid, gid, !f.has("h", "R", "recursive"))
		})
		if err != nil {
			status = fail(in, "changing ownership of '%s': %v", name, reason(err))
		}
	}
	return status
}

func install(in *invocation) int {
	f := parse(in.Args, "m o g t mode owner group target-directory")
	mode := fs.FileMode(0o755)
	if m := f.get("m", "mode"); m != "" {
		var err error
		if mode, err = parseMode(m, 0); err != nil {
			return fail(in, "invalid mode '%s'", m)
		}
	}
	uid, gid, err := owner(in, f.get("o", "owner")+":"+f.get("g", "group"), false)
	if err != nil {
		return fail(in, "%v", err)
	}
	finish := func(name string) error {
		if err := in.FS.Chown(name, uid, gid, true); err != nil && (uid >= 0 || gid >= 0) {
			return err
		}
		return in.FS.Chmod(name, mode)
	}
	var made []string
	if f.has("d", "directory") {
		for _, name := range f.args {
			if err := in.FS.MkdirAll(in.Abs(name), 0o755); err != nil {
				return fail(in, "cannot create directory '%s': %v", name, reason(err))
			}
			made = append(made, in.Abs(name))
		}
	} else {
		sources, to, status := targets(in, f)
		if status != 0 {
			return status
		}
		for _, s := range sources {
			if f.has("D") {
				_ = in.FS.MkdirAll(path.Dir(to(s)), 0o755)
			}
			_ = in.FS.Remove(to(s))
			src := in.Abs(s)
			data, err := in.FS.ReadFile(src)
			if err == nil {
				err = in.FS.WriteFile(to(s), data, 0o600)
			}
			if err != nil {
				return fail(in, "cannot install '%s': %v", s, reason(err))
			}
			made = append(made, to(s))
		}
	}
	for _, name := range made {
		if err := finish(name); err != nil {
			return fail(in, "cannot change '%s': %v", name, reason(err))
		}
	}
	return 0
}

func mktemp(in *invocation) int {
	f := parse(in.Args, "p tmpdir suffix")
	dir, template := f.get("p", "tmpdir"), "tmp.XXXXXXXXXX"
	if dir == "" {
		if dir = in.Getenv("TMPDIR"); dir == "" {
			dir = "/tmp"
		}
	}
	if len(f.args) > 0 {
		if template = f.args[0]; !f.has("p", "tmpdir", "t") {
			dir = ""
		}
	}
	x := len(template) - len(strings.TrimRight(template, "X"))
	if x < 3 {
		return fail(in, "too few X's in template '%s'", template)
	}
	for range 100 {
		name := path.Join(in.Abs(dir), template[:len(template)-x]+randomName(x))
		if dir == "" {
			name = in.Abs(template[:len(template)-x] + randomName(x))
		}
		var err error
		if f.has("d", "directory") {
			err = in.FS.Mkdir(name, 0o700)
		} else {
			var file *vfs.File
			if file, err = in.FS.Open(name, vfs.Write|vfs.Create|vfs.Exclusive, 0o600); err == nil {
				err = file.Close()
			}
		}
		if err == nil {
			fmt.Fprintln(in.Stdout, name)
			return 0
		}
		if reason(err) != vfs.ErrExist {
			return fail(in, "failed to create '%s': %v", name, reason(err))
		}
	}
	return fail(in, "failed to create a file")
}

func readlink(in *invocation) int {
	f := parse(in.Args, "")
	status := 0
	for _, name := range f.args {
		if path.Base(in.Args[0]) == "realpath" || f.has("f", "e", "m") {
			real, err := in.FS.RealPath(in.Abs(name))
			if err != nil {
				status = 1
				continue
			}
			fmt.Fprintln(in.Stdout, real)
			continue
		}
		info, err := in.FS.Lstat(in.Abs(name))
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			status = 1
			continue
		}
		fmt.Fprintln(in.Stdout, info.Target)
	}
	return status
}

func basename(in *invocation) int {
	if len(in.Args) < 2 {
		return fail(in, "missing operand")
	}
	base := path.Base(in.Args[1])
	if len(in.Args) > 2 && base != in.Args[2] {
		base = strings.TrimSuffix(base, in.Args[2])
	}
	fmt.Fprintln(in.Stdout, base)
	return 0
}

func dirname(in *invocation) int {
	for _, name := range in.Args[1:] {
		fmt.Fprintln(in.Stdout, path.Dir(name))
	}
	return 0
}

func truncate(in *invocation) int {
	f := parse(in.Args, "s size")
	size, err := parseSize(f.get("s", "size"))
	if err != nil || size < 0 {
		return fail(in, "invalid size")
	}
	for _, name := range f.args {
		file, err := in.FS.Open(in.Abs(name), vfs.Write|vfs.Create|vfs.Truncate, fs.FileMode(0o666&^in.Umask))
		if err != nil {
			return fail(in, "cannot open '%s': %v", name, reason(err))
		}
		_, err = io.CopyN(file, ctxReader{in, zeros{}}, size)
		if file.Close(); err != nil {
			return fail(in, "'%s': %v", name, reason(err))
		}
	}
	return 0
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func parseSize(s string) (int64, error) {
	unit := int64(1)
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmgt", s[n-1]|0x20); i >= 0 {
			s, unit = s[:n-1], 1<<(10*(i+1))
		}
	}
	v, err := strconv.ParseInt(s, 10, 32)
	return v * unit, err
}

func tee(in *invocation) int {
	f := parse(in.Args, "")
	flag := vfs.Write | vfs.Create | vfs.Truncate
	if f.has("a", "append") {
		flag = vfs.Write | vfs.Create | vfs.Append
	}
	status, writers := 0, []io.Writer{in.Stdout}
	for _, name := range f.args {
		file, err := in.FS.Open(in.Abs(name), flag, fs.FileMode(0o666&^in.Umask))
		if err != nil {
			status = fail(in, "%s: %v", name, reason(err))
			continue
		}
		defer file.Close()
		writers = append(writers, file)
	}
	if _, err := io.Copy(io.MultiWriter(writers...), ctxReader{in, in.Stdin}); err != nil {
		return fail(in, "%v", reason(err))
	}
	return status
}
