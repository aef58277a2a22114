package shell

import (
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
	p *Process
	// alternatives are separated by -o. Each is a list of tests and actions, of which the next is done if the last was true.
	alternatives [][]predicate
	acts         bool // there is an action, so that names are not just printed
	postOrder    bool
	min, max     int
}

type predicate func(name string, info fs.FileInfo) bool

func findProgram(p *Process, f flags) int {
	find := &finder{p: p, alternatives: [][]predicate{nil}, max: deepest}
	args := f.args
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	negate := false
	for len(args) > 0 {
		switch args[0] {
		case "!", "-not":
			negate, args = !negate, args[1:]
			continue
		case "-o", "-or":
			find.alternatives, args = append(find.alternatives, nil), args[1:]
			continue
		}
		is, used, err := find.primary(args)
		if err != nil {
			return p.Fail(err)
		}
		if is != nil {
			want, last := !negate, len(find.alternatives)-1
			find.alternatives[last] = append(find.alternatives[last], func(name string, info fs.FileInfo) bool {
				return is(name, info) == want
			})
		}
		negate, args = false, args[used:]
	}
	status := 0
	for _, root := range roots {
		before := func(name string, info fs.FileInfo) error {
			find.visit(name, strings.Count(strings.TrimPrefix(name, strings.TrimSuffix(root, "/")), "/"), info)
			return nil
		}
		after := visit(nil)
		if find.postOrder {
			before, after = nil, before
		}
		status = max(status, p.walk([]string{root}, "", find.max, before, after))
	}
	return status
}

func (f *finder) visit(name string, depth int, info fs.FileInfo) {
	if depth < f.min {
		return
	}
	for _, list := range f.alternatives {
		if !slices.ContainsFunc(list, func(is predicate) bool { return !is(name, info) }) {
			if !f.acts {
				f.p.Printf("%s\n", name)
			}
			return
		}
	}
}

// primary reads a test or an action, and says how many arguments it has. It is nil if it says how find works.
func (f *finder) primary(args []string) (_ predicate, used int, _ error) {
	switch args[0] {
	case "-a", "-and", "-xdev", "-follow":
		return nil, 1, nil
	case "-depth":
		f.postOrder = true
		return nil, 1, nil
	case "-empty":
		return f.empty, 1, nil
	case "-print", "-print0":
		end := map[string]string{"-print": "\n", "-print0": "\x00"}[args[0]]
		f.acts = true
		return func(name string, _ fs.FileInfo) bool { f.p.Printf("%s%s", name, end); return true }, 1, nil
	case "-delete":
		f.acts, f.postOrder = true, true
		return func(name string, _ fs.FileInfo) bool {
			return f.p.each([]string{name}, "cannot delete", func(string) error { return f.p.FS.Remove(f.p.Path(name)) }) == 0
		}, 1, nil
	case "-exec":
		end := slices.IndexFunc(args, func(a string) bool { return a == ";" || a == "+" })
		if end < 2 {
			return nil, 0, errors.New("missing argument to `-exec'")
		}
		f.acts = true
		return func(name string, _ fs.FileInfo) bool {
			command := slices.Clone(args[1:end])
			for i := range command {
				command[i] = strings.ReplaceAll(command[i], "{}", name)
			}
			return f.p.run(f.p.sh.ctx, command, f.p.Env, nil) == 0
		}, end + 1, nil
	}
	if len(args) == 1 {
		return nil, 0, fmt.Errorf("missing argument to `%s'", args[0])
	}
	is, err := f.test(args[0], args[1])
	return is, 2, err
}

func (f *finder) empty(name string, info fs.FileInfo) bool {
	if !info.IsDir() {
		return info.Size() == 0
	}
	entries, err := f.p.FS.ReadDir(f.p.Path(name))
	return err == nil && len(entries) == 0
}

// test is a test that has an argument.
func (f *finder) test(test, arg string) (predicate, error) {
	switch test {
	case "-name", "-iname":
		return func(name string, _ fs.FileInfo) bool { return f.p.sh.match(arg, path.Base(name), test == "-iname") }, nil
	case "-path":
		return func(name string, _ fs.FileInfo) bool { return f.p.sh.match(arg, name, false) }, nil
	case "-type":
		kinds := map[byte]string{'-': "f", 'd': "d", 'l': "l", 'c': "c", 'b': "b"}
		return func(_ string, info fs.FileInfo) bool { return arg == kinds[vfs.ListMode(info.Mode())[0]] }, nil
	case "-maxdepth":
		var err error
		f.max, err = strconv.Atoi(arg)
		return nil, err
	case "-mindepth":
		var err error
		f.min, err = strconv.Atoi(arg)
		return nil, err
	}
	return nil, fmt.Errorf("unknown predicate `%s'", test)
}
