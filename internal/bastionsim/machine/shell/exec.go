package shell

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (sh *shell) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		if sh.stopped() {
			return
		}
		sh.stmt(st)
	}
}

func (sh *shell) stmt(st *syntax.Stmt) {
	defer sh.nest()()
	if sh.failed() || sh.noexec {
		return
	}
	sh.line = st.Pos().Line()
	if st.Background {
		copied := *st
		copied.Background = false
		sh.background(&copied)
	} else {
		sh.foreground(st)
	}
}

func (sh *shell) foreground(st *syntax.Stmt) {
	defer sh.closeSubsts(sh.subs)
	if st.Negated {
		sh.noExit++
	}
	if restore := sh.redirects(st); !sh.failed() {
		sh.command(st.Cmd)
		restore()
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
	case nil:
		sh.status = 0
	case *syntax.CallExpr:
		sh.simple(cmd)
	case *syntax.DeclClause:
		sh.declClause(cmd)
	case *syntax.BinaryCmd:
		sh.binary(cmd)
	case *syntax.Block:
		sh.stmts(cmd.Stmts)
	case *syntax.Subshell:
		c := sh.fork()
		c.forked(func() { c.stmts(cmd.Stmts) })
		sh.status = c.status
	case *syntax.IfClause:
		sh.ifClause(cmd)
	case *syntax.WhileClause:
		sh.while(cmd)
	case *syntax.ForClause:
		sh.forClause(cmd)
	case *syntax.CaseClause:
		sh.caseClause(cmd)
	case *syntax.FuncDecl:
		if cmd.Name == nil { // the parser reads functions of zsh, too
			sh.failf("syntax error: a function has no name")
		} else if sh.hold(int64(cmd.End().Offset()-cmd.Pos().Offset()) * treeFactor); sh.ok() {
			sh.funcs[cmd.Name.Value], sh.status = cmd.Body, 0
		}
	case *syntax.ArithmCmd:
		sh.status = boolStatus(sh.arithm(cmd.X) != 0)
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			sh.status = boolStatus(sh.arithm(x) != 0)
		}
	case *syntax.TestClause:
		sh.status = boolStatus(sh.testExpr(cmd.X))
	default:
		sh.failf("%s is not supported on this machine", strings.TrimPrefix(fmt.Sprintf("%T", cmd), "*syntax."))
	}
	sh.failed()
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

// pipeline runs the left side in a new goroutine, and the right side in this one. The left side may be a pipeline.
func (sh *shell) pipeline(cmd *syntax.BinaryCmd) {
	reader, writer := newPipe()
	left, right := sh.fork(), sh.fork()
	right.replace(0, reader)
	if left.replace(1, writer); cmd.Op == syntax.PipeAll {
		left.replace(2, writer.dup())
	}
	done := make(chan struct{})
	if err := sh.r.spawn(func() {
		defer close(done)
		left.forked(func() { left.stmt(cmd.X) })
	}); err != nil {
		left.status = sh.refuse(254, "%v", err)
		left.end()
		close(done)
	}
	right.forked(func() { right.stmt(cmd.Y) })
	<-done
	statuses := []int{left.status}
	if inner, ok := cmd.X.Cmd.(*syntax.BinaryCmd); ok && inner.Op != syntax.AndStmt && inner.Op != syntax.OrStmt {
		statuses = left.pipeStatus
	}
	sh.pipeStatus = append(slices.Clip(statuses), right.status)
	if sh.status = right.status; sh.status == 0 && sh.pipefail {
		sh.status = left.status
	}
}

func (sh *shell) forked(body func()) {
	defer sh.end()
	defer sh.guarded()
	body()
	sh.flow = onward
}

func (sh *shell) sourceOf(node syntax.Node) string {
	var b strings.Builder
	length := node.End().Offset() - node.Pos().Offset()
	if length > 200 || syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, node) != nil {
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

// loop runs the statements of a loop, and reports whether the loop ends.
func (sh *shell) loop(stmts []*syntax.Stmt) bool {
	sh.loops++
	sh.stmts(stmts)
	sh.loops--
	if sh.flow != breaking && sh.flow != continuing {
		return sh.stopped()
	}
	if sh.flowCount--; sh.flowCount > 0 {
		return true
	}
	ends := sh.flow == breaking
	sh.flow = onward
	return ends
}

func (sh *shell) while(cmd *syntax.WhileClause) {
	status := 0
	for {
		sh.noExit++
		ends := sh.loop(cmd.Cond)
		sh.noExit--
		if ends || (sh.status == 0) == cmd.Until {
			break
		}
		ends = sh.loop(cmd.Do)
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
			items = sh.fields(loop.Items)
		}
		if sh.failed() {
			return
		}
		if sh.status = 0; cmd.Select {
			sh.failf("select is not supported on this machine")
		}
		for _, item := range items {
			if sh.set(loop.Name.Value, item); sh.failed() || sh.loop(cmd.Do) {
				return
			}
		}
	case *syntax.CStyleLoop:
		sh.arithm(loop.Init)
		sh.status = 0
		for !sh.stopped() && (loop.Cond == nil || sh.arithm(loop.Cond) != 0) && sh.ok() && !sh.loop(cmd.Do) {
			sh.arithm(loop.Post)
		}
	}
}

func (sh *shell) caseClause(cmd *syntax.CaseClause) {
	text := sh.literal(cmd.Word)
	sh.status = 0
	matches := func(p *syntax.Word) bool { return sh.ok() && sh.match(sh.pattern(p), text, false) }
	through := false
	for _, item := range cmd.Items {
		if !through && !slices.ContainsFunc(item.Patterns, matches) {
			continue
		}
		if !sh.ok() {
			return
		}
		sh.stmts(item.Stmts)
		if through = item.Op == syntax.Fallthrough; !through && item.Op != syntax.Resume || sh.stopped() {
			return
		}
	}
}
