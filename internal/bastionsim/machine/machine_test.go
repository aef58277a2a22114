package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// running is a machine that runs. Its clock stands still until the test steps it.
type running struct {
	*Machine
	clock *clocktesting.FakeClock
	stop  func()
}

func testClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
}

// boot makes or opens a machine and waits until it has booted.
func boot(t testing.TB, cfg Config) *running {
	t.Helper()
	r := start(t, cfg)
	select {
	case <-r.Booted():
	case <-time.After(testutil.Timeout):
		t.Fatal("the machine does not boot")
	}
	return r
}

func start(t testing.TB, cfg Config) *running {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	clock := testClock()
	cfg.Hostname, cfg.Clock, cfg.Log = "node-1", clock, logr.Discard()
	cfg.Addresses = []netip.Addr{netip.MustParseAddr("10.250.0.10")}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(testutil.Timeout):
			t.Error("Run does not return when its context ends")
		}
	}
	t.Cleanup(stop)
	return &running{Machine: m, clock: clock, stop: stop}
}

// unit writes a unit file and reloads.
func (r *running) unit(t testing.TB, name, text string) {
	t.Helper()
	file := "/etc/systemd/system/" + name
	if err := errors.Join(r.FS().MkdirAll(filepath.Dir(file), 0o755), r.FS().WriteFile(file, []byte(text), 0o644),
		r.Units().DaemonReload(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func (r *running) status(name string) string {
	unit, _ := r.units.Unit(name)
	return unit.Load + " " + unit.Active + " " + unit.Sub + " " + unit.Result
}

// journal returns the lines of a unit's journal.
func (r *running) journal(name string) string {
	var b strings.Builder
	for _, e := range r.units.Journal(name, 0) {
		fmt.Fprintf(&b, "%s: %s\n", e.Identifier, e.Message)
	}
	return b.String()
}

func isEnabled(u *Units, name string) bool {
	unit, _ := u.Unit(name)
	return unit.Enabled == "enabled"
}

// runs counts the starts of a Program. Each start ends with the next result, and all further ones with the last result.
type runs struct{ begun chan []string }

func (r *runs) program(results ...func(ctx context.Context) error) Program {
	r.begun = make(chan []string, 100)
	next := 0
	return func(ctx context.Context, _ *Machine, args []string) error {
		result := results[min(next, len(results)-1)]
		next++
		r.begun <- args
		return result(ctx)
	}
}

func (r *runs) wait(t testing.TB) []string {
	t.Helper()
	select {
	case args := <-r.begun:
		return args
	case <-time.After(testutil.Timeout):
		t.Fatal("the program does not run")
		return nil
	}
}

func (r *runs) none(t testing.TB, why string) {
	t.Helper()
	if len(r.begun) > 0 {
		t.Errorf("the program was started again: %s", why)
	}
}

func forever(ctx context.Context) error { <-ctx.Done(); return nil }
func fails(context.Context) error       { return errors.New("no luck") }
func ends(context.Context) error        { return nil }
func panics(context.Context) error      { panic("what") }

const service = "[Unit]\nDescription=Test\n[Service]\nExecStart=/opt/bin/p --a=\"b c\" $X ${Y} %n\n" +
	"Environment=X=1 \"Y=2 3\"\nRestartSec=5\n"

func TestRestartPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		restart string
		result  func(context.Context) error
		again   bool
		status  string
	}{
		"always, ends":       {"always", ends, true, "loaded activating auto-restart exit-code"},
		"always, fails":      {"always", fails, true, "loaded activating auto-restart exit-code"},
		"always, panics":     {"always", panics, true, "loaded activating auto-restart exit-code"},
		"on-failure, fails":  {"on-failure", fails, true, "loaded activating auto-restart exit-code"},
		"on-failure, panics": {"on-failure", panics, true, "loaded activating auto-restart exit-code"},
		"on-failure, ends":   {"on-failure", ends, false, "loaded inactive dead "},
		"no, fails":          {"no", fails, false, "loaded failed failed exit-code"},
		"no, panics":         {"no", panics, false, "loaded failed failed exit-code"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &runs{}
			r := boot(t, Config{Programs: map[string]Program{"/opt/bin/p": p.program(c.result, forever)}})
			r.unit(t, "p.service", service+"Restart="+c.restart+"\n")
			if err := r.Units().Start(t.Context(), "p"); err != nil {
				t.Fatal(err)
			}
			if got := p.wait(t); !slices.Equal(got, []string{"--a=b c", "1", "2 3", "p.service"}) {
				t.Errorf("the arguments are %q", got)
			}
			testutil.EventuallyTrue(t, c.status, func() bool { return r.status("p") == c.status })
			if !c.again {
				r.clock.Step(time.Hour)
				p.none(t, name)
				return
			}
			r.clock.Step(4 * time.Second)
			p.none(t, "before RestartSec")
			r.clock.Step(time.Second)
			p.wait(t)
			testutil.EventuallyTrue(t, "active", func() bool { return r.Units().IsActive("p.service") })
		})
	}
}

