package shell

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// userScript runs a script with an input, and returns its status and output.
func userScript(t *testing.T, s *Session, script, input string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	status, err := s.Run(t.Context(), script, strings.NewReader(input), &out, nil)
	if err != nil {
		t.Errorf("%s: %v", script, err)
	}
	return status, out.String()
}

// TestScpTakes verifies how scp receives what another scp sends. The other end does not wait for answers, so that the
// whole conversation can be written down.
func TestScpTakes(t *testing.T) {
	const ok = "\x00"
	for name, c := range map[string]struct {
		command, sent string
		answers       string
		status        int
		check, want   string
	}{
		"a file": {"scp -t f", "C0755 5 other\nhello\x00", ok + ok + ok, 0, "cat f; stat -c ' %a' f", "hello 755\n"},
		"into a folder": {"scp -d -t .", "C0600 1 f\nx\x00C0666 0 g\n\x00", ok + ok + ok + ok + ok, 0,
			"stat -c '%n %a %s' f g", "f 600 1\ng 644 0\n"},
		"mode and times": {"scp -p -t f", "T1000000000 0 5 7\nC4751 1 f\nx\x00", ok + ok + ok + ok, 0, "stat -c '%a %Y' f", "4751 1000000000\n"},
		"a tree": {"scp -r -p -t new", "D0555 0 tree\nC0644 1 f\nx\x00D0700 0 in\nE\nE\n",
			ok + ok + ok + ok + ok + ok + ok, 0, "stat -c '%n %a' $(find new | sort)", "new 555\nnew/f 644\nnew/in 700\n"},
		"replaced": {"echo longer > f; chmod 600 f; scp -t f", "C0755 1 f\nx\x00", ok + ok + ok, 0, "cat f; stat -c ' %a' f", "x 600\n"},
		"not mine": {"scp -t /etc", "C0644 1 passwd\nC0644 1 new\n",
			ok + "\x01scp: /etc/passwd: Permission denied\n\x01scp: /etc/new: Permission denied\n", 1, "ls /etc/new 2>&1 | wc -l", "1\n"},
		"no such folder": {"scp -t no/f", "C0644 1 f\n", ok + "\x01scp: no/f: No such file or directory\n", 1, "", ""},
		"not a folder":   {"touch f; scp -d -t f", "", "\x02scp: f: not a directory\n", 1, "", ""},
		"full": {"scp -t f", "C0644 70000 f\n" + strings.Repeat("x", 70000) + "\x00C0644 1 f\ny\x00",
			ok + ok + "\x01scp: f: File too large\n" + ok + ok, 1, "cat f", "y"},
		"its user knows": {"scp -t f", "\x01scp: f: gone\nC0644 1 f\nx\x00", ok + ok + ok, 1, "cat f", "x"},
		"half a file":    {"scp -t f", "C0644 10 f\nhalf", ok + ok, 1, "", ""},
		"a way out": {"mkdir d; scp -r -t d", "C0644 1 ../up\nx\x00",
			ok + "\x02scp: d: protocol error: unexpected name \"../up\"\n", 1, "find . -name up", ""},
		"the folder up":   {"mkdir d; scp -r -t d", "D0755 0 ..\n", ok + "\x02scp: d: protocol error: unexpected name \"..\"\n", 1, "", ""},
		"no name":         {"scp -t .", "C0644 1 \nx\x00", ok + "\x02scp: .: protocol error: unexpected name \"\"\n", 1, "", ""},
		"nonsense":        {"scp -t f", "hello\n", ok + "\x02scp: f: protocol error\n", 1, "", ""},
		"negative":        {"scp -t f", "C0644 -1 f\n", ok + "\x02scp: f: protocol error\n", 1, "", ""},
		"no such size":    {"scp -t f", "C0644 99999999999999999999 f\n", ok + "\x02scp: f: protocol error\n", 1, "", ""},
		"wrong times":     {"scp -t f", "T1 1000000 1 0\n", ok + "\x02scp: f: protocol error\n", 1, "", ""},
		"no -r":           {"scp -t .", "D0755 0 d\nE\n", ok + "\x02scp: .: protocol error\n", 1, "", ""},
		"end of no tree":  {"scp -r -t .", "E\n", ok + "\x02scp: .: protocol error\n", 1, "", ""},
		"an endless line": {"scp -t f", "C0644 1 " + strings.Repeat("f", 10_000), ok + "\x02scp: a line has more than 4160 bytes\n", 1, "", ""},
		"very deep": {"scp -r -t .", strings.Repeat("D0755 0 d\n", 202),
			strings.Repeat(ok, 202) + "\x02scp: " + "." + strings.Repeat("/d", 201) + ": directories are more than 200 deep\n", 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := scpSession(t)
			status, answers := userScript(t, s, c.command, c.sent)
			if status != c.status || answers != c.answers {
				t.Errorf("status %d (want %d), answers\n%q\nwant\n%q", status, c.status, answers, c.answers)
			}
			if _, got := userScript(t, s, c.check, ""); got != c.want {
				t.Errorf("%s: %q, want %q", c.check, got, c.want)
			}
		})
	}
}

