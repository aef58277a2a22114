package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// piece is a part of a field; what is quoted is no pattern.
type piece struct {
	text   string
	quoted bool
}

type field []piece

func (f field) text() string {
	if len(f) == 1 {
		return f[0].text
	}
	var b strings.Builder
	for _, p := range f {
		b.WriteString(p.text)
	}
	return b.String()
}

func (f field) pattern() (pat string, magic bool) {
	var b strings.Builder
	for _, p := range f {
		if p.quoted {
			b.WriteString(quotePattern(p.text))
			continue
		}
		magic = magic || strings.ContainsAny(p.text, "*?[")
		b.WriteString(p.text)
	}
	return b.String(), magic
}

// expander turns words into fields.
type expander struct {
	p      *proc
	split  bool // fields are split and globbed
	asPat  bool // backslashes of literals are kept for the pattern
	fields []field
	cur    field
	begun  bool // the current field exists even if it is empty
	size   int
}

func (e *expander) add(text string, quoted bool) error {
	e.size += len(text)
	if err := e.p.b().text(e.size); err != nil {
		return err
	}
	e.begun = e.begun || quoted
	if text != "" || quoted {
		e.cur = append(e.cur, piece{text, quoted})
	}
	return nil
}

func (e *expander) flush(force bool) error {
	if len(e.cur) == 0 && !e.begun && !force {
		return nil
	}
	e.fields = append(e.fields, e.cur)
	e.cur, e.begun = nil, false
	if len(e.fields) > e.p.b().limits.Fields {
		return e.p.b().fail(ErrFields)
	}
	return nil
}

