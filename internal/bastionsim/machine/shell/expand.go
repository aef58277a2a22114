package shell

import (
	"context"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// piece is a part of a field. It may be a pattern if it is not quoted.
type piece struct {
	text   string
	quoted bool
}

// expander collects the fields of a word. Without split, it collects one field.
type expander struct {
	sh     *shell
	split  bool
	fields [][]piece
	cur    []piece
	open   bool // cur is a field even if it is empty
	size   int
}

func (e *expander) add(text string, quoted bool) {
	if e.size += len(text) + 16; e.size > 2*maxString {
		e.sh.kill("string")
	} else if text != "" || quoted {
		e.cur, e.open = append(e.cur, piece{text, quoted}), true
	}
}

func (e *expander) next() {
	if e.open {
		if e.fields = append(e.fields, e.cur); len(e.fields) > maxFields {
			e.sh.kill("fields")
		}
	}
	e.cur, e.open = nil, false
}

// result adds the result of an expansion. If it is not quoted, separators split it into fields.
func (e *expander) result(text string, quoted bool) {
	if quoted || !e.split {
		e.add(text, quoted)
		return
	}
	ifs := e.sh.value("IFS")
	for text != "" && e.sh.ok() {
		field, separator, rest := cutField(text, ifs)
		if e.add(field, false); separator != "" {
			e.open = e.open || strings.Trim(separator, " \t\n") != "" // a field between two separators may be empty
			e.next()
		}
		text = rest
	}
}

func joinPieces(field []piece) string {
	if len(field) == 1 {
		return field[0].text
	}
	var b strings.Builder
	for _, p := range field {
		b.WriteString(p.text)
	}
	return b.String()
}

// fields expands words to the arguments of a command: braces, tildes, parameters, commands, splitting, globbing.
func (sh *shell) fields(words []*syntax.Word) []string {
	var out []string
	size := 0
	for _, w := range words {
		if sh.step(1) != nil || !sh.ok() {
			return nil
		}
		for w := range sh.braces(w) {
			e := &expander{sh: sh, split: true}
			sh.parts(e, w.Parts, false, true)
			e.next()
			for _, field := range e.fields {
				for _, name := range sh.globField(field) {
					out, size = append(out, name), size+len(name)+16
				}
			}
			if size > 2*maxString {
				sh.kill("string")
			} else if len(out) > maxFields {
				sh.kill("fields")
			}
			if !sh.ok() {
				return nil
			}
		}
	}
	return out
}

// maxBraces is how many braces a word may have: the work to find them, and for each word that it expands to, grows with
// their square.
const maxBraces = 64

// braces expands the braces of a word. It returns the words one by one, and package expand limits their number.
func (sh *shell) braces(w *syntax.Word) iter.Seq[*syntax.Word] {
	return func(yield func(*syntax.Word) bool) {
		n, expands := 0, false
		for _, part := range w.Parts {
			if lit, ok := part.(*syntax.Lit); ok {
				n += strings.Count(lit.Value, "{")
				expands = expands || strings.Contains(lit.Value, ",") || strings.Contains(lit.Value, "..")
			}
		}
		if n == 0 || !expands {
			yield(w)
			return
		}
		if n > maxBraces {
			sh.kill("fields")
			return
		}
		split := &syntax.Word{Parts: slices.Clone(w.Parts)}
		if !syntax.SplitBraces(split) {
			yield(w)
			return
		}
		for w, err := range expand.BracesSeq(nil, split) {
			if err != nil {
				sh.kill("fields")
			}
			if sh.step(1+n) != nil || !sh.ok() || !yield(w) {
				return
			}
		}
	}
}

// expanded expands a word to one field, without splitting and globbing.
func (sh *shell) expanded(w *syntax.Word) []piece {
	if w == nil {
		return nil
	}
	e := &expander{sh: sh}
	sh.parts(e, w.Parts, false, true)
	return e.cur
}

func (sh *shell) literal(w *syntax.Word) string { return joinPieces(sh.expanded(w)) }

// pattern expands a word to a pattern, in which quoted text is literal.
func (sh *shell) pattern(w *syntax.Word) string { return patternOf(sh.expanded(w)) }

// parts expands parts of a word. first means that the list begins the word, so that a tilde at its beginning is
// expanded.
func (sh *shell) parts(e *expander, list []syntax.WordPart, quoted, first bool) {
	defer sh.nest()()
	for i, part := range list {
		if sh.step(1) != nil || !sh.ok() {
			return
		}
		if lit, ok := part.(*syntax.Lit); ok && !quoted && first && i == 0 {
			name, _, slash := strings.Cut(lit.Value, "/")
			if home, ok := sh.tilde(name); ok && (slash || len(list) == 1) {
				e.add(home, true)
				part = &syntax.Lit{Value: lit.Value[len(name):]}
			}
		}
		sh.part(e, part, quoted)
	}
}

func (sh *shell) part(e *expander, part syntax.WordPart, quoted bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		if quoted {
			e.add(inQuotes.Replace(part.Value), true)
		} else {
			e.lit(part.Value)
		}
	case *syntax.SglQuoted:
		text := part.Value
		if part.Dollar {
			text = ansi(text)
		}
		e.add(text, true)
	case *syntax.DblQuoted:
		if sh.parts(e, part.Parts, true, false); len(part.Parts) == 0 {
			e.add("", true)
		}
	case *syntax.ParamExp:
		sh.param(e, part, quoted)
	case *syntax.CmdSubst:
		e.result(sh.substitute(part), quoted)
	case *syntax.ArithmExp:
		e.result(strconv.FormatInt(sh.arithm(part.X), 10), quoted)
	case *syntax.ProcSubst:
		e.add(sh.processSubst(part), true)
	case *syntax.ExtGlob:
		e.add(part.Op.String()+part.Pattern.Value+")", quoted)
	default:
		sh.failf("%T cannot be expanded", part)
	}
}

