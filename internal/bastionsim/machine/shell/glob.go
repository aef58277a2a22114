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
	// maxRegexpWork limits one match of a regular expression: the number of its instructions times the length of the
	// text.
	maxRegexpWork = 1 << 26
	// maxPattern is the maximum length of a pattern or a regular expression.
	maxPattern = 4096
)

var errComplex = errors.New("the expression is too complex for this machine")

// matcher is a regular expression with a bound on its work.
type matcher struct {
	*regexp.Regexp
	size int
}

// compile compiles a regular expression of Go, which has the syntax of RE2. Its work grows linearly with the text.
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

// find returns the first match like FindStringSubmatchIndex.
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

// replace replaces the first match in a text, or all matches, by what with appends. changed reports whether there is a
// match.
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
		if found[0] == end { // an empty match: continue after the next character
			_, size := utf8.DecodeRuneInString(text[end:])
			out = append(out, text[end:end+size]...)
			end += size
		}
		if text = text[end:]; text == "" {
			break
		}
		if len(out) > maxString {
			sh.kill("string")
		}
	}
	return string(append(out, text...)), changed
}

// groupsEnd reports whether all groups of a pattern are closed. Parsing an open group would take exponential time.
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

// globRegexp compiles a pattern, whose expression replaces %s in format. It returns nil if the pattern is invalid.
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

// match reports whether a pattern matches a whole text.
func (sh *shell) match(pat, text string, fold bool) bool {
	if !pattern.HasMeta(pat, 0) && !strings.Contains(pat, "(") {
		plain := dropBackslashes(pat, false)
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
	if re == nil { // an invalid pattern stands for itself
		return pat == text
	}
	return re.find(sh, text) != nil
}

// trim removes the match of a pattern from the beginning of a text or, with suffix, from its end: the shortest match
// or, with large, the longest one.
func (sh *shell) trim(text, pat string, suffix, large bool) string {
	format := "(?s:^(?:%s)(.*)$)" // the first one of two repetitions takes as much or as little as possible
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

// replacePattern evaluates ${text/pat/with}.
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

// patternChars matches the characters that are special in patterns.
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

// globChars matches the characters that make a field a pattern.
var globChars = regexp.MustCompile(`[*?[]|[@+!]\(`)

// globField returns the names of the files that match a field, or the field itself. Package expand searches the
// directories. Each entry of a directory counts for the limits.
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
		} else { // in the value of a parameter, only patterns are special
			word.Parts = append(word.Parts, &syntax.ParamExp{Param: &syntax.Lit{Value: name}})
		}
	}
	entries, tree := 0, sh.globstar && strings.Contains(text, "**")
	names, err := expand.Fields(&expand.Config{
		Env: expand.ListEnviron(env...), ExtGlob: groupsEnd(text),
		GlobStar: sh.globstar, DotGlob: sh.dotglob, NoCaseGlob: sh.nocaseglob, NullGlob: sh.nullglob,
		ReadDir2: func(dir string) ([]fs.DirEntry, error) {
			list, err := sh.fs.ReadDir(dir)
			if entries += len(list); entries > maxFields {
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

// quote quotes a text for a shell, if necessary.
func quote(text string) string {
	if quoted, err := syntax.Quote(text, syntax.LangBash); err == nil {
		return quoted
	}
	return quoteAlways(text)
}

func quoteAlways(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
