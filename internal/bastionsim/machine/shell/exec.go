package shell

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func itoa(n int) string { return strconv.Itoa(n) }

func (sh *shell) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		if sh.stopped() {
			return
		}
		sh.stmt(st)
	}
}

func (sh *shell) stmt(st *syntax.Stmt) {
	leave, err := sh.deeper()
	defer leave()
	if err != nil || sh.noexec {
		return
	}
	sh.line = st.Pos().Line()
	switch {
	case st.Coprocess:
		sh.status = 1
		sh.complain(errors.New("coprocesses are not supported on this machine"))
	case st.Background || st.Disown:
		copied := *st
		copied.Background, copied.Disown = false, false
		sh.background(&copied)
	default:
		sh.foreground(st)
	}
}

func (sh *shell) foreground(st *syntax.Stmt) {
	defer sh.closeSubsts(sh.subs)
	if st.Negated {
		sh.noExit++
	}
	if restore, ok := sh.redirects(st); ok {
		if st.Cmd != nil {
			sh.command(st.Cmd)
		} else {
			sh.status = 0
		}
		restore()
	} else {
		sh.status = 1
	}
	if st.Negated {
		sh.noExit--
		sh.status = boolStatus(sh.status != 0)
		return
	}
	if b, ok := st.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.AndStmt || b.Op == syntax.OrStmt) {
		return
	}
	if sh.status != 0 && sh.noExit == 0 && sh.flow == onward {
		sh.runTrap("ERR")
		if sh.errexit {
			sh.flow = exiting
		}
	}
}

func boolStatus(ok bool) int {
	if ok {
		return 0
	}
	return 1
}

func (sh *shell) command(cmd syntax.Command) {
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		sh.simple(cmd)
	case *syntax.DeclClause:
		sh.fail(sh.declare(cmd))
	case *syntax.BinaryCmd:
		sh.binary(cmd)
	case *syntax.Block:
		sh.stmts(cmd.Stmts)
	case *syntax.Subshell:
		sh.subshell(cmd.Stmts)
	case *syntax.IfClause:
		sh.ifClause(cmd)
	case *syntax.WhileClause:
		sh.while(cmd)
	case *syntax.ForClause:
		sh.forClause(cmd)
	case *syntax.CaseClause:
		sh.fail(sh.caseClause(cmd))
	case *syntax.FuncDecl:
		sh.declareFunc(cmd)
	case *syntax.ArithmCmd:
		n, err := sh.arithm(cmd.X)
		sh.status = boolStatus(n != 0)
		sh.fail(err)
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			n, err := sh.arithm(x)
			sh.status = boolStatus(n != 0)
			sh.fail(err)
		}
	case *syntax.TestClause:
		ok, err := sh.testExpr(cmd.X)
		sh.status = boolStatus(ok)
		sh.fail(err)
	case *syntax.TimeClause:
		sh.time(cmd)
	default:
		sh.status = 1
		sh.complain(fmt.Errorf("%s is not supported on this machine", strings.TrimPrefix(fmt.Sprintf("%T", cmd), "*syntax.")))
	}
}

// fail tells an error of a command, if there is one.
func (sh *shell) fail(err error) {
	if err == nil {
		return
	}
	sh.status = 1
	var f *failure
	if errors.As(err, &f) {
		sh.status = f.code
		if f.exit && !sh.interactive {
			sh.flow = exiting
		}
	}
	sh.complain(err)
}

func (sh *shell) declareFunc(cmd *syntax.FuncDecl) {
	size := int64(cmd.End().Offset()-cmd.Pos().Offset()) * treeFactor
	if sh.r.grow(size) != nil {
		return
	}
	sh.held += size
	sh.funcs[cmd.Name.Value] = function{body: cmd.Body}
	sh.status = 0
}

func (sh *shell) binary(cmd *syntax.BinaryCmd) {
	switch cmd.Op {
	case syntax.AndStmt, syntax.OrStmt:
		sh.noExit++
		sh.stmt(cmd.X)
		sh.noExit--
		if !sh.stopped() && (sh.status == 0) == (cmd.Op == syntax.AndStmt) {
			sh.stmt(cmd.Y)
		}
	default:
		sh.pipeline(cmd)
	}
}

