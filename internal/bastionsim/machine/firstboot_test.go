package machine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func read(t testing.TB, r *running, file string) string {
	t.Helper()
	data, err := r.FS().ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The user data runs once in a machine's life: it makes users, files and units, and starts them.
func TestUserDataRunsOnce(t *testing.T) {
	const userData = `#!/bin/bash -e
echo run >> /root/runs
useradd -m -s /bin/bash gardener
cat << 'EOF' > /etc/systemd/system/p.service
[Service]
ExecStart=/opt/bin/p from-user-data
[Install]
WantedBy=multi-user.target
EOF
systemctl daemon-reload
systemctl enable --now p.service
echo hello
`
	dir, p := t.TempDir(), &runs{}
	programs := map[string]Program{"/opt/bin/p": p.program(forever)}
	for boots := range 2 {
		r := boot(t, Config{Dir: dir, UserData: []byte(userData), Programs: programs})
		if status := r.CloudInit(); !status.Done || status.Error != "" {
			t.Fatalf("the status: %+v, the log: %s", status, read(t, r, cloudInitLog))
		}
		if got := p.wait(t); len(got) != 1 || got[0] != "from-user-data" {
			t.Errorf("the unit was started with %q", got)
		}
		if got := read(t, r, "/root/runs"); got != "run\n" {
			t.Errorf("at boot %d the user data has run like this: %q", boots, got)
		}
		if got := read(t, r, cloudInitLog); !strings.Contains(got, "hello") {
			t.Errorf("the log: %q", got)
		}
		if a, ok := shell.LookupUser(r.FS(), "gardener"); !ok || locked(shadowOf(r.FS(), "gardener"), r.clock.Now()) ||
			a.Home != "/home/gardener" {
			t.Errorf("the user: %+v, %v", a, ok)
		}
		r.stop()
	}
}

// A machine that goes down in the middle of its user data runs it again.
func TestUserDataIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: dir, UserData: []byte(
		"#!/bin/sh\necho x >> /root/runs\nif [ $(wc -l < /root/runs) -lt 2 ]; then sleep 100; fi\necho end >> /root/runs\n")}
	r := start(t, cfg)
	testutil.EventuallyTrue(t, "the user data runs", func() bool {
		data, err := r.FS().ReadFile("/root/runs")
		return err == nil && string(data) == "x\n"
	})
	r.stop()
	if got := read(t, boot(t, cfg), "/root/runs"); got != "x\nx\nend\n" {
		t.Errorf("it has run like this: %q", got)
	}
}

// A machine whose user data fails runs all the same, says so, and does not try again.
func TestUserDataFails(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"status":      {"#!/bin/sh\nexit 3\n", "status 3"},
		"interpreter": {"#!/usr/bin/python3\n", "no interpreter"},
		"unknown":     {"\x7fELF", "begins neither"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for range 2 {
				r := boot(t, Config{Dir: dir, UserData: []byte(c.data)})
				if got := r.CloudInit(); !got.Done || !strings.Contains(got.Error, c.want) {
					t.Errorf("the status: %+v", got)
				}
				if got := read(t, r, cloudInitLog); !strings.Contains(got, c.want) {
					t.Errorf("the log: %q", got)
				}
				r.stop()
			}
		})
	}
}

// The machine's clock ends user data that does not end by itself.
func TestUserDataTimeout(t *testing.T) {
	r := start(t, Config{UserData: []byte("#!/bin/sh\nsleep 1000000\n")})
	testutil.EventuallyTrue(t, "it has booted", func() bool {
		r.clock.Step(UserDataTimeout)
		select {
		case <-r.Booted():
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
	if got := r.CloudInit(); !got.Done || got.Error == "" {
		t.Errorf("the status: %+v", got)
	}
}

// The shell runs commands that are not Programs, with the rights of the unit's user.
func TestUnitRunsScript(t *testing.T) {
	r := boot(t, Config{UserData: []byte("#!/bin/sh\nuseradd -m worker\n")})
	r.unit(t, "s.service", "[Service]\nType=oneshot\nUser=worker\nEnvironment=\"A=b c\"\nExecStartPre=-/bin/false\n"+
		"ExecStart=/bin/sh -c 'echo \"$$A\" $$(whoami)'\nExecStart=/bin/cat /etc/shadow\n")
	err := r.Units().Start(t.Context(), "s")
	if err == nil || !strings.Contains(err.Error(), "/bin/cat") {
		t.Errorf("reading /etc/shadow as worker: %v", err)
	}
	if journal := r.journal("s"); !strings.Contains(journal, "b c worker") {
		t.Errorf("journal:\n%s", journal)
	}
}

// reboot and poweroff from within.
func TestPower(t *testing.T) {
	booted := make(chan struct{}, 10)
	program := func(ctx context.Context, _ *Machine, _ []string) error {
		booted <- struct{}{}
		<-ctx.Done()
		return nil
	}
	r := boot(t, Config{Programs: map[string]Program{"/opt/bin/p": program}})
	r.unit(t, "p.service", "[Service]\nExecStart=/opt/bin/p\n[Install]\nWantedBy=multi-user.target\n")
	if err := errors.Join(r.Units().Enable(t.Context(), "p"), system{r.Machine}.Power("reboot")); err != nil {
		t.Fatal(err)
	}
	<-booted
	if err := (system{r.Machine}).Power("poweroff"); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "it is down", func() bool { return r.up.Err() != nil })
}
