package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	resyntax "regexp/syntax"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
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

// replace replaces the first match in a text, or all of them, by what with appends. changed says whether there is one.
func (m *matcher) replace(sh *shell, text string, all bool, with func(out []byte, text string, match []int) []byte) (
	_ string, changed bool,
) {
	var out []byte
	for all || !changed {
		found := m.find(sh, text)
		if found == nil {
			break
		}
		changed = true
		end := found[1]
		out = with(append(out, text[:found[0]]...), text, found)
		if found[0] == end { // an empty match: the next one is behind the next character
			_, size := utf8.DecodeRuneInString(text[end:])
			out = append(out, text[end:end+size]...)
			end += size
		}
		if text = text[end:]; text == "" {
			break
		}
		if len(out) > sh.r.limits.String {
			sh.kill("string")
		}
	}
	return string(append(out, text...)), changed
}

// groupsEnd says whether all groups of a pattern are closed. Reading one that is open would take exponential time.
func groupsEnd(pat string) bool {
	open := 0
	for _, c := range pat {
		switch {
		case c == '(':
			open++
		case c == ')' && open > 0:
			open--
		}
	}
	return open == 0
}

// globRegexp makes a regular expression of a pattern, which takes the place of %s in format. It is nil for what is no
// pattern.
func (sh *shell) globRegexp(pat string, mode pattern.Mode, format string) *matcher {
	if groupsEnd(pat) {
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
	out, _ := re.replace(sh, text, all, func(out []byte, _ string, _ []int) []byte { return append(out, with...) })
	return out
}

// patternChars matches what is not text of a pattern.
var patternChars = regexp.MustCompile(`[\\*?[\]()|!+@]`)

func patternOf(field []piece) string {
	var b strings.Builder
	for _, p := range field {
		if p.quoted {
			b.WriteString(patternChars.ReplaceAllString(p.text, `\$0`))
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// globChars matches what makes a pattern of a field.
var globChars = regexp.MustCompile(`[*?[]|[@+!]\(`)

// globField is what a field is after globbing: the names of files, or the field itself. Package expand looks for them,
// and every directory that it reads counts.
func (sh *shell) globField(field []piece) []string {
	text := joinPieces(field)
	isPattern := func(p piece) bool { return !p.quoted && globChars.MatchString(p.text) }
	if sh.noglob || !slices.ContainsFunc(field, isPattern) {
		return []string{text}
	}
	if len(text) > maxPattern {
		sh.fail(errComplex)
		return nil
	}
	word, env := &syntax.Word{}, []string{"PWD=" + sh.dir, "IFS="}
	for i, p := range field {
		name := fmt.Sprintf("p%d", i)
		env = append(env, name+"="+p.text)
		if p.quoted {
			word.Parts = append(word.Parts, &syntax.SglQuoted{Value: p.text})
		} else { // nothing but a pattern counts in the value of a parameter
			word.Parts = append(word.Parts, &syntax.ParamExp{Param: &syntax.Lit{Value: name}})
		}
	}
	entries, tree := 0, sh.globstar && strings.Contains(text, "**")
	names, err := expand.Fields(&expand.Config{
		Env: expand.ListEnviron(env...), ExtGlob: groupsEnd(text),
		GlobStar: sh.globstar, DotGlob: sh.dotglob, NoCaseGlob: sh.nocaseglob, NullGlob: sh.nullglob,
		ReadDir2: func(dir string) ([]fs.DirEntry, error) {
			list, err := sh.fs.ReadDir(dir)
			if entries += len(list); entries > sh.r.limits.Fields {
				sh.kill("fields")
			}
			if sh.step(1+len(list)*(8+len(text)/8)) != nil || !sh.ok() {
				return nil, fs.ErrNotExist
			}
			if info, lstatErr := sh.fs.Lstat(dir); tree && lstatErr == nil && info.Mode()&fs.ModeSymlink != 0 {
				return nil, syscall.ENOTDIR // links may lead back to where the search began
			}
			return list, err
		},
	}, word)
	if err != nil {
		return []string{text}
	}
	return names
}

// quote writes a text so that a shell reads it as it is, without quotes if it needs none.
func quote(text string) string {
	if quoted, err := syntax.Quote(text, syntax.LangBash); err == nil {
		return quoted
	}
	return quoteAlways(text)
}

func quoteAlways(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
