package shell

import (
	"errors"
	"fmt"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

func (p *proc) stmts(list []*syntax.Stmt) error {
	for _, st := range list {
		if err := p.stmt(st); err != nil {
			return err
		}
	}
	return nil
}

func (p *proc) stmt(st *syntax.Stmt) error {
	if err := p.b().step(); err != nil {
		return err
	}
	if p.opt.noexec {
		return nil
	}
	if st.Background || st.Coprocess {
		return p.background(st)
	}
	err := p.redirected(st)
	if err = p.soften(err); err != nil {
		return err
	}
	if st.Negated {
		p.status = b2i(p.status == 0)
		return nil
	}
	return p.errexit(st)
}

// soften turns an error of one command into its status; what ends more than the command stays.
func (p *proc) soften(err error) error {
	var c *complaint
	var f *fatal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		p.errf("%s: %v", p.name, f.error)
		p.status = 1
		return &exiting{}
	case errors.As(err, &c):
		p.errf("%s: %s", p.name, c.text)
		p.status = max(p.status, 1)
		return nil
	}
	return err
}

func (p *proc) errexit(st *syntax.Stmt) error {
	if p.status == 0 || p.quiet > 0 {
		return nil
	}
	switch cmd := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt {
			return nil
		}
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.Block:
		return nil
	}
	if src := p.traps["ERR"]; src != "" {
		status := p.status
		delete(p.traps, "ERR")
		err := p.eval(src, "trap")
		p.traps["ERR"], p.status = src, status
		if err != nil {
			return err
		}
	}
	if p.opt.errexit {
		return &exiting{}
	}
	return nil
}

func (p *proc) background(st *syntax.Stmt) error {
	plain := *st
	plain.Background, plain.Coprocess = false, false
	j, pid, err := p.spawn(func(c *proc) error {
		c.fds[0] = stream{}
		return c.stmt(&plain)
	})
	if err != nil {
		return err
	}
	if p.jobs == nil {
		p.jobs = map[int]*job{}
	}
	// What is over and was not waited for is forgotten.
	for pid, old := range p.jobs {
		select {
		case <-old.done:
			if len(p.jobs) > 32 {
				delete(p.jobs, pid)
			}
		default:
		}
	}
	p.jobs[pid], p.lastJob, p.status = j, pid, 0
	return nil
}

func (p *proc) redirected(st *syntax.Stmt) error {
	if len(st.Redirs) == 0 {
		return p.command(st.Cmd)
	}
	old := p.fds
	closers, err := p.redirect(st.Redirs)
	keep := false
	if err == nil {
		if call, ok := st.Cmd.(*syntax.CallExpr); ok && isExecAlone(call) {
			// "exec >file" changes the shell itself; what it opened stays open until the shell ends.
			keep = true
			p.status = 0
			p.s.keep = append(p.s.keep, closers...)
		} else {
			err = p.command(st.Cmd)
		}
	} else {
		p.status = 1
	}
	if keep {
		return err
	}
	p.fds = old
	for _, c := range closers {
		c()
	}
	return err
}

func isExecAlone(call *syntax.CallExpr) bool {
	return len(call.Args) == 1 && call.Args[0].Lit() == "exec"
}

func (p *proc) command(cmd syntax.Command) error {
	switch cmd := cmd.(type) {
	case nil:
		p.status = 0
		return nil
	case *syntax.CallExpr:
		return p.call(cmd)
	case *syntax.Block:
		return p.stmts(cmd.Stmts)
	case *syntax.Subshell:
		return p.subshell(cmd.Stmts)
	case *syntax.BinaryCmd:
		return p.binaryCmd(cmd)
	case *syntax.IfClause:
		return p.ifClause(cmd)
	case *syntax.WhileClause:
		return p.while(cmd)
	case *syntax.ForClause:
		return p.forClause(cmd)
	case *syntax.CaseClause:
		return p.caseClause(cmd)
	case *syntax.FuncDecl:
		if _, ok := p.funcs[cmd.Name.Value]; !ok && len(p.funcs) >= 1024 {
			return p.b().fail(ErrMemory)
		}
		p.funcs[cmd.Name.Value] = function{cmd.Body}
		p.status = 0
		return nil
	case *syntax.ArithmCmd:
		n, err := p.arith(cmd.X)
		p.status = b2i(n == 0 || err != nil)
		return err
	case *syntax.LetClause:
		return p.let(cmd)
	case *syntax.TestClause:
		ok, err := p.testExpr(cmd.X)
		p.status = b2i(!ok || err != nil)
		return err
	case *syntax.DeclClause:
		return p.declare(cmd)
	case *syntax.TimeClause:
		return p.time(cmd)
	}
	return p.complain("this kind of command does not exist on this machine")
}