func (sh *shell) subshell(stmts []*syntax.Stmt) {
	c := sh.fork()
	c.stmts(stmts)
	c.flow = onward
	c.end()
	sh.status = c.status
}

// pipeline runs all commands but the last in goroutines of their own, and the last one here.
func (sh *shell) pipeline(cmd *syntax.BinaryCmd) {
	var stmts []*syntax.Stmt
	var both []bool // stderr goes with stdout
	for {
		stmts, both = append(stmts, cmd.Y), append(both, cmd.Op == syntax.PipeAll)
		next, ok := cmd.X.Cmd.(*syntax.BinaryCmd)
		if !ok || next.Op != syntax.Pipe && next.Op != syntax.PipeAll || len(cmd.X.Redirs) > 0 || cmd.X.Negated {
			stmts = append(stmts, cmd.X)
			break
		}
		cmd = next
	}
	slices.Reverse(stmts)
	slices.Reverse(both)
	shells := make([]*shell, len(stmts))
	for i := range stmts {
		shells[i] = sh.fork()
	}
	for i := range stmts[1:] {
		reader, writer := newPipe()
		shells[i].replace(1, writer)
		if both[i] {
			shells[i].replace(2, writer.dup())
		}
		shells[i+1].replace(0, reader)
	}
	done := make(chan struct{}, len(stmts))
	last := len(stmts) - 1
	for i, c := range shells[:last] {
		if err := sh.r.spawn(func() {
			c.runForked(stmts[i])
			done <- struct{}{}
		}); err != nil {
			c.status = 254
			sh.complain(err)
			c.end()
			done <- struct{}{}
		}
	}
	if sh.lastpipe {
		sh.lastPipe(shells[last], stmts[last])
	} else {
		shells[last].runForked(stmts[last])
	}
	for range last {
		<-done
	}
	sh.pipeStatus = nil
	for _, c := range shells {
		sh.pipeStatus = append(sh.pipeStatus, c.status)
		if c.status != 0 && sh.pipefail {
			sh.status = c.status
		}
	}
	if status := shells[last].status; status != 0 || !sh.pipefail || !slices.ContainsFunc(sh.pipeStatus, func(s int) bool { return s != 0 }) {
		sh.status = status
	}
}

// lastPipe runs the last command of a pipeline in this shell (shopt -s lastpipe).
func (sh *shell) lastPipe(c *shell, st *syntax.Stmt) {
	in := c.fds[0].dup()
	c.end()
	old := sh.fds[0]
	sh.fds[0] = in
	sh.stmt(st)
	in.close()
	sh.fds[0] = old
	c.status = sh.status
}

// runForked runs a statement in a subshell that is for this statement alone.
func (sh *shell) runForked(st *syntax.Stmt) {
	defer sh.end()
	defer sh.guarded()
	sh.stmt(st)
	sh.flow = onward
}

// sourceOf is a statement as text, for lists of jobs.
func (sh *shell) sourceOf(st *syntax.Stmt) string {
	if st.End().Offset()-st.Pos().Offset() > 200 {
		return "..."
	}
	var b strings.Builder
	if syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, st) != nil {
		return "..."
	}
	return b.String()
}

func (sh *shell) ifClause(cmd *syntax.IfClause) {
	for ; cmd != nil; cmd = cmd.Else {
		if len(cmd.Cond) > 0 {
			sh.noExit++
			sh.stmts(cmd.Cond)
			sh.noExit--
			if sh.stopped() {
				return
			}
			if sh.status != 0 {
				sh.status = 0
				continue
			}
		}
		sh.status = 0
		sh.stmts(cmd.Then)
		return
	}
}

// body runs what is in a loop, and says whether the loop ends.
func (sh *shell) body(stmts []*syntax.Stmt) bool {
	sh.loops++
	sh.stmts(stmts)
	sh.loops--
	if sh.flow == breaking || sh.flow == continuing {
		sh.flowCount--
		if sh.flowCount > 0 {
			return true
		}
		ends := sh.flow == breaking
		sh.flow = onward
		return ends
	}
	return sh.stopped()
}

