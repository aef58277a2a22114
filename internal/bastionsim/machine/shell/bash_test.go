package shell

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The minimum numbers of scripts of mvdan.cc/sh/v3/interp that must behave here as in bash: with their standard error,
// and in output and exit status alone.
const (
	leastEqual       = 1223
	leastEqualOutput = 1237
)

const differencesFile = "testdata/differences.txt"

var updateDifferences = flag.Bool("update", false, "rewrite "+differencesFile)

// TestLikeBash runs the scripts of the test suite of mvdan.cc/sh/v3/interp in bash and in a session. Standard output
// and exit status must be equal. On standard error, error messages ("bash: line 1: x: not found") must be present in
// both or in none; other lines, such as those of set -x, must be equal. The scripts that differ are listed in
// differencesFile.
func TestLikeBash(t *testing.T) {
	version, err := exec.Command("bash", "-c", "echo $BASH_VERSION").Output()
	if err != nil {
		t.Skipf("there is no bash on this machine to compare with: %v", err)
	}
	if !strings.HasPrefix(string(version), "5.2.") {
		t.Skipf("the differences are listed for bash 5.2, this machine has %s", version)
	}
	scripts := suiteScripts(t)
	if len(scripts) < 1000 {
		t.Fatalf("the suite has only %d scripts, was its format changed?", len(scripts))
	}
	listed := readDifferences(t)
	ids := slices.Sorted(maps.Keys(scripts))
	differs := make([]string, len(ids))
	next := make(chan int)
	var workers sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				differs[i] = compareWithBash(t, scripts[ids[i]])
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	workers.Wait()

	different, output, found := 0, 0, map[string]string{}
	for i, id := range ids {
		class, isListed := listed[id]
		delete(listed, id)
		if differs[i] != "" || class == "race" {
			different++
			found[id] = class
			if !strings.HasPrefix(differs[i], "errors") {
				output++
			}
		}
		switch {
		case *updateDifferences || class == "race":
		case differs[i] != "" && !isListed:
			t.Errorf("%s differs from bash:\n%s\n%s", id, scripts[ids[i]], differs[i])
		case differs[i] == "" && isListed:
			t.Errorf("%s is listed in %s, and does what bash does:\n%s", id, differencesFile, scripts[ids[i]])
		case isListed:
			t.Logf("%s (%s):\n%s\n%s", id, class, scripts[ids[i]], differs[i])
		}
	}
	if *updateDifferences {
		writeDifferences(t, found)
	}
	for id := range listed {
		t.Errorf("%s lists %s, which is no script of the suite", differencesFile, id)
	}
	share := func(n int) float64 { return 100 * float64(n) / float64(len(ids)) }
	equal, equalOutput := len(ids)-different, len(ids)-output
	t.Logf("%d of %d scripts do what they do in bash: %.1f %%", equal, len(ids), share(equal))
	t.Logf("without what they write to standard error it is %d: %.1f %%", equalOutput, share(equalOutput))
	if equal < leastEqual || equalOutput < leastEqualOutput {
		t.Errorf("that are less than %d and %d", leastEqual, leastEqualOutput)
	}
}

// needsSuite matches scripts that need the suite's own process: its variables and its helper program. It also matches
// NUL, which a command line cannot contain.
var needsSuite = regexp.MustCompile(`GOSH_|_PROG|INTERP_GLOBAL|GO_TEST_DIR|\x00`)

// suiteScripts returns the scripts of the suite by the beginning of their SHA-256.
func suiteScripts(t *testing.T) map[string]string {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "mvdan.cc/sh/v3").Output()
	if err != nil {
		t.Fatalf("finding mvdan.cc/sh/v3: %v", err)
	}
	name := filepath.Join(strings.TrimSpace(string(dir)), "interp/interp_test.go")
	tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !slices.Contains([]string{"runTests", "runTestsUnix", "runTests64bit"}, spec.Names[0].Name) {
			return true
		}
		for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
			text, ok := constant(row.(*ast.CompositeLit).Elts[0])
			if ok && !needsSuite.MatchString(text) {
				scripts[fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:8]] = text
			}
		}
		return false
	})
	return scripts
}

// constant returns the value of a string literal, or of a sum of literals.
func constant(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, okA := constant(x.X)
		b, okB := constant(x.Y)
		return a + b, okA && okB
	}
	return "", false
}

// compareWithBash returns a description of the differences, or "".
func compareWithBash(t *testing.T, script string) string {
	const limit = 30 * time.Second
	dir := t.TempDir()
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var theirs, theirErrors, ours, ourErrors bytes.Buffer

	u := User{Name: "root", UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Home: dir}
	s := newSession(t, Options{User: u, Dir: dir, Env: env})
	if err := s.o.FS.MkdirAll(dir, 0o777); err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	status, err := s.Run(ctx, script, nil, &ours, &ourErrors)
	if err != nil {
		return "it was ended: " + err.Error()
	}

	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, s.environ(dir), &theirs, &theirErrors
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = limit
	if err := cmd.Run(); cmd.ProcessState == nil {
		return "bash does not run: " + err.Error()
	}
	wantStatus := cmd.ProcessState.ExitCode()

	var b strings.Builder
	if status != wantStatus {
		fmt.Fprintf(&b, "status %d, bash %d\n", status, wantStatus)
	}
	if ours.String() != theirs.String() {
		fmt.Fprintf(&b, "output %.300q\nbash   %.300q\n", ours.String(), theirs.String())
	}
	if complaints(ourErrors.String()) != complaints(theirErrors.String()) {
		fmt.Fprintf(&b, "errors %.300q\nbash   %.300q\n", ourErrors.String(), theirErrors.String())
	}
	return b.String()
}

var errorLine = regexp.MustCompile(`^[\w./@-]+: `)

// complaints returns a standard error in which one line replaces all error messages.
func complaints(text string) string {
	var lines []string
	failed := false
	for line := range strings.Lines(text) {
		if errorLine.MatchString(line) {
			failed = true
		} else {
			lines = append(lines, line)
		}
	}
	if failed {
		lines = append(lines, "an error")
	}
	return strings.Join(lines, "")
}

// readDifferences returns the classes of the listed scripts. Scripts of the class "race" may differ or not, and count
// as different.
func readDifferences(t *testing.T) map[string]string {
	data, err := os.ReadFile(differencesFile)
	if err != nil && !*updateDifferences {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if id, class, ok := strings.Cut(strings.TrimSpace(line), " "); ok && id != "#" {
			listed[id] = class
		}
	}
	return listed
}

func writeDifferences(t *testing.T, classes map[string]string) {
	var b strings.Builder
	b.WriteString("# Scripts of mvdan.cc/sh/v3/interp's tests that differ from bash: the beginning of the script's SHA-256 and a class.\n")
	b.WriteString("# go test -run TestLikeBash -v shows them. -update writes this file anew.\n")
	for _, id := range slices.Sorted(maps.Keys(classes)) {
		class := classes[id]
		if class == "" {
			class = "unclassified"
		}
		fmt.Fprintf(&b, "%s %s\n", id, class)
	}
	if err := os.WriteFile(differencesFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
