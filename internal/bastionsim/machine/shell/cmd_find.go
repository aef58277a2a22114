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
	// tests are tests and actions. One of them is done if all before it were true.
	tests  []test
	acts   bool // there is an action, so that names are not just printed
	levels int
}

type test func(name string, info fs.FileInfo) bool

func findProgram(p *Process, f flags) int {
	find := &finder{p: p, levels: deepest}
	args := f.args
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for want := true; len(args) > 0; want = true {
		for len(args) > 1 && args[0] == "!" {
			want, args = !want, args[1:]
		}
		is, used, err := find.parse(args)
		if err != nil {
			return p.Fail(err)
		}
		if args = args[used:]; is != nil {
			find.tests = append(find.tests, func(name string, info fs.FileInfo) bool { return is(name, info) == want })
		}
	}
	if !find.acts {
		find.tests = append(find.tests, find.print)
	}
	return p.walk(roots, "", find.levels, func(name string, info fs.FileInfo) error {
		for _, is := range find.tests {
			if !is(name, info) {
				break
			}
		}
		return nil
	})
}

func (f *finder) print(name string, _ fs.FileInfo) bool { return f.p.write(name+"\n") == nil }

// parse reads a test or an action, and says how many arguments it has. What says how find works is nil.
func (f *finder) parse(args []string) (_ test, used int, err error) {
	switch args[0] {
	case "-print":
		f.acts = true
		return f.print, 1, nil
	case "-exec":
		end := slices.IndexFunc(args, func(a string) bool { return a == ";" || a == "+" })
		if end < 2 {
			return nil, 0, errors.New("missing argument to `-exec'")
		}
		f.acts = true
		return func(name string, _ fs.FileInfo) bool {
			command, err := f.p.fillIn(args[1:end], "{}", name)
			return err == nil && f.p.run(f.p.sh.ctx, command, f.p.Env, nil) == 0
		}, end + 1, nil
	}
	if len(args) == 1 {
		return nil, 0, fmt.Errorf("missing argument to `%s'", args[0])
	}
	switch arg := args[1]; args[0] {
	case "-name", "-iname":
		fold := args[0] == "-iname"
		return func(name string, _ fs.FileInfo) bool { return f.p.sh.match(arg, path.Base(name), fold) }, 2, nil
	case "-type":
		kinds := map[byte]string{'-': "f", 'd': "d", 'l': "l", 'c': "c", 'b': "b"}
		return func(_ string, info fs.FileInfo) bool { return arg == kinds[vfs.ListMode(info.Mode())[0]] }, 2, nil
	case "-maxdepth":
		f.levels, err = strconv.Atoi(arg)
		return nil, 2, err
	}
	return nil, 0, fmt.Errorf("unknown predicate `%s'", args[0])
}
