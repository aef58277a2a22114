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
		"noexec": &o.noexec, "allexport": &o.allexport,
	}
}

var setLetters = map[rune]string{'e': "errexit", 'u': "nounset", 'x': "xtrace", 'f': "noglob", 'n': "noexec", 'a': "allexport"}

func (o *options) shopts() map[string]*bool {
	return map[string]*bool{
		"nullglob": &o.nullglob, "dotglob": &o.dotglob, "nocaseglob": &o.nocaseglob, "globstar": &o.globstar,
		"expand_aliases": &o.expandAliases,
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
	}
	for args := b.args; len(args) > 0; {
		arg := args[0]
		if args = args[1:]; arg == "-" || arg == "+" {
			if b.xtrace = b.xtrace && arg == "+"; len(args) == 0 {
				return 0
			}
		}
		if arg == "--" || arg == "-" || arg == "+" {
			b.params = slices.Clone(args)
			return 0
		}
		if arg == "" || arg[0] != '-' && arg[0] != '+' {
			b.params = append([]string{arg}, args...)
			return 0
		}
		on := arg[0] == '-'
		letters, named := strings.CutSuffix(arg[1:], "o")
		if err := b.setFlags(letters, on); err != nil {
			return b.failf(2, "%v", err)
		}
		switch {
		case named && len(args) == 0:
			b.listOptions(b.setOptions())
		case named:
			if p := b.setOptions()[args[0]]; p != nil {
				*p = on
			} else if !slices.Contains(ignoredOptions, args[0]) {
				return b.failf(2, "%s: invalid option name", args[0])
			}
			args = args[1:]
		}
	}
	return 0
}

// ignoredOptions are options of set and shopt that change nothing here.
var ignoredOptions = []string{
	"posix", "vi", "emacs", "monitor", "errtrace", "functrace", "history", "braceexpand", "hashall", "verbose", "nolog", "notify", "physical", "privileged",
	"extglob", "checkwinsize", "histappend", "cmdhist", "sourcepath", "inherit_errexit", "progcomp", "promptvars", "login_shell", "huponexit", "interactive_comments",
}

func (b *builtin) listOptions(all map[string]*bool) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.printf("%-15s\t%s\n", name, map[bool]string{true: "on", false: "off"}[*all[name]])
	}
}

func shoptCommand(b *builtin) int {
	all := b.shopts()
	if b.f.has('o') {
		all = b.setOptions()
	}
	if len(b.args) == 0 && !b.f.has('q') {
		b.listOptions(all)
	}
	status := 0
	for _, name := range b.args {
		p := all[name]
		switch {
		case p == nil && slices.Contains(ignoredOptions, name):
		case p == nil:
			status = b.failf(1, "%s: invalid shell option name", name)
		case b.f.has('s') || b.f.has('u'):
			*p = b.f.has('s')
		default:
			if !b.f.has('q') {
				b.listOptions(map[string]*bool{name: p})
			}
			if !*p {
				status = 1
			}
		}
	}
	return status
}
