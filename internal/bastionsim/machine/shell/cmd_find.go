package shell

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

var findTypes = map[string]byte{"f": '-', "d": 'd', "l": 'l', "c": 'c', "b": 'b'}

// findProgram prints the names that pass all tests: -name, -iname and -type, which "!" negates.
func findProgram(p *Process, f flags) int {
	args, levels := f.args, deepest
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var tests []func(name string, info fs.FileInfo) bool
	for want := true; len(args) > 0; want = true {
		for len(args) > 1 && args[0] == "!" {
			want, args = !want, args[1:]
		}
		name := args[0]
		if args = args[1:]; name == "-print" {
			continue
		}
		if len(args) == 0 {
			return p.Failf(1, "missing argument to `%s'", name)
		}
		arg := args[0]
		args = args[1:]
		switch name {
		case "-name", "-iname":
			tests = append(tests, func(file string, _ fs.FileInfo) bool {
				return p.sh.match(arg, path.Base(file), name == "-iname") == want
			})
		case "-type":
			tests = append(tests, func(_ string, info fs.FileInfo) bool {
				return (vfs.ListMode(info.Mode())[0] == findTypes[arg]) == want
			})
		case "-maxdepth":
			var err error
			if levels, err = strconv.Atoi(arg); err != nil {
				return p.Fail(err)
			}
		default:
			return p.Failf(1, "unknown predicate `%s'", name)
		}
	}
	return p.walk(roots, "", levels, func(name string, info fs.FileInfo) error {
		for _, passes := range tests {
			if !passes(name, info) {
				return nil
			}
		}
		p.Printf("%s\n", name)
		return nil
	})
}
