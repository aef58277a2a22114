package shell

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxXargs is how many commands one xargs runs.
const maxXargs = 10000

func xargsProgram(ctx context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "n:I:0rtP:d:L:", map[string]byte{"null": '0', "no-run-if-empty": 'r', "max-args": 'n', "replace": 'I', "delimiter": 'd'}, true)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	text, err := p.readAll(p.Stdin)
	if err != nil {
		return p.Fail(err)
	}
	items := shellWords(text)
	switch {
	case f.has('0'):
		items = strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	case f.has('d'):
		sep, _ := escape(f.value('d', "\n"), false)
		items = strings.Split(strings.TrimSuffix(text, sep), sep)
	case f.has('I') || f.has('L'):
		items = splitLines(text)
	}
	items = slices.DeleteFunc(items, func(s string) bool { return s == "" })
	command := f.args
	if len(command) == 0 {
		command = []string{"echo"}
	}
	n, _ := strconv.Atoi(f.value('n', f.value('L', "0")))
	if f.has('I') {
		n = 1
	}
	if n <= 0 {
		n = max(1, min(len(items), 4096))
	}
	if len(items) == 0 && !f.has('r') && !f.has('I') {
		return p.run(ctx, command, p.Env, nil)
	}
	status := 0
	for count := 0; len(items) > 0; count++ {
		if count >= maxXargs {
			return p.Failf(1, "too many commands")
		}
		batch := items[:min(n, len(items))]
		items = items[len(batch):]
		args := slices.Concat(command, batch)
		if mark := f.value('I', ""); mark != "" {
			args = slices.Clone(command)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], mark, strings.TrimSpace(batch[0]))
			}
		}
		if code := p.run(ctx, args, p.Env, nil); code != 0 {
			status = 123
			if code >= 126 {
				return code
			}
		}
		if p.step() != nil {
			return statusKilled
		}
	}
	return status
}

// shellWords cuts a text at white space, except in quotes.
func shellWords(text string) []string {
	var out []string
	var cur strings.Builder
	inWord, quote := false, rune(0)
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			cur.WriteRune(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '\\' && i < len(text):
			cur.WriteByte(text[i])
			i++
			inWord = true
		case c == ' ' || c == '\t' || c == '\n':
			if inWord {
				out = append(out, cur.String())
			}
			cur.Reset()
			inWord = false
		default:
			cur.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		out = append(out, cur.String())
	}
	return out
}
