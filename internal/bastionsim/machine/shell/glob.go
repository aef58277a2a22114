package shell

import (
	"errors"
	"regexp"
	resyntax "regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRegexpWork is how many steps one match of a regular expression may take: its instructions times the text's length.
const maxRegexpWork = 1 << 26

var errComplex = errors.New("the expression is too complex for this machine")

// matcher is a regular expression with a bound on its work.
type matcher struct {
	*regexp.Regexp
	size int
}

// compile reads a regular expression as Go and RE2 know them, whose work grows with the text's length alone.
func compile(expr string) (*matcher, error) {
	if len(expr) > 4096 {
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
func (m *matcher) find(sh *shell, text string) ([]int, error) {
	work := (len(text) + 1) * m.size
	if work > maxRegexpWork {
		return nil, errComplex
	}
	if err := sh.step(1 + work>>8); err != nil {
		return nil, err
	}
	return m.FindStringSubmatchIndex(text), nil
}

// globRegexp makes a regular expression of a pattern.
func globRegexp(pat string) string {
	var b strings.Builder
	var groups []byte
	for i := 0; i < len(pat); i++ {
		c := pat[i]
		next := byte(0)
		if i+1 < len(pat) {
			next = pat[i+1]
		}
		switch {
		case c == '\\' && next != 0:
			_, size := utf8.DecodeRuneInString(pat[i+1:])
			b.WriteString(regexp.QuoteMeta(pat[i+1 : i+1+size]))
			i += size
		case strings.IndexByte("?*+@", c) >= 0 && next == '(':
			groups = append(groups, c)
			b.WriteString("(?:")
			i++
		case c == ')' && len(groups) > 0:
			b.WriteByte(')')
			if op := groups[len(groups)-1]; op != '@' {
				b.WriteByte(op)
			}
			groups = groups[:len(groups)-1]
		case c == '|' && len(groups) > 0:
			b.WriteByte('|')
		case c == '*':
			b.WriteString(".*")
		case c == '?':
			b.WriteByte('.')
		case c == '[':
			class, length := classRegexp(pat[i:])
			b.WriteString(class)
			i += length - 1
		default:
			_, size := utf8.DecodeRuneInString(pat[i:])
			b.WriteString(regexp.QuoteMeta(pat[i : i+size]))
			i += size - 1
		}
	}
	return b.String()
}

// classRegexp makes a regular expression of a bracket expression, and says how long that was.
func classRegexp(pat string) (string, int) {
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if i < len(pat) && (pat[i] == '!' || pat[i] == '^') {
		b.WriteByte('^')
		i++
	}
	for start := i; i < len(pat); i++ {
		c := pat[i]
		if c == ']' && i > start {
			b.WriteByte(']')
			return b.String(), i + 1
		}
		if c == '[' && i+1 < len(pat) && pat[i+1] == ':' {
			if end := strings.Index(pat[i:], ":]"); end > 0 {
				b.WriteString(pat[i : i+end+2])
				i += end + 1
				continue
			}
		}
		if c == '\\' && i+1 < len(pat) {
			i++
			c = pat[i]
		}
		if strings.IndexByte(`[]\^&`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return `\[`, 1
}

// simplePattern says that a pattern has only stars and question marks, which are matched without a regular expression.
func simplePattern(pat string) bool {
	return !strings.ContainsAny(pat, "[(")
}

// match says whether a whole text is of a pattern.
func (sh *shell) match(pat, text string, fold bool) (bool, error) {
	if fold {
		pat, text = strings.ToLower(pat), strings.ToLower(text)
	}
	if inner, ok := strings.CutPrefix(pat, "!("); ok && strings.HasSuffix(inner, ")") {
		matched, err := sh.match("@("+inner, text, false)
		return !matched, err
	}
	if simplePattern(pat) {
		return sh.matchSimple(pat, text)
	}
	re, err := compile("(?s)^(?:" + globRegexp(pat) + ")$")
	if errors.Is(err, errComplex) {
		return false, err
	}
	if err != nil { // what is no pattern stands for itself
		return pat == text, nil
	}
	found, err := re.find(sh, text)
	return found != nil, err
}

// matchSimple goes back to the last star only, so that it ends after len(pat)*len(text) steps.
func (sh *shell) matchSimple(pat, text string) (bool, error) {
	p, t, star, mark := 0, 0, -1, 0
	for n := 0; t < len(text); n++ {
		if n&1023 == 1023 {
			if err := sh.step(16); err != nil {
				return false, err
			}
		}
		if p < len(pat) && pat[p] == '*' {
			star, mark = p, t
			p++
			continue
		}
		if p < len(pat) {
			_, size := utf8.DecodeRuneInString(text[t:])
			if pat[p] == '?' {
				p, t = p+1, t+size
				continue
			}
			lit, width := pat[p], 1
			if lit == '\\' && p+1 < len(pat) {
				lit, width = pat[p+1], 2
			}
			if lit == text[t] {
				p, t = p+width, t+1
				continue
			}
		}
		if star < 0 {
			return false, nil
		}
		mark++
		p, t = star+1, mark
	}
	for p < len(pat) && pat[p] == '*' {
		p++
	}
	return p == len(pat), nil
}

func (sh *shell) trimPrefix(text, pat string, large bool) (string, error) {
	for k := range len(text) + 1 {
		end := k
		if large {
			end = len(text) - k
		}
		if end < len(text) && !utf8.RuneStart(text[end]) {
			continue
		}
		if ok, err := sh.matchStep(pat, text[:end]); ok || err != nil {
			return text[end:], err
		}
	}
	return text, nil
}

func (sh *shell) trimSuffix(text, pat string, large bool) (string, error) {
	for k := range len(text) + 1 {
		start := len(text) - k
		if large {
			start = k
		}
		if start < len(text) && !utf8.RuneStart(text[start]) {
			continue
		}
		if ok, err := sh.matchStep(pat, text[start:]); ok || err != nil {
			return text[:start], err
		}
	}
	return text, nil
}

func (sh *shell) matchStep(pat, text string) (bool, error) {
	if err := sh.step(1); err != nil {
		return false, err
	}
	return sh.match(pat, text, false)
}

// substituteText is ${text/pat/with}.
func (sh *shell) substituteText(text, pat, with string, all bool) (string, error) {
	atStart, atEnd := false, false
	switch {
	case pat == "":
		return text, nil
	case !all && pat[0] == '#':
		atStart, pat = true, pat[1:]
	case !all && pat[0] == '%':
		atEnd, pat = true, pat[1:]
	}
	expr := "(?s:" + globRegexp(pat) + ")"
	if atStart {
		expr = "^" + expr
	}
	if atEnd {
		expr += "$"
	}
	re, err := compile(expr)
	if err != nil {
		return text, nil // what is no pattern is not found
	}
	re.Longest()
	var b strings.Builder
	for {
		if b.Len() > sh.r.limits.String {
			return "", sh.r.kill("string")
		}
		found, err := re.find(sh, text)
		if err != nil {
			return "", err
		}
		if found == nil || found[1] == 0 && text == "" {
			break
		}
		b.WriteString(text[:found[0]])
		b.WriteString(with)
		if found[1] == found[0] {
			_, size := utf8.DecodeRuneInString(text[found[0]:])
			b.WriteString(text[found[0] : found[0]+size])
			text = text[found[0]+size:]
		} else {
			text = text[found[1]:]
		}
		if !all || text == "" {
			break
		}
	}
	b.WriteString(text)
	return b.String(), nil
}

// globField is what a field is after globbing: the names of files, or the field itself.
func (sh *shell) globField(field []piece) ([]string, error) {
	isPattern := false
	for _, p := range field {
		isPattern = isPattern || !p.quoted && (strings.ContainsAny(p.text, "*?[") || strings.Contains(p.text, "@(") || strings.Contains(p.text, "+(") || strings.Contains(p.text, "!("))
	}
	text := joinPieces(field)
	if !isPattern || sh.noglob {
		return []string{text}, nil
	}
	names, err := sh.glob(patternOf(field))
	switch {
	case err != nil:
		return nil, err
	case len(names) > 0:
		return names, nil
	case sh.failglob:
		return nil, failf("no match: %s", text)
	case sh.nullglob:
		return nil, nil
	}
	return []string{text}, nil
}

func hasMeta(pat string) bool { return strings.ContainsAny(pat, "*?[(") }

// glob finds the files of a pattern.
func (sh *shell) glob(pat string) ([]string, error) {
	found := []string{""}
	rest := pat
	if trimmed := strings.TrimLeft(rest, "/"); trimmed != rest {
		found, rest = []string{"/"}, trimmed
	}
	for rest != "" && len(found) > 0 {
		part, after, more := strings.Cut(rest, "/")
		rest = strings.TrimLeft(after, "/")
		var next []string
		for _, dir := range found {
			names, err := sh.globDir(dir, part, more)
			if err != nil {
				return nil, err
			}
			next = append(next, names...)
			if len(next) > sh.r.limits.Fields {
				return nil, sh.r.kill("fields")
			}
		}
		found = next
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func (sh *shell) globDir(dir, part string, more bool) ([]string, error) {
	tail := ""
	if more {
		tail = "/"
	}
	if part == "**" && sh.globstar {
		return sh.globTree(dir, more, 0)
	}
	if !hasMeta(part) {
		name := dir + unescape(part, `\*?[]()|!+@`)
		if _, err := sh.fs.Lstat(sh.abs(name)); err != nil {
			return nil, nil
		}
		return []string{name + tail}, nil
	}
	var out []string
	entries, err := sh.fs.ReadDir(sh.abs(orDot(dir)))
	if err != nil {
		return nil, sh.step(1)
	}
	if err := sh.step(1 + len(entries)/8); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !sh.dotglob && !strings.HasPrefix(part, ".") && !strings.HasPrefix(part, `\.`) {
			continue
		}
		if ok, err := sh.match(part, e.Name(), sh.nocaseglob); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		if more {
			if info, err := sh.fs.Stat(sh.abs(dir + e.Name())); err != nil || !info.IsDir() {
				continue
			}
		}
		out = append(out, dir+e.Name()+tail)
	}
	return out, nil
}

func orDot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// globTree is **: all that is below a directory.
func (sh *shell) globTree(dir string, dirsOnly bool, depth int) ([]string, error) {
	entries, err := sh.fs.ReadDir(sh.abs(orDot(dir)))
	if err != nil || depth > 64 {
		return nil, sh.step(1)
	}
	var out []string
	if depth == 0 && dirsOnly {
		out = append(out, dir)
	}
	for _, e := range entries {
		if err := sh.step(1); err != nil {
			return nil, err
		}
		if strings.HasPrefix(e.Name(), ".") && !sh.dotglob {
			continue
		}
		name := dir + e.Name()
		switch {
		case e.IsDir():
			out = append(out, name+map[bool]string{true: "/"}[dirsOnly])
			below, err := sh.globTree(name+"/", dirsOnly, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, below...)
		case !dirsOnly:
			out = append(out, name)
		}
		if len(out) > sh.r.limits.Fields {
			return nil, sh.r.kill("fields")
		}
	}
	return out, nil
}

// quote writes a text so that a shell reads it as it is, without quotes if it needs none.
func quote(text string) string {
	if text != "" && strings.IndexFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-./:=,+@%", c)
	}) < 0 {
		return text
	}
	return quoteAlways(text)
}

func quoteAlways(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