func (p *proc) let(cmd *syntax.LetClause) error {
	for _, x := range cmd.Exprs {
		n, err := p.arith(x)
		if p.status = b2i(n == 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *proc) time(cmd *syntax.TimeClause) error {
	start := p.s.cfg.Clock.Now()
	var err error
	if cmd.Stmt != nil {
		err = p.stmt(cmd.Stmt)
	}
	took := p.s.cfg.Clock.Since(start)
	fmt.Fprintf(p.stderr(), "\nreal\t%dm%.3fs\nuser\t0m0.000s\nsys\t0m0.000s\n", int(took.Minutes()), (took % time.Minute).Seconds())
	return err
}

func (p *proc) subshell(stmts []*syntax.Stmt) error {
	child, err := p.fork()
	if err != nil {
		return err
	}
	defer child.end()
	child.finish(child.stmts(stmts))
	child.trapExit()
	p.status = child.status
	return p.b().err()
}

func (p *proc) binaryCmd(cmd *syntax.BinaryCmd) error {
	if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
		return p.pipeline(cmd)
	}
	p.quiet++
	err := p.stmt(cmd.X)
	p.quiet--
	if err != nil || (p.status == 0) != (cmd.Op == syntax.AndStmt) {
		return err
	}
	return p.stmt(cmd.Y)
}

func (p *proc) pipeline(cmd *syntax.BinaryCmd) error {
	between := newPipe(p.b())
	left, _, err := p.spawn(func(c *proc) error {
		defer between.closeWrite()
		c.fds[1] = stream{w: between}
		if cmd.Op == syntax.PipeAll {
			c.fds[2] = stream{w: between}
		}
		return c.stmt(cmd.X)
	})
	if err != nil {
		return err
	}
	right, err := p.fork()
	if err == nil {
		right.fds[0] = stream{r: between}
		right.finish(right.stmt(cmd.Y))
		right.trapExit()
		p.status = right.status
		right.end()
	}
	between.closeRead()
	if err := p.wait(left); err != nil {
		return err
	}
	if p.opt.pipefail && p.status == 0 {
		p.status = left.status
	}
	return err
}

func (p *proc) condition(list []*syntax.Stmt) (bool, error) {
	p.quiet++
	defer func() { p.quiet-- }()
	p.status = 0
	err := p.stmts(list)
	return p.status == 0, err
}

func (p *proc) ifClause(cmd *syntax.IfClause) error {
	for ; cmd != nil; cmd = cmd.Else {
		ok := len(cmd.Cond) == 0 // else
		if !ok {
			var err error
			if ok, err = p.condition(cmd.Cond); err != nil {
				return err
			}
		}
		if ok {
			return p.stmts(cmd.Then)
		}
	}
	p.status = 0
	return nil
}

func (p *proc) while(cmd *syntax.WhileClause) error {
	status := 0
	for {
		ok, err := p.condition(cmd.Cond)
		if err != nil {
			return err
		}
		if ok == cmd.Until {
			p.status = status
			return nil
		}
		stop, err := p.body(cmd.Do)
		if status = p.status; stop || err != nil {
			return err
		}
	}
}

// body runs a loop's statements once; stop says that the loop is over.
func (p *proc) body(list []*syntax.Stmt) (stop bool, err error) {
	if err := p.b().step(); err != nil {
		return true, err
	}
	p.loops++
	err = p.stmts(list)
	p.loops--
	var brk *breaking
	var cont *resuming
	switch {
	case errors.As(err, &brk):
		if brk.n > 1 {
			return true, &breaking{brk.n - 1}
		}
		return true, nil
	case errors.As(err, &cont):
		if cont.n > 1 {
			return true, &resuming{cont.n - 1}
		}
		return false, nil
	}
	return err != nil, err
}

func (p *proc) forClause(cmd *syntax.ForClause) error {
	if cmd.Select {
		return p.complain("select does not exist on this machine")
	}
	p.status = 0
	switch loop := cmd.Loop.(type) {
	case *syntax.WordIter:
		items := p.params
		if loop.InPos.IsValid() {
			var err error
			if items, err = p.fieldsOf(loop.Items...); err != nil {
				return err
			}
		}
		for _, item := range items {
			if err := p.set(loop.Name.Value, item); err != nil {
				return err
			}
			if stop, err := p.body(cmd.Do); stop || err != nil {
				return err
			}
		}
	case *syntax.CStyleLoop:
		if _, err := p.arith(loop.Init); err != nil {
			return err
		}
		for {
			if loop.Cond != nil {
				if n, err := p.arith(loop.Cond); n == 0 || err != nil {
					return err
				}
			}
			if stop, err := p.body(cmd.Do); stop || err != nil {
				return err
			}
			if _, err := p.arith(loop.Post); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *proc) caseClause(cmd *syntax.CaseClause) error {
	word, err := p.literal(cmd.Word)
	if err != nil {
		return err
	}
	p.status = 0
	through := false
	for _, item := range cmd.Items {
		hit := through
		for _, w := range item.Patterns {
			if hit {
				break
			}
			pat, err := p.patternOf(w)
			if err != nil {
				return err
			}
			hit = pat.match(word)
		}
		if !hit {
			continue
		}
		if err := p.stmts(item.Stmts); err != nil || item.Op == syntax.Break {
			return err
		}
		through = item.Op == syntax.Fallthrough
	}
	return nil
}