func TestStartLimit(t *testing.T) {
	p := &runs{}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/p": p.program(fails)}})
	r.unit(t, "p.service", "[Service]\nExecStart=/opt/bin/p\nRestart=always\nRestartSec=1s 500ms\n")
	if err := r.Units().Start(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		p.wait(t)
		testutil.EventuallyTrue(t, "auto-restart", func() bool { return strings.Contains(r.status("p"), "auto-restart") && r.clock.HasWaiters() })
		r.clock.Step(1500 * time.Millisecond)
	}
	testutil.EventuallyTrue(t, "the limit", func() bool { return r.status("p") == "loaded failed failed start-limit-hit" })
	p.none(t, "beyond the limit")
	if journal := r.journal("p"); !strings.Contains(journal, "no luck") ||
		!strings.Contains(journal, "repeated too quickly") {
		t.Errorf("journal:\n%s", journal)
	}
}

func TestUnitCommands(t *testing.T) {
	ctx := t.Context()
	p := &runs{}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/p": p.program(forever)}})
	u := r.Units()
	if err := u.Start(ctx, "p"); !errors.Is(err, ErrNoUnit) {
		t.Errorf("starting what is not there: %v", err)
	}
	for _, name := range []string{"../x.service", "a/b", "p.timer", ".service"} {
		if err := u.Enable(ctx, name); !errors.Is(err, ErrNoUnit) {
			t.Errorf("enabling %q: %v", name, err)
		}
	}
	r.unit(t, "p.service", service)
	if err := errors.Join(u.Enable(ctx, "p"), u.Enable(ctx, "p"), u.Start(ctx, "p"), u.Start(ctx, "p")); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	p.none(t, "it ran already")
	if !u.IsActive("p") || !isEnabled(u, "p.service") {
		t.Errorf("active %v, enabled %v", u.IsActive("p"), isEnabled(u, "p"))
	}
	// A drop-in takes effect after a reload and a restart.
	r.unit(t, "p.service.d/10.conf", "[Service]\nExecStart=\nExecStart=/opt/bin/p dropped-in\n")
	if err := u.Restart(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if got := p.wait(t); !slices.Equal(got, []string{"dropped-in"}) {
		t.Errorf("after the drop-in the arguments are %q", got)
	}
	if err := errors.Join(u.Stop(ctx, "p"), u.Stop(ctx, "p")); err != nil {
		t.Fatal(err)
	}
	if err := u.Mask("p", true); !errors.Is(err, fs.ErrExist) {
		t.Errorf("masking a unit whose file is in the way: %v", err)
	}
	if got := r.status("p"); got != "loaded inactive dead " {
		t.Errorf("after Stop: %s", got)
	}
	if err := u.Disable(ctx, "p"); err != nil || isEnabled(u, "p") {
		t.Errorf("disabling: %v, enabled %v", err, isEnabled(u, "p"))
	}
	if err := errors.Join(u.Mask("q", true), u.Start(ctx, "q")); err == nil || !strings.Contains(err.Error(), "masked") {
		t.Errorf("starting what is masked: %v", err)
	}
	if err := u.Mask("q", false); err != nil {
		t.Fatal(err)
	}
	r.unit(t, "bad.service", "[Service]\nExecStart=p\n")
	if err := u.Start(ctx, "bad"); err == nil || !strings.Contains(err.Error(), "absolute path") {
		t.Errorf("starting a bad unit: %v", err)
	}
}

// gardener-node-agent restarts itself when its own unit changes: it must not wait for its own end.
func TestUnitRestartsItself(t *testing.T) {
	begun := make(chan struct{}, 10)
	first := true
	agent := func(ctx context.Context, m *Machine, _ []string) error {
		begun <- struct{}{}
		if first {
			first = false
			if err := m.Units().Restart(ctx, "agent.service"); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/agent": agent}})
	r.unit(t, "agent.service", "[Service]\nExecStart=/opt/bin/agent\n")
	if err := r.Units().Start(t.Context(), "agent"); err != nil {
		t.Fatal(err)
	}
	<-begun
	<-begun
	testutil.EventuallyTrue(t, "active", func() bool { return r.Units().IsActive("agent") })
}

func TestJournal(t *testing.T) {
	written := make(chan struct{})
	talk := func(ctx context.Context, _ *Machine, _ []string) error {
		for i := range MaxJournalLines + 5 {
			fmt.Fprintf(Journal(ctx), "line %d\n", i)
		}
		fmt.Fprint(Journal(ctx), strings.Repeat("x", 3*MaxJournalLine))
		fmt.Fprint(Journal(ctx), "y\nlast")
		close(written)
		return nil
	}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/talk": talk}})
	r.unit(t, "talk.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/opt/bin/talk\n")
	if err := r.Units().Start(t.Context(), "talk"); err != nil {
		t.Fatal(err)
	}
	<-written // Start has waited for it
	lines := r.Units().Journal("talk", 0)
	last := lines[len(lines)-1]
	if len(lines) != MaxJournalLines || last.Identifier != "talk" || last.Message != "last" || !strings.HasSuffix(lines[0].Message, "line 7") {
		t.Errorf("%d lines from %+v to %+v", len(lines), lines[0], last)
	}
	if long := lines[len(lines)-2].Message; len(long) > MaxJournalLine {
		t.Errorf("a line of %d bytes", len(long))
	}
	if got := r.status("talk"); got != "loaded active exited " {
		t.Errorf("a oneshot that remains is %q", got)
	}
	if all := r.units.Journal("", 3); len(all) != 3 {
		t.Errorf("%d of the last 3 lines of all", len(all))
	}
}

// Enabled units start again when the machine does. The disk and the host key stay.
func TestMachineRestarts(t *testing.T) {
	dir, p := t.TempDir(), &runs{}
	programs := map[string]Program{"/opt/bin/p": p.program(forever)}
	r := boot(t, Config{Dir: dir, Programs: programs})
	r.unit(t, "p.service", service+"[Install]\nWantedBy=multi-user.target\n")
	r.unit(t, "q.service", service)
	if err := errors.Join(r.Units().Enable(t.Context(), "p"), r.FS().WriteFile("/root/note", []byte("kept"), 0o600)); err != nil {
		t.Fatal(err)
	}
	key := string(r.HostKey().Marshal())
	r.stop()
	info, err := os.Stat(filepath.Join(dir, "ssh_host_ed25519_key"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the host key's file: %v, %v", info, err)
	}

	r = boot(t, Config{Dir: dir, Programs: programs})
	p.wait(t)
	if note, err := r.FS().ReadFile("/root/note"); err != nil || string(note) != "kept" {
		t.Errorf("the file is %q, %v", note, err)
	}
	if string(r.HostKey().Marshal()) != key {
		t.Error("the host key is another one")
	}
	if r.Units().IsActive("q") {
		t.Error("a unit runs that is not enabled")
	}
	if err := r.Run(t.Context()); !errors.Is(err, ErrDown) {
		t.Errorf("running it twice: %v", err)
	}
}

func TestNothingIsLeftAfterRun(t *testing.T) {
	goroutinesEnded := testutil.Goroutines(t)
	p := &runs{}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/p": p.program(forever)}})
	r.unit(t, "p.service", service)
	r.unit(t, "again.service", "[Service]\nExecStart=/opt/bin/missing\nRestart=always\n")
	if err := errors.Join(r.Units().Start(t.Context(), "p"), r.Units().Start(t.Context(), "again")); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	r.stop()
	goroutinesEnded(testutil.Timeout)
	if err := r.Units().Start(t.Context(), "p"); !errors.Is(err, ErrDown) {
		t.Errorf("starting a unit of a machine that is down: %v", err)
	}
}

// TestStopEnds stops a unit whose ExecStop commands do not end.
func TestStopEnds(t *testing.T) {
	p := &runs{}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/p": p.program(forever)}})
	r.unit(t, "p.service", "[Service]\nExecStart=/opt/bin/p\n"+strings.Repeat("ExecStop=/usr/sbin/sshd\nExecStop=/bin/sleep infinity\n", 50))
	if err := r.Units().Start(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	stopped := make(chan error, 1)
	go func() { stopped <- r.Units().Stop(t.Context(), "p") }()
	testutil.EventuallyTrue(t, "the unit stops", func() bool {
		r.clock.Step(stopTimeout)
		select {
		case err := <-stopped:
			return err == nil
		default:
			return false
		}
	})
}
