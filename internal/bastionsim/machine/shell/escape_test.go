package shell

import (
	"bytes"
	"context"
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell/shelltest"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func newSession(t *testing.T, o Options) *Session {
	t.Helper()
	f, err := vfs.Open(vfs.Config{Clock: clock.RealClock{}, Hostname: "machine", Limits: vfs.Limits{Bytes: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	o.FS, o.Clock = f, clock.RealClock{}
	if o.System == nil {
		o.System = &fakeSystem{}
	}
	if o.User.Name == "" {
		o.User = rootUser
	}
	return New(o)
}

var (
	rootUser = User{Name: "root", Home: "/root"}
	someUser = User{Name: "gardener", UID: 1000, GID: 1000, Groups: []uint32{27}, Home: "/tmp"}
)

func TestEscapes(t *testing.T) {
	trap := shelltest.New(t)
	for name, attempt := range shelltest.Escapes {
		for _, user := range []User{rootUser, someUser} {
			t.Run(name+"/"+user.Name, func(t *testing.T) {
				s := newSession(t, Options{User: user, Limits: Limits{Time: testutil.Timeout, Output: 1 << 20}})
				goroutinesEnded := testutil.Goroutines(t)
				var out bytes.Buffer
				if _, err := s.Run(t.Context(), trap.Script(attempt), nil, &out, &out); err != nil {
					t.Fatalf("it was ended: %v; the output was %.500q", err, out.String())
				}
				trap.Check(t, out.String())
				goroutinesEnded(testutil.Timeout)
			})
		}
	}
}

func TestBombs(t *testing.T) {
	for name, script := range shelltest.Bombs {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, Options{User: rootUser, Limits: Limits{Time: 50 * time.Millisecond, Output: 4 << 20, Memory: 32 << 20}})
			goroutinesEnded := testutil.Goroutines(t)
			started := time.Now()
			var out bytes.Buffer
			status, err := s.Run(t.Context(), script, nil, &out, &out)
			var limit *LimitError
			if !errors.As(err, &limit) || status != statusKilled || limit.Limit == "an internal error" {
				t.Errorf("it ended with status %d and %v; the output was %.300q", status, err, out.String())
			}
			if took := time.Since(started); took > testutil.Timeout {
				t.Errorf("it took %v", took)
			}
			if out.Len() > 5<<20 {
				t.Errorf("it wrote %d bytes", out.Len())
			}
			goroutinesEnded(testutil.Timeout)
		})
	}
	// The memory that the process has requested from the system. A buffer of the size that one of the bombs names is
	// larger.
	var memory runtime.MemStats
	if runtime.ReadMemStats(&memory); memory.HeapSys > 1<<30 {
		t.Errorf("the heap has grown to %d MiB", memory.HeapSys>>20)
	}
}

// TestSubshellsTakeMemory verifies that the copies of variables in nested subshells count.
func TestSubshellsTakeMemory(t *testing.T) {
	s := newSession(t, Options{User: rootUser, Limits: Limits{Time: testutil.Timeout, Memory: 4 << 20}})
	var out bytes.Buffer
	_, err := s.Run(t.Context(), `i=0; while [ $i -lt 2000 ]; do eval "v$i=1"; i=$((i+1)); done; f() { ( f ); }; f`, nil, &out, &out)
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Limit != "memory" {
		t.Errorf("it ended with %v; the output was %.300q", err, out.String())
	}
}

