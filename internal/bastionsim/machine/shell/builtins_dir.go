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
	b.fail(b.set("OLDPWD", old))
	b.fail(b.set("PWD", full))
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
			b.fail(b.set("PWD", real))
		}
	}
	return status
}

func pwdCommand(b *builtin) int {
	dir := b.dir
	if slices.Contains(b.args, "-P") {
		real, err := realPath(b.fs, dir)
		if err != nil {
			return b.failf(1, "%v", describe(dir, err))
		}
		dir = real
	}
	b.printf("%s\n", dir)
	return 0
}

func (sh *shell) dirStack() []string { return sh.get("DIRSTACK").values() }

func (b *builtin) setStack(stack []string) {
	list := map[int]string{}
	for i, d := range stack {
		list[i] = d
	}
	b.fail(b.assign("DIRSTACK", variable{kind: indexed, set: true, list: list}))
}

func pushdCommand(b *builtin) int {
	stack := b.dirStack()
	if len(b.args) == 0 && len(stack) == 0 {
		return b.failf(1, "no other directory")
	}
	old, to := b.dir, ""
	if len(b.args) > 0 {
		to = b.args[0]
	} else {
		to, stack = stack[0], stack[1:]
	}
	if status := b.changeDir(to); status != 0 {
		return status
	}
	b.setStack(append([]string{old}, stack...))
	return dirsCommand(b)
}

func popdCommand(b *builtin) int {
	stack := b.dirStack()
	if len(stack) == 0 {
		return b.failf(1, "directory stack empty")
	}
	if status := b.changeDir(stack[0]); status != 0 {
		return status
	}
	b.setStack(stack[1:])
	return dirsCommand(b)
}

func dirsCommand(b *builtin) int {
	b.printf("%s\n", strings.Join(append([]string{b.dir}, b.dirStack()...), " "))
	return 0
}
