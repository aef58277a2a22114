package shell

import (
	"path"
	"slices"
	"strings"
)

// directories

func (b *builtin) changeDir(name string) int {
	full := name
	if !strings.HasPrefix(name, "/") {
		full = b.abs(name)
	}
	full = path.Clean(full) // the way back is the one that one came, as in bash without -P
	info, err := b.fs.Stat(full)
	switch {
	case err != nil:
		return b.failf(1, "%v", describe(name, err))
	case !info.IsDir():
		return b.failf(1, "%s: Not a directory", name)
	case b.fs.Access(full, 1) != nil:
		return b.failf(1, "%s: Permission denied", name)
	}
	old := b.dir
	b.dir = full
	b.set("OLDPWD", old)
	b.set("PWD", full)
	return 0
}

func cdCommand(b *builtin) int {
	args := slices.DeleteFunc(slices.Clone(b.args), func(a string) bool { return a == "-P" || a == "-L" || a == "--" })
	switch {
	case len(args) > 1:
		return b.failf(1, "too many arguments")
	case len(args) == 0:
		home := b.value("HOME")
		if home == "" {
			return b.failf(1, "HOME not set")
		}
		return b.changeDir(home)
	case args[0] == "-":
		old := b.value("OLDPWD")
		if old == "" {
			return b.failf(1, "OLDPWD not set")
		}
		status := b.changeDir(old)
		if status == 0 {
			b.printf("%s\n", b.dir)
		}
		return status
	}
	if args[0] == "" {
		return 0
	}
	status := b.changeDir(args[0])
	if status == 0 && slices.Contains(b.args, "-P") {
		if real, err := realPath(b.fs, b.dir); err == nil {
			b.dir = real
			b.set("PWD", real)
		}
	}
	return status
}

func pwdCommand(b *builtin) int {
	f, err := parseFlags(b.args, "LP", nil, true)
	if err != nil {
		return b.failf(2, "%v", err)
	}
	dir := b.dir
	if f.has('P') {
		if dir, err = realPath(b.fs, dir); err != nil {
			return b.failf(1, "%v", describe(dir, err))
		}
	}
	b.printf("%s\n", dir)
	return 0
}

// pushdCommand is pushd and popd. With -n only the stack changes.
func pushdCommand(b *builtin) int {
	args := b.args
	stay := len(args) > 0 && args[0] == "-n"
	if stay {
		args = args[1:]
	}
	stack := slices.Clone(b.dirs)
	to := ""
	switch {
	case b.name == "popd" && len(args) > 0:
		return b.failf(2, "%s: invalid argument", args[0])
	case len(args) > 0 && stay:
		stack = append([]string{args[0]}, stack...)
	case len(args) > 0:
		to, stack = args[0], append([]string{b.dir}, stack...)
	case stay && b.name == "pushd":
	case len(stack) == 0:
		return b.failf(1, "no other directory")
	case b.name == "popd":
		to, stack = stack[0], stack[1:]
	default:
		to, stack[0] = stack[0], b.dir
	}
	if to != "" && !stay {
		if status := b.changeDir(to); status != 0 {
			return status
		}
	}
	if len(stack) > b.r.limits.Depth {
		return b.failf(1, "the stack is full")
	}
	b.dirs = stack
	return dirsCommand(b)
}

func dirsCommand(b *builtin) int {
	all := append([]string{b.dir}, b.dirs...)
	for i, dir := range all {
		if home := b.value("HOME"); home != "" && (dir == home || strings.HasPrefix(dir, home+"/")) {
			all[i] = "~" + dir[len(home):]
		}
	}
	b.printf("%s\n", strings.Join(all, " "))
	return 0
}
