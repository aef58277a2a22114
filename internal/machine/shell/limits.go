package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Limits bound what one Run may use; zero fields take the value of DefaultLimits.
type Limits struct {
	// Time that passes on the host's clock. Negative is no limit, for interactive sessions whose commands wait for a person.
	Time time.Duration
	// Output in bytes on standard output and standard error together.
	Output int64
	// Memory in bytes of variables, arguments, substitutions and parsed code, all processes together.
	Memory int64
	// Text is the size of one string, argument or line in bytes.
	Text int
	// Script is the size in bytes of what is parsed at once.
	Script int
	// Fields is the number of words that one command can expand to.
	Fields int
	// Steps is the number of statements and commands.
	Steps int64
	// Processes that run at the same time.
	Processes int64
	// Depth of functions, substitutions, subshells, eval and source inside each other.
	Depth int
	// Nesting of the syntax.
	Nesting int
}

// DefaultLimits are those of whoever does not say.
var DefaultLimits = Limits{
	Time: 30 * time.Second, Output: 4 << 20, Memory: 32 << 20, Text: 1 << 20, Script: 256 << 10, Fields: 16384,
	Steps: 1_000_000, Processes: 64, Depth: 100, Nesting: 400,
}

// What ends a script that goes over a limit.
var (
	ErrTime      = errors.New("the script ran too long")
	ErrOutput    = errors.New("the script printed too much")
	ErrMemory    = errors.New("the script used too much memory")
	ErrSteps     = errors.New("the script ran too many commands")
	ErrProcesses = errors.New("the script ran too many processes at once")
	ErrDepth     = errors.New("functions, substitutions or subshells are nested too deeply")
	ErrNesting   = errors.New("the script's syntax is nested too deeply")
	ErrText      = errors.New("a string is too long")
	ErrFields    = errors.New("a command expands to too many words")
	ErrScript    = errors.New("the script is too long")
)

func (l Limits) orDefault() Limits {
	d := DefaultLimits
	set(&l.Time, d.Time)
	set(&l.Output, d.Output)
	set(&l.Memory, d.Memory)
	set(&l.Text, d.Text)
	set(&l.Script, d.Script)
	set(&l.Fields, d.Fields)
	set(&l.Steps, d.Steps)
	set(&l.Processes, d.Processes)
	set(&l.Depth, d.Depth)
	set(&l.Nesting, d.Nesting)
	return l
}

func set[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// budget is what one Run has left.
type budget struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limits Limits
	// memory outlives a Run: variables stay.
	memory    *atomic.Int64
	steps     atomic.Int64
	output    atomic.Int64
	processes atomic.Int64
}

func (b *budget) fail(err error) error {
	b.cancel(err)
	return b.err()
}

// err says why the script has to stop, if it has to.
func (b *budget) err() error {
	if b.ctx.Err() == nil {
		return nil
	}
	return context.Cause(b.ctx)
}

func (b *budget) step() error {
	if b.steps.Add(1) > b.limits.Steps {
		return b.fail(ErrSteps)
	}
	return b.err()
}

// tick is for loops over text: now and then it looks whether to stop.
func (b *budget) tick(counter *int) bool {
	*counter++
	return *counter%4096 == 0 && b.ctx.Err() != nil
}

// charge takes memory; negative amounts give back.
func (b *budget) charge(n int) error {
	if b.memory.Add(int64(n)) > b.limits.Memory && n > 0 {
		return b.fail(ErrMemory)
	}
	return nil
}

func (b *budget) text(n int) error {
	if n > b.limits.Text {
		return b.fail(ErrText)
	}
	return nil
}

// limitedWriter counts what leaves the shell.
type limitedWriter struct {
	b *budget
	w io.Writer
}

func (l limitedWriter) Write(p []byte) (int, error) {
	if l.b.output.Add(int64(len(p))) > l.b.limits.Output {
		return 0, l.b.fail(ErrOutput)
	}
	if err := l.b.err(); err != nil {
		return 0, err
	}
	return l.w.Write(p)
}

// capture collects the output of a substitution.
type capture struct {
	b    *budget
	data []byte
}

func (c *capture) Write(p []byte) (int, error) {
	if err := c.b.text(len(c.data) + len(p)); err != nil {
		return 0, err
	}
	if err := c.b.charge(len(p)); err != nil {
		return 0, err
	}
	c.data = append(c.data, p...)
	return len(p), nil
}

func (c *capture) release() { _ = c.b.charge(-len(c.data)) }

// internal turns a panic of the interpreter into the end of the script: one machine's script must not end the landscape.
func (b *budget) internal() {
	if r := recover(); r != nil {
		_ = b.fail(fmt.Errorf("the shell has a defect: %v", r))
	}
}

// unlimited is for what has no script.
var unlimited = &budget{ctx: context.Background(), cancel: func(error) {}, limits: DefaultLimits, memory: new(atomic.Int64)}