// TestProgramsTakeMemory verifies that what a program has read counts until the program ends.
func TestProgramsTakeMemory(t *testing.T) {
	const write = `yes $(head -c 500 /dev/zero | tr '\0' y) | head -c 600000 > /tmp/f; `
	for script, want := range map[string]string{
		write + `for i in 1 2 3 4 5; do sort /tmp/f | wc -c; done`: "",
		write + `sort /tmp/f /tmp/f | wc -c`:                       "memory",
		`head -c 100000 /dev/zero | tr '\0' '\n' | sort | wc -l`:   "memory",
		`f=%n%n%n%n; for i in 1 2 3 4 5 6; do f=$f$f$f; done; n=/.; for i in 1 2 3 4 5 6 7; do n=$n$n; done
			for i in 1 2 3; do n=$n$n; done; stat -c "$f$f$f$f" $n`: "string",
		`export x=$(head -c 100000 /dev/zero | tr '\0' a) n=0; echo 'n=$((n+1)); [ $n -gt 30 ] || /tmp/x' > /tmp/x
			chmod +x /tmp/x; /tmp/x`: "memory",

		`mkdir /tmp/d; for i in $(seq 9000); do : > /tmp/d/$i; done; find /tmp/d`: "memory",
	} {
		s := newSession(t, Options{User: rootUser, Limits: Limits{Time: testutil.Timeout, Memory: 1 << 20}})
		var out bytes.Buffer
		_, err := s.Run(t.Context(), script, nil, &out, &out)
		if limit := (*LimitError)(nil); errors.As(err, &limit) && limit.Limit != want || (err == nil) != (want == "") {
			t.Errorf("%s ended with %v; the output was %.300q", script, err, out.String())
		}
	}
}

// TestContextEnds verifies that a run ends at once with its context.
func TestContextEnds(t *testing.T) {
	for _, script := range []string{`while :; do :; done`, `sleep 1000`, `cat | cat`, `read x`, `wait & sleep 1000 | cat; true`} {
		s := newSession(t, Options{User: rootUser})
		ctx, cancel := context.WithCancel(t.Context())
		in, feed := newTestPipe()
		time.AfterFunc(50*time.Millisecond, cancel)
		started := time.Now()
		if _, err := s.Run(ctx, script, in, nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s ended with %v", script, err)
		}
		if took := time.Since(started); took > testutil.Timeout {
			t.Errorf("%s took %v to end", script, took)
		}
		feed()
	}
}

// newTestPipe returns an input that blocks until it is closed.
func newTestPipe() (blocked, func()) {
	c := make(chan struct{})
	return blocked{c}, func() { close(c) }
}

type blocked struct{ c chan struct{} }

func (b blocked) Read([]byte) (int, error) {
	<-b.c
	return 0, fs.ErrClosed
}

// TestImports verifies that no package that reaches the host is imported. Only the journal of a disk may import package
// os.
func TestImports(t *testing.T) {
	allowed := []string{
		"bufio", "bytes", "cmp", "context", "encoding/base64", "encoding/binary", "encoding/gob", "encoding/hex", "errors",
		"fmt", "hash", "hash/crc32", "hash/fnv", "io", "io/fs", "maps", "math",
		"crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512", "crypto/rand", "math/rand/v2", "net/netip", "path", "regexp",
		"regexp/syntax", "runtime", "slices", "strconv", "strings", "sync", "sync/atomic", "time", "unicode", "unicode/utf8",
		"iter", "golang.org/x/term", "k8s.io/utils/clock", "mvdan.cc/sh/v3/expand", "mvdan.cc/sh/v3/pattern",
		"mvdan.cc/sh/v3/syntax", "github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs",
		"syscall", // error numbers and flags, see below
	}
	only := map[string][]string{"journal.go": {"os", "path/filepath"}}
	for _, dir := range []string{".", "../vfs"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal("no files", err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, imp := range tree.Imports {
				path := strings.Trim(imp.Path.Value, `"`)
				if !slices.Contains(allowed, path) && !slices.Contains(only[filepath.Base(file)], path) {
					t.Errorf("%s imports %s", file, path)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range strings.FieldsFunc(
				string(data), func(c rune) bool { return !(c == '.' || c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') }) {
				if name, ok := strings.CutPrefix(word, "syscall."); ok && !strings.HasPrefix(name, "E") && !strings.HasPrefix(name, "O_") {
					t.Errorf("%s uses %s", file, word)
				}
			}
		}
	}
}