// addSplit adds the result of an unquoted expansion.
func (e *expander) addSplit(s string) error {
	if !e.split {
		return e.add(s, false)
	}
	ifs := ifsOf(e.p)
	for s != "" {
		end := strings.IndexAny(s, ifs)
		if end < 0 || ifs == "" {
			return e.add(s, false)
		}
		if err := e.add(s[:end], false); err != nil {
			return err
		}
		s = s[end:]
		hard := false
		for s != "" && strings.IndexByte(ifs, s[0]) >= 0 && (!hard || isBlank(s[0])) {
			hard = hard || !isBlank(s[0])
			s = s[1:]
		}
		if err := e.flush(hard); err != nil {
			return err
		}
	}
	return nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// fieldsOf expands words as the arguments of a command: braces, tildes, parameters, substitutions, splitting, globs.
func (p *proc) fieldsOf(words ...*syntax.Word) ([]string, error) {
	var out []string
	size := 0
	for _, w := range words {
		alternatives, err := p.braces(w.Parts)
		if err != nil {
			return nil, err
		}
		for _, parts := range alternatives {
			e := &expander{p: p, split: true}
			if err := e.word(parts); err != nil {
				return nil, err
			}
			if err := e.flush(false); err != nil {
				return nil, err
			}
			for _, f := range e.fields {
				found, err := p.glob(f)
				if err != nil {
					return nil, err
				}
				for _, s := range found {
					size += len(s)
				}
				out = append(out, found...)
			}
			if len(out) > p.b().limits.Fields {
				return nil, p.b().fail(ErrFields)
			}
			if err := p.b().text(size / 2); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// literal expands a word to one string, unsplit.
func (p *proc) literal(w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	f, err := p.single(w, false)
	return f.text(), err
}

// patternOf expands a word to a pattern.
func (p *proc) patternOf(w *syntax.Word) (*pattern, error) {
	f, err := p.single(w, true)
	pat, _ := f.pattern()
	return compile(p.b(), pat), err
}

func (p *proc) single(w *syntax.Word, asPat bool) (field, error) {
	if w == nil {
		return nil, nil
	}
	e := &expander{p: p, asPat: asPat}
	err := e.word(w.Parts)
	return e.cur, err
}

func (e *expander) word(parts []syntax.WordPart) error {
	for i, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok && i == 0 && strings.HasPrefix(lit.Value, "~") {
			prefix, rest := e.p.tilde(lit.Value, len(parts) > 1)
			if err := e.add(prefix, prefix != ""); err != nil {
				return err
			}
			if err := e.lit(rest); err != nil {
				return err
			}
			continue
		}
		if err := e.part(part, false); err != nil {
			return err
		}
	}
	return nil
}

func (e *expander) part(part syntax.WordPart, quoted bool) error {
	switch part := part.(type) {
	case *syntax.Lit:
		if quoted {
			return e.add(unescapeDouble(part.Value), true)
		}
		return e.lit(part.Value)
	case *syntax.SglQuoted:
		if part.Dollar {
			return e.add(unescapeC(part.Value), true)
		}
		return e.add(part.Value, true)
	case *syntax.DblQuoted:
		return e.double(part)
	case *syntax.ParamExp:
		return e.param(part, quoted)
	case *syntax.CmdSubst:
		out, err := e.p.substitute(part)
		if err != nil {
			return err
		}
		return e.value(out, quoted)
	case *syntax.ArithmExp:
		n, err := e.p.arith(part.X)
		if err != nil {
			return err
		}
		return e.value(strconv.FormatInt(n, 10), quoted)
	case *syntax.BraceExp:
		return e.add(braceText(part), false)
	case *syntax.ProcSubst:
		return e.p.complain("process substitution does not exist on this machine")
	case *syntax.ExtGlob:
		return e.p.complain("extended patterns do not exist on this machine")
	}
	return e.p.complain("this expansion does not exist on this machine")
}

func (e *expander) double(q *syntax.DblQuoted) error {
	// "$@" of no parameters is no field at all.
	if len(q.Parts) == 1 {
		if pe, ok := q.Parts[0].(*syntax.ParamExp); ok && isAt(pe) {
			return e.param(pe, true)
		}
	}
	if err := e.add("", true); err != nil {
		return err
	}
	for _, part := range q.Parts {
		if err := e.part(part, true); err != nil {
			return err
		}
	}
	return nil
}

func (e *expander) value(s string, quoted bool) error {
	if quoted {
		return e.add(s, true)
	}
	return e.addSplit(s)
}

// lit adds unquoted source text: a backslash quotes what follows.
func (e *expander) lit(s string) error {
	for s != "" {
		plain, rest, found := strings.Cut(s, `\`)
		if err := e.add(plain, false); err != nil {
			return err
		}
		if !found || rest == "" {
			return nil
		}
		n := 1
		for n < len(rest) && rest[n]&0xc0 == 0x80 {
			n++
		}
		if rest[:n] != "\n" {
			if err := e.add(rest[:n], true); err != nil {
				return err
			}
		}
		s = rest[n:]
	}
	return nil
}

func unescapeDouble(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// tilde expands ~ and ~user by the machine's own users.
func (p *proc) tilde(s string, more bool) (prefix, rest string) {
	name, rest, slash := strings.Cut(s[1:], "/")
	if more && !slash {
		return "", s
	}
	home, ok := "", false
	switch name {
	case "":
		home, ok = p.get("HOME")
	case "+":
		home, ok = p.dir, true
	default:
		if p.s.cfg.Home != nil {
			home, ok = p.s.cfg.Home(name)
		}
	}
	if !ok {
		return "", s
	}
	return home, s[1+len(name):]
}

// braces expands brace expressions, which the parser has marked.
func (p *proc) braces(parts []syntax.WordPart) ([][]syntax.WordPart, error) {
	at := slices.IndexFunc(parts, func(part syntax.WordPart) bool { _, ok := part.(*syntax.BraceExp); return ok })
	if at < 0 {
		return [][]syntax.WordPart{parts}, nil
	}
	first, err := p.braceAlternatives(parts[at].(*syntax.BraceExp))
	if err != nil {
		return nil, err
	}
	rest, err := p.braces(parts[at+1:])
	if err != nil {
		return nil, err
	}
	if len(first)*len(rest) > p.b().limits.Fields {
		return nil, p.b().fail(ErrFields)
	}
	out := make([][]syntax.WordPart, 0, len(first)*len(rest))
	for _, f := range first {
		for _, r := range rest {
			out = append(out, slices.Concat(parts[:at], f, r))
		}
	}
	return out, nil
}

func (p *proc) braceAlternatives(br *syntax.BraceExp) ([][]syntax.WordPart, error) {
	if br.Sequence {
		return p.braceSequence(br)
	}
	var out [][]syntax.WordPart
	for _, elem := range br.Elems {
		inner, err := p.braces(elem.Parts)
		if err != nil {
			return nil, err
		}
		if out = append(out, inner...); len(out) > p.b().limits.Fields {
			return nil, p.b().fail(ErrFields)
		}
	}
	return out, nil
}

func (p *proc) braceSequence(br *syntax.BraceExp) ([][]syntax.WordPart, error) {
	from, to := br.Elems[0].Lit(), br.Elems[1].Lit()
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	letters := errA != nil || errB != nil
	if letters {
		a, b = int(from[0]), int(to[0])
	}
	step := 1
	if len(br.Elems) > 2 {
		if n, err := strconv.Atoi(br.Elems[2].Lit()); err == nil && n != 0 {
			step = max(n, -n)
		}
	}
	// As floats: the difference of two integers can overflow.
	count := (max(float64(a), float64(b)) - min(float64(a), float64(b))) / float64(step)
	if step < 0 || count > float64(p.b().limits.Fields) {
		return nil, p.b().fail(ErrFields)
	}
	width := 0
	if !letters && (leadingZero(from) || leadingZero(to)) {
		width = min(max(len(from), len(to)), 32)
	}
	var out [][]syntax.WordPart
	for i := 0; i <= int(count); i++ {
		n := a + i*step
		if b < a {
			n = a - i*step
		}
		text := string(rune(n))
		if !letters {
			text = strconv.Itoa(n)
			text = strings.Repeat("0", max(0, width-len(text))) + text
		}
		out = append(out, []syntax.WordPart{&syntax.SglQuoted{Value: text}})
	}
	return out, nil
}

func leadingZero(s string) bool { return len(s) > 1 && s[0] == '0' }

// braceText is a brace expression where none is expanded, as in an assignment.
func braceText(br *syntax.BraceExp) string {
	var parts []string
	for _, e := range br.Elems {
		parts = append(parts, e.Lit())
	}
	if br.Sequence {
		return "{" + strings.Join(parts, "..") + "}"
	}
	return "{" + strings.Join(parts, ",") + "}"
}
