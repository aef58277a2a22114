package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a compiled shell pattern. Matching never recurses and looks now and then whether to stop.
type pattern struct {
	b       *budget
	items   []item
	literal bool
}

type item struct {
	kind  byte // 'c' a rune, '?' any, '*' any number, '[' a set
	r     rune
	set   string
	neg   bool
	items []span
	class []string
}

// maxPattern is the longest pattern in bytes; a compiled one is many times larger.
const maxPattern = 64 << 10

type span struct{ lo, hi rune }

// compile reads a pattern; a backslash quotes.
func compile(b *budget, s string) *pattern {
	p := &pattern{b: b, literal: true}
	if len(s) > maxPattern {
		_ = b.fail(ErrText)
		return p
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch r {
		case '\\':
			if i+n < len(s) {
				i += n
				r, n = utf8.DecodeRuneInString(s[i:])
			}
			p.items = append(p.items, item{kind: 'c', r: r})
		case '*':
			if p.literal = false; len(p.items) == 0 || p.items[len(p.items)-1].kind != '*' {
				p.items = append(p.items, item{kind: '*'})
			}
		case '?':
			p.literal = false
			p.items = append(p.items, item{kind: '?'})
		case '[':
			if set, length, ok := compileSet(s[i:]); ok {
				p.literal = false
				p.items = append(p.items, set)
				n = length
				break
			}
			p.items = append(p.items, item{kind: 'c', r: r})
		default:
			p.items = append(p.items, item{kind: 'c', r: r})
		}
		i += n
	}
	return p
}

func compileSet(s string) (item, int, bool) {
	it, i := item{kind: '['}, 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		it.neg = true
		i++
	}
	for first := true; i < len(s); first = false {
		if s[i] == ']' && !first {
			return it, i + 1, true
		}
		if rest, ok := strings.CutPrefix(s[i:], "[:"); ok {
			if name, _, ok := strings.Cut(rest, ":]"); ok {
				it.class = append(it.class, name)
				i += len(name) + 4
				continue
			}
		}
		lo, n := setRune(s[i:])
		i += n
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			hi, n = setRune(s[i+1:])
			i += n + 1
		}
		it.items = append(it.items, span{lo, hi})
	}
	return it, 0, false
}

func setRune(s string) (rune, int) {
	skip := 0
	if s[0] == '\\' && len(s) > 1 {
		skip = 1
	}
	r, n := utf8.DecodeRuneInString(s[skip:])
	return r, n + skip
}

var classes = map[string]func(rune) bool{
	"alpha": unicode.IsLetter, "digit": unicode.IsDigit, "upper": unicode.IsUpper, "lower": unicode.IsLower,
	"space": unicode.IsSpace, "punct": unicode.IsPunct, "print": unicode.IsPrint, "cntrl": unicode.IsControl,
	"alnum": func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	"blank": func(r rune) bool { return r == ' ' || r == '\t' },
	"xdigit": func(r rune) bool {
		return unicode.Is(unicode.ASCII_Hex_Digit, r)
	},
}

func (it item) matches(r rune) bool {
	switch it.kind {
	case 'c':
		return it.r == r
	case '?':
		return true
	}
	in := false
	for _, s := range it.items {
		in = in || (s.lo <= r && r <= s.hi)
	}
	for _, c := range it.class {
		in = in || (classes[c] != nil && classes[c](r))
	}
	return in != it.neg
}

// match says whether the whole of s matches.
func (p *pattern) match(s string) bool {
	i, at, star, mark, ticks := 0, 0, -1, 0, 0
	for at < len(s) {
		if p.b.tick(&ticks) {
			return false
		}
		r, n := utf8.DecodeRuneInString(s[at:])
		switch {
		case i < len(p.items) && p.items[i].kind == '*':
			star, mark = i, at
			i++
		case i < len(p.items) && p.items[i].matches(r):
			i++
			at += n
		case star >= 0:
			_, n := utf8.DecodeRuneInString(s[mark:])
			mark += n
			i, at = star+1, mark
		default:
			return false
		}
	}
	for i < len(p.items) && p.items[i].kind == '*' {
		i++
	}
	return i == len(p.items)
}

// prefix is the length of the shortest or longest prefix of s that matches, or -1.
func (p *pattern) prefix(s string, longest bool) int {
	found, ticks := -1, 0
	for at := 0; at <= len(s); at++ {
		if p.b.tick(&ticks) || p.b.err() != nil {
			return -1
		}
		if at < len(s) && !utf8.RuneStart(s[at]) {
			continue
		}
		if p.match(s[:at]) {
			if found = at; !longest {
				break
			}
		}
		if p.literal && at > len(p.items)*utf8.UTFMax {
			break
		}
	}
	return found
}

// suffix is where the shortest or longest suffix of s that matches starts, or -1.
func (p *pattern) suffix(s string, longest bool) int {
	found := -1
	for at := len(s); at >= 0; at-- {
		if p.b.err() != nil {
			return -1
		}
		if at < len(s) && !utf8.RuneStart(s[at]) {
			continue
		}
		if p.match(s[at:]) {
			if found = at; !longest {
				break
			}
		}
		if p.literal && len(s)-at > len(p.items)*utf8.UTFMax {
			break
		}
	}
	return found
}

// quotePattern makes s a pattern that matches only s.
func quotePattern(s string) string {
	if !strings.ContainsAny(s, `*?[]\-!^`) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`*?[]\-!^`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Match says whether name matches the shell pattern, for commands like find.
func Match(pat, name string) bool { return compile(unlimited, pat).match(name) }
