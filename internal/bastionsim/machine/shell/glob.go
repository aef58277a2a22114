package shell

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	resyntax "regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxRegexpWork is how many steps one match of a regular expression may take: its instructions times the text's
	// length.
	maxRegexpWork = 1 << 26
	// maxPattern is how long a pattern or a regular expression may be.
	maxPattern = 4096
)

var errComplex = errors.New("the expression is too complex for this machine")

// matcher is a regular expression with a bound on its work.
type matcher struct {
	*regexp.Regexp
	size int
}

// compile reads a regular expression as Go and RE2 know them, whose work grows with the text's length alone.
func compile(expr string) (*matcher, error) {
	if len(expr) > maxPattern {
		return nil, errComplex
	}
	tree, err := resyntax.Parse(expr, resyntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := resyntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > 10000 {
		return nil, errComplex
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &matcher{re, len(prog.Inst)}, nil
}

// find is the first match, as FindStringSubmatchIndex has it.
func (m *matcher) find(sh *shell, text string) []int {
	work := (len(text) + 1) * m.size
	if work > maxRegexpWork {
		sh.fail(errComplex)
	}
	if sh.step(1+work>>8) != nil || !sh.ok() {
		return nil
	}
	return m.FindStringSubmatchIndex(text)
}

// globRegexp makes a regular expression of a pattern, which takes the place of %s in format. It is nil for what is no
// pattern.
func (sh *shell) globRegexp(pat string, mode pattern.Mode, format string) *matcher {
	open := 0 // groups that are not closed, which would make reading the pattern take exponential time
	for _, c := range pat {
		switch {
		case c == '(':
			open++
		case c == ')' && open > 0:
			open--
		}
	}
	if open == 0 {
		mode |= pattern.ExtendedOperators
	}
	if len(pat) > maxPattern {
		sh.fail(errComplex)
		return nil
	}
	expr, err := pattern.Regexp(pat, mode)
	if err != nil {
		return nil
	}
	re, err := compile(fmt.Sprintf(format, expr))
	if errors.Is(err, errComplex) {
		sh.fail(err)
	}
	return re
}

// plainPattern is the text that a pattern stands for, if it stands for one alone.
func plainPattern(pat string) (string, bool) {
	return dropBackslashes(pat, false), !pattern.HasMeta(pat, 0) && !strings.Contains(pat, "(")
}

// match says whether a whole text is of a pattern.
func (sh *shell) match(pat, text string, fold bool) bool {
	if plain, ok := plainPattern(pat); ok {
		return plain == text || fold && strings.EqualFold(plain, text)
	}
	if inner, ok := strings.CutPrefix(pat, "!("); ok && strings.HasSuffix(inner, ")") {
		return !sh.match("@("+inner, text, fold)
	}
	mode := pattern.EntireString
	if fold {
		mode |= pattern.NoGlobCase
	}
	re := sh.globRegexp(pat, mode, "%s")
	if re == nil { // what is no pattern stands for itself
		return pat == text
	}
	return re.find(sh, text) != nil
}

// trim takes what is of a pattern from the beginning of a text or, with suffix, from its end: as little as can be or,
// with large, as much.
func (sh *shell) trim(text, pat string, suffix, large bool) string {
	plain, ok := plainPattern(pat)
	switch {
	case ok && suffix:
		return strings.TrimSuffix(text, plain)
	case ok:
		return strings.TrimPrefix(text, plain)
	}
	format := "(?s:^(?:%s)(.*)$)" // of two repetitions, the first one is as large or as small as it can be
	mode := pattern.Shortest
	switch {
	case suffix && large:
		format, mode = "(?s:^(.*?)(?:%s)$)", 0
	case suffix:
		format, mode = "(?s:^(.*)(?:%s)$)", 0
	case large:
		mode = 0
	}
	if re := sh.globRegexp(pat, mode, format); re != nil {
		if found := re.find(sh, text); found != nil {
			return text[found[2]:found[3]]
		}
	}
	return text
}

// replacePattern is ${text/pat/with}.
func (sh *shell) replacePattern(text, pat, with string, all bool) string {
	format := "(?:%s)"
	switch {
	case pat == "":
		return text
	case !all && pat[0] == '#':
		format, pat = "^(?:%s)", pat[1:]
	case !all && pat[0] == '%':
		format, pat = "(?:%s)$", pat[1:]
	}
	re := sh.globRegexp(pat, 0, format)
	if re == nil {
		return text
	}
	re.Longest()
	var b strings.Builder
	for text != "" || b.Len() == 0 {
		found := re.find(sh, text)
		if found == nil {
			break
		}
		b.WriteString(text[:found[0]] + with)
		next := found[1]
		if found[1] == found[0] {
			_, size := utf8.DecodeRuneInString(text[next:])
			b.WriteString(text[next : next+size])
			next += size
		}
		if text = text[next:]; !all || text == "" {
			break
		}
		if b.Len() > sh.r.limits.String {
			sh.kill("string")
		}
	}
	return b.String() + text
}

const patternChars = `\*?[]()|!+@`

func patternOf(field []piece) string {
	var b strings.Builder
	for _, p := range field {
		if p.quoted {
			b.WriteString(backslash(p.text, patternChars))
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// backslash writes a backslash before each of the characters given.
func backslash(text, special string) string {
	if !strings.ContainsAny(text, special) {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(special, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// globChars matches what makes a pattern of a field.
var globChars = regexp.MustCompile(`[*?[]|[@+!]\(`)

// globField is what a field is after globbing: the names of files, or the field itself.
func (sh *shell) globField(field []piece) []string {
	text := joinPieces(field)
	isPattern := func(p piece) bool { return !p.quoted && globChars.MatchString(p.text) }
	if sh.noglob || !slices.ContainsFunc(field, isPattern) {
		return []string{text}
	}
	names := sh.glob(patternOf(field))
	if len(names) > 0 || sh.nullglob {
		return names
	}
	return []string{text}
}

// glob finds the files of a pattern.
func (sh *shell) glob(pat string) []string {
	found := []string{""}
	rest := strings.TrimLeft(pat, "/")
	if rest != pat {
		found = []string{"/"}
	}
	for rest != "" && len(found) > 0 && sh.ok() {
		part, after, more := strings.Cut(rest, "/")
		rest = strings.TrimLeft(after, "/")
		var next []string
		for _, dir := range found {
			if next = append(next, sh.globDir(dir, part, more)...); len(next) > sh.r.limits.Fields {
				sh.kill("fields")
				return nil
			}
		}
		found = next
	}
	found = slices.DeleteFunc(found, func(name string) bool { return name == "" })
	slices.Sort(found)
	return slices.Compact(found)
}

// globDir are the names in a directory that are of a part of a pattern. With more, they are directories.
func (sh *shell) globDir(dir, part string, more bool) (out []string) {
	tail := ""
	if more {
		tail = "/"
	}
	if !strings.ContainsAny(part, "*?[(") {
		name := dir + unescape(part, patternChars)
		info, err := sh.fs.Lstat(sh.abs(name + tail))
		if sh.step(1) != nil || err != nil || more && !info.IsDir() {
			return nil
		}
		return []string{name + tail}
	}
	if part == "**" && sh.globstar {
		return sh.globTree(dir, more)
	}
	entries, err := sh.fs.ReadDir(sh.abs(cmp.Or(dir, ".")))
	if sh.step(1+len(entries)/8) != nil || err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		hidden := name[0] == '.' && !sh.dotglob && part[0] != '.' && !strings.HasPrefix(part, `\.`)
		if hidden || !sh.match(part, name, sh.nocaseglob) {
			continue
		}
		if more {
			if info, err := sh.fs.Stat(sh.abs(dir + name)); err != nil || !info.IsDir() {
				continue
			}
		}
		out = append(out, dir+name+tail)
	}
	return out
}

// globTree is **: a directory and all that is below it, but not what symbolic links lead to.
func (sh *shell) globTree(dir string, dirsOnly bool) []string {
	dirs := []string{dir}
	var out []string
	for i := 0; i < len(dirs) && sh.ok(); i++ {
		for _, name := range sh.globDir(dirs[i], "*", false) {
			if info, err := sh.fs.Lstat(sh.abs(name)); err == nil && info.IsDir() {
				dirs = append(dirs, name+"/")
			}
			out = append(out, name)
		}
		if len(out) > sh.r.limits.Fields {
			sh.kill("fields")
		}
	}
	if dirsOnly {
		return dirs
	}
	return append(out, dir)
}

// quote writes a text so that a shell reads it as it is, without quotes if it needs none.
func quote(text string) string {
	if quoted, err := syntax.Quote(text, syntax.LangBash); err == nil {
		return quoted
	}
	return quoteAlways(text)
}

func quoteAlways(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
