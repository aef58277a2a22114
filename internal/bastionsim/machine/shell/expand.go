package shell

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// piece is a part of a field. What is not quoted may be a pattern.
type piece struct {
	text   string
	quoted bool
}

// expander collects the fields of words. Without split there is one field, and nothing ends it.
type expander struct {
	sh     *shell
	split  bool
	fields [][]piece
	cur    []piece
	open   bool // cur is a field even if it is empty
	size   int
}

func (e *expander) add(text string, quoted bool) error {
	if e.size += len(text) + 16; e.size > 2*e.sh.r.limits.String {
		return e.sh.r.kill("string")
	}
	if text != "" || quoted {
		e.cur, e.open = append(e.cur, piece{text, quoted}), true
	}
	return nil
}

// next ends a field.
func (e *expander) next() error {
	if e.open {
		e.fields = append(e.fields, e.cur)
		if len(e.fields) > e.sh.r.limits.Fields {
			return e.sh.r.kill("fields")
		}
	}
	e.cur, e.open = nil, false
	return nil
}

// addSplit adds the result of an expansion without quotes, which separators cut into fields.
func (e *expander) addSplit(text string) error {
	if !e.split {
		return e.add(text, false)
	}
	ifs := e.sh.value("IFS")
	if ifs == "" {
		return e.add(text, false)
	}
	for text != "" {
		i := strings.IndexAny(text, ifs)
		if i < 0 {
			return e.add(text, false)
		}
		if err := e.add(text[:i], false); err != nil {
			return err
		}
		white := strings.IndexByte(" \t\n", text[i]) >= 0
		if !white && !e.open { // an empty field between two separators
			e.open = true
		}
		if err := e.next(); err != nil {
			return err
		}
		text = text[i+1:]
		for white && text != "" && strings.IndexByte(" \t\n", text[0]) >= 0 && strings.IndexByte(ifs, text[0]) >= 0 {
			text = text[1:]
		}
	}
	return nil
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

// fields expands words as a command's arguments: braces, tildes, parameters, commands, splitting, globbing.
func (sh *shell) fields(words []*syntax.Word) ([]string, error) {
	var out []string
	size := 0
	for _, w := range words {
		if err := sh.step(1); err != nil {
			return nil, err
		}
		if text, ok := plainWord(w); ok {
			out, size = append(out, text), size+len(text)
			continue
		}
		expanded, err := sh.braces(w)
		if err != nil {
			return nil, err
		}
		for _, w := range expanded {
			e := &expander{sh: sh, split: true}
			if err := sh.parts(e, w.Parts, false, true); err != nil {
				return nil, err
			}
			if err := e.next(); err != nil {
				return nil, err
			}
			for _, field := range e.fields {
				names, err := sh.globField(field)
				if err != nil {
					return nil, err
				}
				for _, n := range names {
					size += len(n) + 16
				}
				out = append(out, names...)
				if size > 2*sh.r.limits.String {
					return nil, sh.r.kill("string")
				}
			}
		}
		if len(out) > sh.r.limits.Fields {
			return nil, sh.r.kill("fields")
		}
	}
	return out, nil
}

// plainWord is a word without anything to expand, which most are.
func plainWord(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\*?[{~") {
		return "", false
	}
	return lit.Value, true
}

// literal expands a word to one string, without splitting and globbing.
func (sh *shell) literal(w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	e := &expander{sh: sh}
	if err := sh.parts(e, w.Parts, false, true); err != nil {
		return "", err
	}
	return joinPieces(e.cur), nil
}

// pattern expands a word to a pattern, in which what was quoted stands for itself.
func (sh *shell) pattern(w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	e := &expander{sh: sh}
	if err := sh.parts(e, w.Parts, false, true); err != nil {
		return "", err
	}
	return patternOf(e.cur), nil
}

func patternOf(field []piece) string {
	var b strings.Builder
	for _, p := range field {
		if !p.quoted {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(quotePattern(p.text))
	}
	return b.String()
}

func quotePattern(text string) string {
	if !strings.ContainsAny(text, `\*?[]()|!+@`) {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`\*?[]()|!+@`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// quotedPart expands a part of a here-document, which is as if it were in double quotes.
func (sh *shell) quotedPart(part syntax.WordPart) (string, error) {
	e := &expander{sh: sh}
	if err := sh.parts(e, []syntax.WordPart{part}, true, false); err != nil {
		return "", err
	}
	return joinPieces(e.cur), nil
}

// parts expands parts of a word. first says that the first one begins the word, so that a tilde there counts.
func (sh *shell) parts(e *expander, list []syntax.WordPart, quoted, first bool) error {
	leave, err := sh.deeper()
	defer leave()
	if err != nil {
		return err
	}
	for i, part := range list {
		if err := sh.step(1); err != nil {
			return err
		}
		if err := sh.part(e, part, quoted, first && i == 0); err != nil {
			return err
		}
	}
	return nil
}

func (sh *shell) part(e *expander, part syntax.WordPart, quoted, first bool) error {
	switch part := part.(type) {
	case *syntax.Lit:
		return sh.lit(e, part.Value, quoted, first)
	case *syntax.SglQuoted:
		text := part.Value
		if part.Dollar {
			text = ansi(text)
		}
		return e.add(text, true)
	case *syntax.DblQuoted:
		if err := sh.parts(e, part.Parts, true, false); err != nil {
			return err
		}
		if len(part.Parts) == 0 {
			return e.add("", true)
		}
		return nil
	case *syntax.ParamExp:
		return sh.param(e, part, quoted)
	case *syntax.CmdSubst:
		text, err := sh.substitute(part)
		if err != nil {
			return err
		}
		return e.result(text, quoted)
	case *syntax.ArithmExp:
		n, err := sh.arithm(part.X)
		if err != nil {
			return err
		}
		return e.result(strconv.FormatInt(n, 10), quoted)
	case *syntax.ProcSubst:
		name, err := sh.processSubst(part)
		if err != nil {
			return err
		}
		return e.add(name, true)
	case *syntax.ExtGlob:
		return e.add(part.Op.String()+part.Pattern.Value+")", quoted)
	case *syntax.BraceExp:
		return failf("a brace expansion cannot be used here")
	default:
		return failf("%T cannot be expanded", part)
	}
}

func (e *expander) result(text string, quoted bool) error {
	if quoted {
		return e.add(text, true)
	}
	return e.addSplit(text)
}

// lit is text of the script itself, with its backslashes.
func (sh *shell) lit(e *expander, text string, quoted, first bool) error {
	if quoted {
		return e.add(unescape(text, "\\$`\"\n"), true)
	}
	if first && strings.HasPrefix(text, "~") {
		name, rest, _ := strings.Cut(text[1:], "/")
		if home, ok := sh.tilde(name); ok {
			if err := e.add(home, true); err != nil {
				return err
			}
			text = strings.TrimPrefix(text[1:], name)
			_ = rest
		}
	}
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return e.add(text, false)
		}
		if err := e.add(text[:i], false); err != nil {
			return err
		}
		_, size := utf8.DecodeRuneInString(text[i+1:])
		if next := text[i+1 : i+1+size]; next != "\n" {
			if err := e.add(next, true); err != nil {
				return err
			}
		}
		text = text[i+1+size:]
	}
	return nil
}

// unescape takes out backslashes before the characters given; a line's end goes with its backslash.
func unescape(text, special string) string {
	if !strings.Contains(text, "\\") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(special, text[i+1]) >= 0 {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// tilde is a home directory, by the machine's own /etc/passwd.
func (sh *shell) tilde(name string) (string, bool) {
	switch name {
	case "":
		if home := sh.get("HOME"); home.set {
			return home.str, true
		}
		return sh.user.Home, true
	case "+":
		return sh.dir, true
	case "-":
		old := sh.get("OLDPWD")
		return old.str, old.set
	}
	if u, ok := sh.s.lookupUser(name); ok {
		return u.Home, true
	}
	return "", false
}

// substitute is the output of a command substitution.
func (sh *shell) substitute(cs *syntax.CmdSubst) (string, error) {
	out := &sink{r: sh.r}
	c := sh.fork()
	defer func() { sh.status = c.status }()
	c.replace(1, out.file())
	c.errexit = false
	if redir := onlyInput(cs.Stmts); redir != nil {
		c.catFile(redir)
	} else {
		c.stmts(cs.Stmts)
	}
	c.flow = onward
	c.end()
	sh.substited = c.status
	if err := sh.step(1); err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(out.data), "\x00", "")
	return strings.TrimRight(text, "\n"), nil
}

// onlyInput is the redirection of $(<file).
func onlyInput(stmts []*syntax.Stmt) *syntax.Redirect {
	if len(stmts) != 1 || stmts[0].Cmd != nil || len(stmts[0].Redirs) != 1 || stmts[0].Redirs[0].Op != syntax.RdrIn {
		return nil
	}
	return stmts[0].Redirs[0]
}

func (sh *shell) catFile(rd *syntax.Redirect) {
	if err := sh.redirect(rd, func(int) {}); err != nil {
		sh.status = 1
		sh.complain(err)
		return
	}
	_, err := io.Copy(sh.stream(1), sh.stream(0))
	sh.fail(err)
}

// processSubst runs the command of <(command) to its end, into a file of this session that takes the pipe's place.
func (sh *shell) processSubst(ps *syntax.ProcSubst) (string, error) {
	if ps.Op != syntax.CmdIn {
		return "", failf("process substitution %s...) is not supported on this machine", ps.Op)
	}
	out := &sink{r: sh.r}
	c := sh.fork()
	c.replace(1, out.file())
	c.stmts(ps.Stmts)
	c.flow = onward
	c.end()
	fd := maxFD - 1 - sh.subs
	if fd < 10 || sh.fds[fd] != nil {
		return "", failf("too many process substitutions at a time")
	}
	sh.fds[fd] = textFile(string(out.data))
	sh.subs++
	return "/dev/fd/" + itoa(fd), sh.step(1)
}

// closeSubsts ends the files of process substitutions that were made since there were before.
func (sh *shell) closeSubsts(before int) {
	for fd := maxFD - before - 1; sh.subs > before; fd-- {
		sh.replace(fd, nil)
		sh.subs--
	}
}
