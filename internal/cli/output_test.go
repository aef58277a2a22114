package cli

import (
	"strings"
	"testing"
)

// TestPlain checks that a text from a cluster cannot move the cursor, change colours, or add lines.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"Ready":                        "Ready",
		"über 日本":                      "über 日本",
		"a\nshoot dev/b is Ready":      "a shoot dev/b is Ready",
		"a\tb\rc":                      "a b c",
		"\x1b[2J\x1b]0;title\a":        "\ufffd[2J\ufffd]0;title\ufffd",
		"\u009b31m\u202egnp.exe\u2066": "\ufffd31m\ufffdgnp.exe\ufffd",
		"\u2028next":                   " next",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
	if got := plainLines("a\n\x1bb"); got != "a\n\ufffdb" {
		t.Errorf("lines are printed as %q", got)
	}
	var out strings.Builder
	table(&out, "NAME | MESSAGE", [][]string{{"a", "b\nc   d"}})
	if got := out.String(); got != "NAME   MESSAGE\na      b c   d\n" {
		t.Errorf("the table is %q", got)
	}
}
