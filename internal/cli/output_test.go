package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/authz/inspect"
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
	var out strings.Builder
	printf(&out, "%s: %-6s|%3d %v %q\n", errors.New("a\nb\x1b"), word("c\rd"), 7, lines("e\n\x1bf"), []string{"g\n"})
	if got, want := out.String(), "a b\ufffd: c d   |  7 e\n\ufffdf \"[g ]\"\n"; got != want {
		t.Errorf("a line is printed as %q, want %q", got, want)
	}
	out.Reset()
	table(&out, "NAME | MESSAGE", [][]string{{"a", "b\nc   d"}})
	if got := out.String(); got != "NAME   MESSAGE\na      b c   d\n" {
		t.Errorf("the table is %q", got)
	}
}

type word string

// TestJSONIsPlain checks that JSON has the same values, without a character that a terminal would obey.
func TestJSONIsPlain(t *testing.T) {
	const value = "a\x1b\u009b\u202e\U000e0001\u2028\n日本"
	var out strings.Builder
	if err := printAs(&out, "json", []string{value}, nil); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u009b\u202e\U000e0001") || !strings.Contains(out.String(), "日本") {
		t.Errorf("it is %q", out.String())
	}
	var read []string
	if err := json.Unmarshal([]byte(out.String()), &read); err != nil || read[0] != value {
		t.Errorf("it is read as %q: %v", read, err)
	}
}

// TestExplanationIsPlain checks that the name of a role, which can be nearly any text, adds no line to an explanation.
func TestExplanationIsPlain(t *testing.T) {
	e := &inspect.Explanation{Allowed: true, By: "RBAC"}
	e.RBAC.Allowed, e.RBAC.Reason = true, "RBAC: allowed by ClusterRole \"a\nNote            all is well\x1b[1A\""
	var out strings.Builder
	printExplanation(&out, e)
	if got := out.String(); strings.Contains(got, "\x1b") || strings.Contains(got, "\nNote") {
		t.Errorf("it is %q", got)
	}
}

// TestCompletionsAreNames checks that a shell is offered nothing but names.
func TestCompletionsAreNames(t *testing.T) {
	complete := completeNames(func(context.Context) []string {
		return []string{"dev/my-shoot", "$(reboot)", "a b", "a\nb", "`x`", "a\tb", "-f", "leases.coordination.k8s.io", "shoots/status", ""}
	})
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	got, _ := complete(cmd, nil, "")
	if want := []string{"dev/my-shoot", "leases.coordination.k8s.io", "shoots/status"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTextIsPrintedInOnePlace checks that the commands print texts with printf, printLine and table only.
func TestTextIsPrintedInOnePlace(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") ||
			name == "output.go" || name == "progress.go" {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if from, ok := selector.X.(*ast.Ident); ok && from.Name == "fmt" &&
				(strings.HasPrefix(selector.Sel.Name, "Fprint") || strings.HasPrefix(selector.Sel.Name, "Print")) {
				t.Errorf("%s: fmt.%s prints what a cluster says as it is: use printf of output.go", set.Position(n.Pos()), selector.Sel.Name)
			}
			return true
		})
	}
}

// TestPlainError checks that errors of Go's packages are told in other words.
func TestPlainError(t *testing.T) {
	var object map[string]any
	var typed struct {
		SeedConfig struct {
			Port int `json:"port"`
		} `json:"seedConfig"`
	}
	_, number := strconv.ParseInt(`1"x`, 10, 32)
	for want, err := range map[string]error{
		"x: it has the wrong type, array":                fmt.Errorf("x: %w", json.Unmarshal([]byte(`[]`), &object)),
		"it has the wrong type, string":                  yaml.Unmarshal([]byte(`a`), &typed),
		"seedConfig.port: it has the wrong type, string": yaml.Unmarshal([]byte(`seedConfig: {port: x}`), &typed),
		`"1\"x": invalid syntax`:                         number,
		"not found":                                      errors.New("not found"),
	} {
		if got := string(plainError(err)); got != want {
			t.Errorf("%q is told as %q, want %q", err, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 0: "0s", 14*time.Millisecond + 1: "14ms",
		3456 * time.Millisecond: "3.5s", 42500 * time.Millisecond: "42s", 90 * time.Second: "90s", 5 * time.Minute: "5m",
		125 * time.Second: "2m5s", 47 * time.Hour: "47h", 72 * time.Hour: "3d"} {
		if got := span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	if got := age(time.Now().Add(-3400 * time.Millisecond)); got != "3s" {
		t.Errorf("an age is %q", got)
	}
}

// TestStatesHaveColours: on a terminal, and in columns with states only.
func TestStatesHaveColours(t *testing.T) {
	var out strings.Builder
	rows := [][]string{{"Ready", "Ready"}, {"a", "Create Failed (40%)"}, {"b", "Create Processing (4%)"},
		{"c", "Hibernated"}}
	table(&checkedWriter{Writer: &out, colour: true}, "NAME | STATE", rows)
	const want = "NAME    STATE\nReady   \x1b[32mReady\x1b[0m\na       \x1b[31mCreate Failed (40%)\x1b[0m\n" +
		"b       \x1b[33mCreate Processing (4%)\x1b[0m\nc       Hibernated\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	table(&checkedWriter{Writer: &out}, "NAME | STATE", rows)
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("without colours it is %q", out.String())
	}
}
