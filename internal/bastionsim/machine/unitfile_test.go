package machine

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "5s": 5 * time.Second, "1min 30s": 90 * time.Second, "100ms": 100 * time.Millisecond,
		"2h": 2 * time.Hour, "infinity": 0, "0.5": 500 * time.Millisecond,
	} {
		if got, err := seconds(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-5", "5 apples"} {
		if got, err := seconds(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestParseUnit(t *testing.T) {
	d, err := parseUnit("# comment\n[Unit]\nAfter=a.service b.service\nAfter=c.service\n[Service]\nType=oneshot\n" +
		"ExecStartPre=-/bin/x 'a b'\\\n  \"c\\\"d\"\n" +
		"ExecStart=/bin/1\nExecStart=/bin/2\nUnknown=ignored\nRestart=on-abnormal\n")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.after, []string{"a.service", "b.service", "c.service"}) || d.kind != typeOneshot ||
		len(d.start) != 2 || d.restart != restartOnFailure {
		t.Errorf("read as %+v", d)
	}
	if !d.pre[0].mayFail || !slices.Equal(d.pre[0].words, []string{"/bin/x", "a b", `c"d`}) {
		t.Errorf("ExecStartPre is %+v", d.pre[0])
	}
	for name, text := range map[string]string{
		"two commands":  "[Service]\nExecStart=/a\nExecStart=/b\n",
		"relative path": "[Service]\nExecStart=a\n",
		"open quote":    "[Service]\nExecStart=/a 'b\n",
		"policy":        "[Service]\nRestart=sometimes\n",
		"time span":     "[Service]\nRestartSec=soon\n",
		"no assignment": "[Service]\nExecStart\n",
		"too large":     strings.Repeat("#", MaxUnitFile+1),
	} {
		if _, err := parseUnit(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Parsing any unit file, and expanding the words in it, does not panic.
// TestLongVariables verifies that a command line cannot multiply the value of a variable beyond all limits.
func TestLongVariables(t *testing.T) {
	r := boot(t, Config{})
	if err := r.FS().WriteFile("/etc/env", []byte("A="+strings.Repeat("x", MaxUnitFile/2)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for variables, fails := range map[string]bool{"$A": false, "$A$A$A": true} {
		r.unit(t, "x.service", "[Service]\nType=oneshot\nEnvironmentFile=/etc/env\nExecStart=/bin/true "+variables+"\n")
		if err := r.Units().Start(t.Context(), "x"); (err != nil) != fails {
			t.Errorf("%s: %v", variables, err)
		}
	}
}

func FuzzUnitFile(f *testing.F) {
	f.Add("[Service]\nExecStart=/bin/a \"b\" $C ${D} %n\nEnvironment=C=1\n[Install]\nWantedBy=multi-user.target\n")
	f.Add("[\n]\n=\n[]\n\\\n[Service]\nExecStart=-@/\nRestartSec=1 1 1\n")
	units := newUnits(&Machine{})
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseUnit(text)
		if err != nil {
			return
		}
		for _, line := range append(d.start, d.pre...) {
			for _, word := range line.words {
				_ = units.expand(word, "a.service", map[string]string{"C": "$C"}, new(int))
			}
		}
		if len(d.targets()) == 0 {
			t.Error("nothing wants it")
		}
	})
}
