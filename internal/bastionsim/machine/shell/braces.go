package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// braces does brace expansion, which multiplies words before anything else is looked at.
func (sh *shell) braces(w *syntax.Word) ([]*syntax.Word, error) {
	copied := &syntax.Word{Parts: slices.Clone(w.Parts)}
	if !syntax.SplitBraces(copied) {
		return []*syntax.Word{w}, nil
	}
	return sh.expandBraces(copied)
}

func (sh *shell) expandBraces(w *syntax.Word) ([]*syntax.Word, error) {
	leave, err := sh.deeper()
	defer leave()
	if err != nil {
		return nil, err
	}
	for i, part := range w.Parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			continue
		}
		elems := brace.Elems
		if brace.Sequence {
			if elems, err = sh.sequence(brace); err != nil {
				return nil, err
			}
		}
		var out []*syntax.Word
		for _, elem := range elems {
			parts := slices.Concat(w.Parts[:i:i], elem.Parts, w.Parts[i+1:])
			more, err := sh.expandBraces(&syntax.Word{Parts: parts})
			if err != nil {
				return nil, err
			}
			if out = append(out, more...); len(out) > sh.r.limits.Fields {
				return nil, sh.r.kill("fields")
			}
			if err := sh.step(1 + len(parts)/8); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return []*syntax.Word{w}, nil
}

// sequence is {x..y..step}.
func (sh *shell) sequence(brace *syntax.BraceExp) ([]*syntax.Word, error) {
	if len(brace.Elems) < 2 {
		return nil, failf("a sequence has no end")
	}
	first, last := brace.Elems[0].Lit(), brace.Elems[1].Lit()
	a, errA := strconv.ParseInt(first, 10, 63)
	b, errB := strconv.ParseInt(last, 10, 63)
	letters := errA != nil || errB != nil
	if letters {
		if len(first) != 1 || len(last) != 1 {
			return []*syntax.Word{litWord("{" + first + ".." + last + "}")}, nil
		}
		a, b = int64(first[0]), int64(last[0])
	}
	step := int64(1)
	if len(brace.Elems) > 2 {
		n, err := strconv.ParseInt(brace.Elems[2].Lit(), 10, 32)
		if err == nil && n != 0 {
			step = max(n, -n)
		}
	}
	if uint64(max(a, b)-min(a, b))/uint64(step) > uint64(sh.r.limits.Fields) {
		return nil, sh.r.kill("fields")
	}
	width := 0
	if padded(first) || padded(last) {
		width = max(len(first), len(last))
	}
	if a > b {
		step = -step
	}
	var out []*syntax.Word
	for n := a; step > 0 && n <= b || step < 0 && n >= b; n += step {
		text := strconv.FormatInt(n, 10)
		if letters {
			text = string(rune(n))
		} else if width > 0 {
			text = zeroPad(n, width)
		}
		out = append(out, litWord(text))
	}
	return out, nil
}

func padded(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return len(text) > 1 && text[0] == '0'
}

func zeroPad(n int64, width int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	text := strconv.FormatInt(n, 10)
	return sign + strings.Repeat("0", max(0, min(width, 32)-len(sign)-len(text))) + text
}

func litWord(text string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}}
}