// scpSession returns a session of a user with a home, on a small disk.
func scpSession(t *testing.T) *Session {
	t.Helper()
	files, err := vfs.Open(vfs.Config{Clock: clock.RealClock{}, Limits: vfs.Limits{FileSize: 64 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	root := files.As(vfs.Root)
	for _, err := range []error{
		root.Mkdir("/home/u", 0o755), root.Chown("/home/u", 1000, 1000), root.WriteFile("/home/u/secret", []byte("x"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return New(Options{FS: files, Clock: clock.RealClock{}, System: &fakeSystem{},
		User: User{Name: "u", UID: 1000, GID: 1000, Home: "/home/u"}})
}

// TestScpGives verifies how scp sends what another scp requests.
func TestScpGives(t *testing.T) {
	yes := strings.Repeat("\x00", 30)
	for name, c := range map[string]struct {
		command, answers string
		sent             string
		status           int
	}{
		"a file": {"printf hello > f; chmod 751 f; scp -f f", yes, "C0751 5 f\nhello\x00", 0},
		"some":   {"printf 1 > a1; printf 2 > a2; scp -f a*", yes, "C0644 1 a1\n1\x00C0644 1 a2\n2\x00", 0},
		"times":  {"printf x > f; touch -d @1000000000 f; scp -p -f f", yes, "T1000000000 0 1000000000 0\nC0644 1 f\nx\x00", 0},
		"a tree": {"mkdir -p d/e; printf x > d/e/f; printf y > d/g; chmod 600 d/g; scp -r -f d", yes,
			"D0755 0 d\nD0755 0 e\nC0644 1 f\nx\x00E\nC0600 1 g\ny\x00E\n", 0},
		"missing":        {"printf x > f; scp -f no f", yes, "\x01scp: no: No such file or directory\nC0644 1 f\nx\x00", 1},
		"a folder":       {"mkdir d; scp -f d", yes, "\x01scp: d: not a regular file\n", 1},
		"endless":        {"scp -f /dev/zero", yes, "\x01scp: /dev/zero: not a regular file\n", 1},
		"not mine":       {"scp -f secret /etc/shadow", yes, "\x01scp: secret: Permission denied\n\x01scp: /etc/shadow: Permission denied\n", 1},
		"not wanted":     {"touch f g; scp -f f g", "\x00\x01no room\n\x00\x00", "C0644 0 f\nC0644 0 g\n\x00", 1},
		"given up":       {"touch f g; scp -f f g", "\x00\x02no\n", "C0644 0 f\n", 1},
		"gone":           {"touch f g; scp -f f g", "\x00", "C0644 0 f\n", 1},
		"not there":      {"touch f; scp -f f", "", "", 1},
		"both":           {"scp -t -f f", yes, "", 255},
		"two targets":    {"scp -t f g", yes, "", 1},
		"over a network": {"scp f host:f", yes, "", 255},
	} {
		t.Run(name, func(t *testing.T) {
			if status, sent := userScript(t, scpSession(t), c.command, c.answers); status != c.status || sent != c.sent {
				t.Errorf("status %d (want %d), it sent\n%q\nwant\n%q", status, c.status, sent, c.sent)
			}
		})
	}
}

// The content of files that scp sends is not counted as output, unless it goes through another command.
func TestScpIsNoOutput(t *testing.T) {
	s := newSession(t, Options{User: rootUser, Limits: Limits{Output: 100 << 10, Time: time.Hour}})
	yes := strings.Repeat("\x00", 1000)
	if _, err := s.Run(t.Context(), "head -c 150000 /dev/zero > f; scp -f f", strings.NewReader(yes), nil, nil); err != nil {
		t.Errorf("a large file: %v", err)
	}
	_, err := s.Run(t.Context(), "head -c 150000 /dev/zero > f; scp -f f | cat", strings.NewReader(yes), nil, nil)
	if limit, ok := err.(*LimitError); !ok || limit.Limit != "output" {
		t.Errorf("a large file as output: %v", err)
	}
}
