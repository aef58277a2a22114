package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// setOptions are those of set, with their letters.
func (o *options) setOptions() map[string]*bool {
	return map[string]*bool{
		"errexit": &o.errexit, "nounset": &o.nounset, "xtrace": &o.xtrace, "pipefail": &o.pipefail, "noglob": &o.noglob,
		"noexec": &o.noexec, "noclobber": &o.noclobber, "allexport": &o.allexport,
	}
}

var setLetters = map[rune]string{'e': "errexit", 'u': "nounset", 'x': "xtrace", 'f': "noglob", 'n': "noexec", 'C': "noclobber", 'a': "allexport"}

func (o *options) shopts() map[string]*bool {
	return map[string]*bool{
		"nullglob": &o.nullglob, "dotglob": &o.dotglob, "failglob": &o.failglob, "nocaseglob": &o.nocaseglob, "nocasematch": &o.nocasematch,
		"globstar": &o.globstar, "expand_aliases": &o.expandAliases, "lastpipe": &o.lastpipe,
	}
}

func (sh *shell) flagLetters() string {
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(setLetters)) {
		if *sh.setOptions()[setLetters[c]] {
			b.WriteRune(c)
		}
	}
	if sh.interactive {
		b.WriteByte('i')
	}
	return b.String()
}

// setFlags sets options by their letters. Some that change nothing here are accepted.
func (sh *shell) setFlags(letters string, on bool) error {
	for _, c := range letters {
		if name, ok := setLetters[c]; ok {
			*sh.setOptions()[name] = on
		} else if !strings.ContainsRune("bhkmptvBEHPTi", c) {
			return fmt.Errorf("-%c: invalid option", c)
		}
	}
	return nil
}

func setCommand(b *builtin) int {
	if len(b.args) == 0 {
		for _, name := range b.namesWith("") {
			if v := b.raw(name); v.kind == scalar && v.set {
				b.printf("%s=%s\n", name, quote(v.str))
			}
		}
		return 0
	}
	args := b.args
	for len(args) > 0 {
		arg := args[0]
		if arg == "--" || arg == "-" {
			b.params = slices.Clone(args[1:])
			return 0
		}
		if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' {
			b.params = slices.Clone(args)
			return 0
		}
		args = args[1:]
		on := arg[0] == '-'
		letters, named := strings.CutSuffix(arg[1:], "o")
		if err := b.setFlags(letters, on); err != nil {
			return b.failf(2, "%v", err)
		}
		if !named {
			continue
		}
		if len(args) == 0 {
			b.listOptions(b.setOptions())
			return 0
		}
		if p := b.setOptions()[args[0]]; p != nil {
			*p = on
		} else if !slices.Contains([]string{"posix", "vi", "emacs", "monitor", "errtrace", "functrace", "history", "braceexpand", "hashall", "verbose", "nolog", "notify", "physical", "privileged"}, args[0]) {
			return b.failf(2, "%s: invalid option name", args[0])
		}
		args = args[1:]
	}
	return 0
}

func (b *builtin) listOptions(all map[string]*bool) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.printf("%-15s\t%s\n", name, map[bool]string{true: "on", false: "off"}[*all[name]])
	}
}

func shoptCommand(b *builtin) int {
	all, mode, quiet := b.shopts(), "", false
	var names []string
	for _, arg := range b.args {
		switch arg {
		case "-s", "-u":
			mode = arg
		case "-q":
			quiet = true
		case "-o":
			all = b.setOptions()
		case "-p":
		default:
			names = append(names, arg)
		}
	}
	if len(names) == 0 {
		b.listOptions(all)
		return 0
	}
	status := 0
	for _, name := range names {
		p, ok := all[name]
		switch {
		case !ok && slices.Contains([]string{"extglob", "checkwinsize", "histappend", "cmdhist", "sourcepath", "inherit_errexit", "progcomp", "promptvars", "login_shell", "huponexit"}, name):
		case !ok:
			status = b.failf(1, "%s: invalid shell option name", name)
		case mode != "":
			*p = mode == "-s"
		default:
			if !quiet {
				b.listOptions(map[string]*bool{name: p})
			}
			if !*p {
				status = 1
			}
		}
	}
	return status
}