// lit adds text of the script, in which backslashes quote.
func (e *expander) lit(text string) {
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			e.add(text, false)
			return
		}
		e.add(text[:i], false)
		_, size := utf8.DecodeRuneInString(text[i+1:])
		if next := text[i+1 : i+1+size]; next != "\n" {
			e.add(next, true)
		}
		text = text[i+1+size:]
	}
}

// In a here-document and in double quotes, a backslash quotes these characters, and is removed together with a newline.
var (
	inDocument = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", "\\\n", "")
	inQuotes   = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", "\\\n", "", `\"`, `"`)
)

// tilde returns the home directory of ~name, from the machine's /etc/passwd.
func (sh *shell) tilde(name string) (string, bool) {
	switch name, ok := strings.CutPrefix(name, "~"); {
	case !ok:
		return "", false
	case name == "":
		if home := sh.get("HOME"); home.set {
			return home.str, true
		}
		return sh.user.Home, true
	default:
		u, ok := LookupUser(sh.s.o.FS, name)
		return u.Home, ok
	}
}

// capture runs statements in a subshell. It returns the output of the statements and their jobs, and the status.
func (sh *shell) capture(run func(c *shell)) (string, int) {
	var mu sync.Mutex
	var out []byte
	closed := make(chan struct{}) // closed when nothing can write to out any more
	c := sh.fork()
	c.replace(1, newFile(nil, func(_ context.Context, p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(out)+len(p) > maxString {
			return 0, sh.r.kill("string")
		}
		out = append(out, p...)
		return len(p), nil
	}, func() { close(closed) }))
	c.forked(func() { run(c) })
	select {
	case <-closed:
	case <-sh.ctx.Done():
	}
	if sh.step(1) != nil {
		return "", c.status
	}
	return string(out), c.status
}

func isInput(redirs []*syntax.Redirect) bool { return len(redirs) == 1 && redirs[0].Op == syntax.RdrIn }

func (sh *shell) substitute(cs *syntax.CmdSubst) string {
	text, status := sh.capture(func(c *shell) {
		c.errexit = false
		if len(cs.Stmts) == 1 && cs.Stmts[0].Cmd == nil && isInput(cs.Stmts[0].Redirs) { // $(<file)
			if c.redirect(cs.Stmts[0].Redirs[0], func(int) {}); c.ok() {
				_, err := io.Copy(c.stream(1), c.stream(0))
				c.fail(err)
			}
			c.failed()
			return
		}
		c.stmts(cs.Stmts)
	})
	sh.status, sh.substituted = status, status
	return strings.TrimRight(strings.ReplaceAll(text, "\x00", ""), "\n")
}

// processSubst runs the command of <(command) to its end. A file with the output takes the place of the pipe.
func (sh *shell) processSubst(ps *syntax.ProcSubst) string {
	fd := maxFD - 1 - sh.subs
	switch {
	case ps.Op != syntax.CmdIn:
		sh.failf("process substitution %s...) is not supported on this machine", ps.Op)
		return ""
	case fd < 10 || sh.fds[fd] != nil:
		sh.failf("too many process substitutions at a time")
		return ""
	}
	text, _ := sh.capture(func(c *shell) { c.stmts(ps.Stmts) })
	sh.fds[fd] = textFile(text)
	sh.subs++
	return "/dev/fd/" + strconv.Itoa(fd)
}

// closeSubsts closes the files of process substitutions until only the given number is left.
func (sh *shell) closeSubsts(before int) {
	for fd := maxFD - before - 1; sh.subs > before; fd-- {
		sh.replace(fd, nil)
		sh.subs--
	}
}
