package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// finder is what find was told to look for.
type finder struct {
	p        *Process
	tests    []func(name string, info fs.FileInfo) (bool, error)
	actions  []func(name string, info fs.FileInfo) error
	maxDepth int
	minDepth int
	status   int
}

func findProgram(ctx context.Context, p *Process) int {
	f := &finder{p: p, maxDepth: 1000}
	args := p.Args[1:]
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" && args[0] != "(" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for len(args) > 0 {
		used, err := f.option(ctx, args)
		if err == nil && used > len(args) {
			err = fmt.Errorf("missing argument to `%s'", args[0])
		}
		if err != nil {
			return p.Fail(err)
		}
		args = args[used:]
	}
	for _, root := range roots {
		f.visit(root, 0)
	}
	return f.status
}

func (f *finder) option(ctx context.Context, args []string) (int, error) {
	negate := args[0] == "!" || args[0] == "-not"
	used := 1
	if negate && len(args) > 1 {
		args, used = args[1:], 2
	}
	arg := ""
	if len(args) > 1 {
		arg = args[1]
	}
	test := func(fn func(name string, info fs.FileInfo) (bool, error)) (int, error) {
		f.tests = append(f.tests, func(name string, info fs.FileInfo) (bool, error) {
			ok, err := fn(name, info)
			return ok != negate, err
		})
		return used + 1, nil
	}
	switch args[0] {
	case "-name", "-iname":
		return test(func(name string, _ fs.FileInfo) (bool, error) {
			return f.p.sh.match(arg, path.Base(name), args[0] == "-iname"), nil
		})
	case "-path":
		return test(func(name string, _ fs.FileInfo) (bool, error) { return f.p.sh.match(arg, name, false), nil })
	case "-type":
		return test(func(_ string, info fs.FileInfo) (bool, error) {
			return arg == map[byte]string{'-': "f", 'd': "d", 'l': "l", 'c': "c", 'b': "b"}[vfs.ListMode(info.Mode())[0]], nil
		})
	case "-user":
		id := userID(f.p.FS.FS(), arg)
		return test(func(_ string, info fs.FileInfo) (bool, error) { return int(info.Sys().(*vfs.Stat).UID) == id, nil })
	case "-perm":
		mode, err := parseMode(strings.TrimLeft(arg, "-/"), 0)
		if err != nil {
			return 0, err
		}
		return test(func(_ string, info fs.FileInfo) (bool, error) {
			if strings.HasPrefix(arg, "-") {
				return info.Mode()&mode == mode, nil
			}
			return vfs.FileMode(vfs.UnixMode(info.Mode())) == mode, nil
		})
	case "-empty":
		_, err := test(func(name string, info fs.FileInfo) (bool, error) {
			if info.IsDir() {
				entries, err := f.p.FS.ReadDir(f.p.Path(name))
				return err == nil && len(entries) == 0, nil
			}
			return info.Size() == 0, nil
		})
		return used, err
	case "-maxdepth", "-mindepth":
		n, err := strconv.Atoi(arg)
		if args[0] == "-maxdepth" {
			f.maxDepth = n
		} else {
			f.minDepth = n
		}
		return 2, err
	}
	return f.action(ctx, args)
}

func (f *finder) action(ctx context.Context, args []string) (int, error) {
	do := func(fn func(name string, info fs.FileInfo) error) { f.actions = append(f.actions, fn) }
	switch args[0] {
	case "-print", "-print0":
		end := map[bool]string{true: "\x00", false: "\n"}[args[0] == "-print0"]
		do(func(name string, _ fs.FileInfo) error { f.p.Printf("%s%s", name, end); return nil })
		return 1, nil
	case "-delete":
		do(func(name string, _ fs.FileInfo) error { return f.p.FS.Remove(f.p.Path(name)) })
		return 1, nil
	case "-exec":
		end := slices.IndexFunc(args, func(a string) bool { return a == ";" || a == "+" })
		if end < 2 {
			return 0, errors.New("missing argument to `-exec'")
		}
		do(func(name string, _ fs.FileInfo) error {
			command := slices.Clone(args[1:end])
			for i := range command {
				command[i] = strings.ReplaceAll(command[i], "{}", name)
			}
			f.p.run(ctx, command, f.p.Env, nil)
			return nil
		})
		return end + 1, nil
	case "-a", "-and", "-xdev", "-depth", "-follow":
		return 1, nil
	}
	return 0, fmt.Errorf("unknown predicate `%s'", args[0])
}

func (f *finder) visit(name string, depth int) {
	if f.p.step() != nil {
		return
	}
	info, err := f.p.FS.Lstat(f.p.Path(name))
	if err != nil {
		f.status = f.p.Failf(1, "'%s': %v", name, reason(err))
		return
	}
	visit := func() {
		if depth < f.minDepth {
			return
		}
		for _, t := range f.tests {
			if ok, err := t(name, info); !ok || err != nil {
				return
			}
		}
		for _, a := range f.actions {
			if err := a(name, info); err != nil {
				f.status = f.p.Failf(1, "'%s': %v", name, reason(err))
			}
		}
		if len(f.actions) == 0 {
			f.p.Printf("%s\n", name)
		}
	}
	if !info.IsDir() || depth >= f.maxDepth {
		visit()
		return
	}
	visit()
	entries, err := f.p.FS.ReadDir(f.p.Path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.status = f.p.Failf(1, "'%s': %v", name, reason(err))
	}
	for _, e := range entries {
		f.visit(strings.TrimSuffix(name, "/")+"/"+e.Name(), depth+1)
	}
}