func (sh *shell) while(cmd *syntax.WhileClause) {
	status := 0
	for !sh.stopped() {
		sh.noExit++
		sh.loops++
		sh.stmts(cmd.Cond)
		sh.loops--
		sh.noExit--
		if sh.flow == breaking || sh.flow == continuing {
			if sh.flowCount--; sh.flowCount > 0 {
				return
			}
			ends := sh.flow == breaking
			if sh.flow = onward; ends {
				break
			}
			continue
		}
		if sh.stopped() {
			return
		}
		if (sh.status == 0) == cmd.Until {
			break
		}
		ends := sh.body(cmd.Do)
		if status = sh.status; ends {
			break
		}
	}
	if sh.flow == onward {
		sh.status = status
	}
}

func (sh *shell) forClause(cmd *syntax.ForClause) {
	switch loop := cmd.Loop.(type) {
	case *syntax.WordIter:
		items := sh.params
		if loop.InPos.IsValid() {
			var err error
			if items, err = sh.fields(loop.Items); err != nil {
				sh.fail(err)
				return
			}
		}
		if cmd.Select {
			sh.selectLoop(loop.Name.Value, items, cmd.Do)
			return
		}
		sh.status = 0
		for _, item := range items {
			if err := sh.set(loop.Name.Value, item); err != nil {
				sh.fail(err)
				return
			}
			if sh.body(cmd.Do) {
				return
			}
		}
	case *syntax.CStyleLoop:
		sh.fail(sh.cLoop(loop, cmd.Do))
	}
}

func (sh *shell) cLoop(loop *syntax.CStyleLoop, do []*syntax.Stmt) error {
	eval := func(x syntax.ArithmExpr) (int64, error) {
		if x == nil {
			return 1, nil
		}
		return sh.arithm(x)
	}
	if _, err := eval(loop.Init); err != nil {
		return err
	}
	sh.status = 0
	for {
		if n, err := eval(loop.Cond); err != nil || n == 0 {
			return err
		}
		if sh.body(do) {
			return nil
		}
		if _, err := eval(loop.Post); err != nil {
			return err
		}
	}
}

func (sh *shell) selectLoop(name string, items []string, do []*syntax.Stmt) {
	menu := true
	for !sh.stopped() {
		for i, item := range items {
			if !menu {
				break
			}
			_, _ = fmt.Fprintf(sh.stream(2), "%d) %s\n", i+1, item)
		}
		prompt := sh.value("PS3")
		if prompt == "" {
			prompt = "#? "
		}
		_, _ = io.WriteString(sh.stream(2), prompt)
		line, err := sh.readLine(sh.stream(0), '\n', true, 0)
		if err != nil {
			sh.status = 1
			return
		}
		menu = line == ""
		n, _ := strconv.Atoi(strings.TrimSpace(line))
		choice := ""
		if n > 0 && n <= len(items) {
			choice = items[n-1]
		}
		sh.fail(errors.Join(sh.set("REPLY", line), sh.set(name, choice)))
		if !menu && sh.body(do) {
			return
		}
	}
}

func (sh *shell) caseClause(cmd *syntax.CaseClause) error {
	text, err := sh.literal(cmd.Word)
	if err != nil {
		return err
	}
	sh.status = 0
	through := false
	for _, item := range cmd.Items {
		matched := through
		for _, p := range item.Patterns {
			if matched {
				break
			}
			pat, err := sh.pattern(p)
			if err != nil {
				return err
			}
			if matched, err = sh.match(pat, text, sh.nocasematch); err != nil {
				return err
			}
		}
		if !matched {
			continue
		}
		sh.stmts(item.Stmts)
		switch item.Op {
		case syntax.Fallthrough:
			through = true
		case syntax.Resume:
			through = false
		default:
			return nil
		}
		if sh.stopped() {
			return nil
		}
	}
	return nil
}

func (sh *shell) time(cmd *syntax.TimeClause) {
	start := sh.s.o.Clock.Now()
	if cmd.Stmt != nil {
		sh.stmt(cmd.Stmt)
	}
	took := sh.s.o.Clock.Since(start)
	format := "\nreal\t%dm%.3fs\nuser\t0m0.000s\nsys\t0m0.000s\n"
	if cmd.PosixFormat {
		_, _ = fmt.Fprintf(sh.stream(2), "real %.2f\nuser 0.00\nsys 0.00\n", took.Seconds())
		return
	}
	_, _ = fmt.Fprintf(sh.stream(2), format, int(took.Minutes()), took.Seconds()-60*float64(int(took.Minutes())))
}
