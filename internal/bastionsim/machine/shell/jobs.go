package shell

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

type job struct {
	id     int
	pid    int64
	text   string
	cancel context.CancelFunc
	done   chan struct{}
	status int // valid when done is closed
}

func (sh *shell) background(st *syntax.Stmt) {
	c := sh.fork()
	ctx, cancel := context.WithCancel(sh.base)
	c.ctx, c.base = ctx, ctx
	c.replace(0, textFile(""))
	j := &job{id: len(sh.jobs) + 1, pid: c.pid, cancel: cancel, done: make(chan struct{}), text: sh.sourceOf(st)}
	if err := sh.r.spawn(func() {
		defer close(j.done)
		if sh.interactive { // the time limit of a line applies to its jobs
			defer sh.s.atTimeLimit(ctx, cancel)()
		}
		defer cancel()
		c.forked(func() { c.stmt(st) })
		j.status = c.status
		if ctx.Err() != nil {
			j.status = 143
		}
	}); err != nil {
		cancel()
		c.end()
		sh.status = sh.refuse(254, "%v", err)
		return
	}
	sh.jobs = append(slices.DeleteFunc(sh.jobs, func(old *job) bool { return len(sh.jobs) > 256 && old.ended() }), j)
	sh.lastJob = strconv.FormatInt(j.pid, 10)
	sh.status = 0
	if sh.interactive {
		_, _ = fmt.Fprintf(sh.stream(2), "[%d] %d\n", j.id, j.pid)
	}
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

var trapNumbers = map[string]string{"0": "EXIT", "1": "HUP", "2": "INT", "3": "QUIT", "15": "TERM"}

// trapNames are the conditions that a trap may have. Only EXIT and ERR occur.
var trapNames = []string{
	"EXIT", "ERR", "DEBUG", "RETURN", "HUP", "INT", "QUIT", "TERM", "PIPE", "USR1", "USR2", "ALRM", "CHLD", "WINCH",
}

func trapCommand(b *builtin) int {
	if len(b.args) == 0 || b.f.has('p') {
		for _, name := range slices.Sorted(maps.Keys(b.traps)) {
			b.printf("trap -- %s %s\n", quoteAlways(b.traps[name]), name)
		}
		return 0
	}
	text, names := b.args[0], b.args[1:]
	if len(names) == 0 {
		text, names = "-", b.args
	}
	for _, name := range names {
		name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
		if name = cmp.Or(trapNumbers[name], name); !slices.Contains(trapNames, name) {
			return b.failf(1, "%s: invalid signal specification", name)
		}
		if b.traps[name] = text; text == "-" {
			delete(b.traps, name)
		}
	}
	return 0
}

// runTrap runs the text of a trap, if it is set, and then restores the status.
func (sh *shell) runTrap(name string) {
	text, ok := sh.traps[name]
	if !ok || sh.inTrap || text == "" || sh.step(1) != nil {
		return
	}
	status, next := sh.status, sh.flow
	sh.inTrap, sh.flow = true, onward
	sh.noExit++
	sh.runScript(text, name+" trap")
	sh.noExit--
	sh.inTrap = false
	if sh.flow == exiting {
		return // the trap's own exit decides
	}
	sh.status, sh.flow = status, next
}

// findJob returns a job by %number, %% or process ID, or nil.
func (sh *shell) findJob(name string) *job {
	for _, j := range slices.Backward(sh.jobs) {
		if name == "%%" || name == "%+" || name == "%"+strconv.Itoa(j.id) || name == strconv.FormatInt(j.pid, 10) {
			return j
		}
	}
	return nil
}

func (sh *shell) waitFor(j *job) int {
	select {
	case <-j.done:
		return j.status
	case <-sh.ctx.Done():
		return statusKilled
	}
}

func waitCommand(b *builtin) int {
	if len(b.args) == 0 {
		for _, j := range b.jobs {
			b.waitFor(j)
		}
		b.jobs = nil
	}
	status := 0
	for _, name := range b.args {
		if j := b.findJob(name); j != nil {
			status = b.waitFor(j)
		} else {
			status = b.failf(127, "%s: no such job", name)
		}
	}
	return status
}

func jobsCommand(b *builtin) int {
	b.jobs = slices.DeleteFunc(b.jobs, func(j *job) bool {
		state := "Running"
		if j.ended() {
			state = "Done"
		}
		if b.f.has('p') {
			b.printf("%d\n", j.pid)
		} else {
			b.printf("[%d]   %-23s %s\n", j.id, state, j.text)
		}
		return state == "Done"
	})
	return 0
}

// killCommand ends jobs of this shell, or the shell itself. No other process can get a signal.
func killCommand(b *builtin) int {
	args := b.args
	if len(args) > 1 && (args[0] == "-s" || args[0] == "-n") {
		args = args[1:]
	}
	probe := false
	if len(args) > 0 && (strings.HasPrefix(args[0], "-") || len(args) < len(b.args)) {
		probe, args = strings.TrimLeft(args[0], "-") == "0", args[1:]
	}
	if len(args) == 0 {
		return b.failf(2, "usage: kill [-signal] pid | %%job ...")
	}
	status, self := 0, strconv.FormatInt(b.mainPID, 10)
	for _, arg := range args {
		j := b.findJob(arg)
		_, err := strconv.Atoi(arg)
		switch {
		case arg == "--", j != nil && probe, probe && arg == self:
		case j != nil:
			j.cancel()
		case err != nil:
			status = b.failf(1, "%s: arguments must be process or job IDs", arg)
		case arg == self:
			b.flow, status = exiting, 143
		default:
			status = b.failf(1, "(%s) - No such process or operation not permitted", arg)
		}
	}
	return status
}
