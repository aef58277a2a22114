// Package shelltest has attempts to break out of a simulated machine and to exhaust its host, and a trap that tells
// whether an attempt succeeded. It is data for tests: the tests of package shell run the attempts as scripts, and those
// of package machine run them over SSH, as commands and as typed text. Only tests import it, and it imports nothing of
// the project.
package shelltest

import (
	_ "embed"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

//go:embed testdata/escapes.txt
var escapes string

//go:embed testdata/bombs.txt
var bombs string

// Escapes are attempts to reach the host, or to use more of it than a session may. HOST is a folder of the host with
// the file "secret", HOSTPORT is a port that the host listens on, and HOSTPID is a process of the host; Trap.Script
// fills them in. A user of the machine could never have a file in that folder. An attempt that sees the host in another
// way than by its secret prints the marker itself.
var Escapes = scripts(escapes)

// Bombs are attempts to exhaust resources. A limit must end each of them.
var Bombs = scripts(bombs)

var title = regexp.MustCompile(`(?m)^-- (.*) --\n`)

// scripts parses scripts by name. A line "-- name --" precedes each script.
func scripts(text string) map[string]string {
	all := map[string]string{}
	texts := title.Split(text, -1)[1:]
	for i, found := range title.FindAllStringSubmatch(text, -1) {
		all[found[1]] = strings.TrimSuffix(texts[i], "\n")
	}
	return all
}

// Marker must not be in any output or on any disk of a machine. It is in a file and in a variable of the host.
const Marker = "HOST-SECRET-7f3a"

// Trap is the part of the host that attempts try to reach.
type Trap struct {
	dir      string
	port     string
	before   string
	reached  atomic.Int32
	listener net.Listener
}

// New creates a folder of the host with a secret, a variable of this process with the secret, and a listening port. It
// remembers the content of the folder. The test removes all of them when it ends.
func New(t *testing.T) *Trap {
	t.Helper()
	t.Setenv("SECRET_OF_OUTSIDE", Marker)
	trap := &Trap{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(trap.dir, "secret"), []byte("echo "+Marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if trap.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if _, trap.port, err = net.SplitHostPort(trap.listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := trap.listener.Accept()
			if err != nil {
				return
			}
			trap.reached.Add(1)
			_, _ = conn.Write([]byte(Marker))
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = trap.listener.Close()
		served.Wait()
	})
	trap.before = look(t, trap.dir)
	return trap
}

// Script replaces the placeholders for the host in an attempt.
func (trap *Trap) Script(attempt string) string {
	pairs := []string{"HOSTPID", fmt.Sprint(os.Getpid()), "HOSTPORT", trap.port}
	for _, after := range []string{"/", ";", " ", ":", "\n", ","} {
		pairs = append(pairs, "HOST"+after, trap.dir+after)
	}
	return strings.NewReplacer(pairs...).Replace(attempt)
}

// Port returns the port that the host listens on.
func (trap *Trap) Port() string { return trap.port }

// Check fails the test if an attempt with this output has reached the host.
func (trap *Trap) Check(t *testing.T, output string) {
	t.Helper()
	if strings.Contains(output, Marker) {
		t.Errorf("the secret came out: %.2000q", output)
	}
	if after := look(t, trap.dir); after != trap.before {
		t.Errorf("the host changed from %v to %v", trap.before, after)
	}
	if reached := trap.reached.Swap(0); reached > 0 {
		t.Errorf("the host's port was reached %d times", reached)
	}
}

// CheckFolder fails the test if the secret is in a folder of the host, which holds a machine's disk.
func (trap *Trap) CheckFolder(t *testing.T, dir string) {
	t.Helper()
	if strings.Contains(look(t, dir), Marker) {
		t.Errorf("the secret is on the machine's disk")
	}
}

// look returns a description of a folder and everything in it.
func look(t *testing.T, dir string) string {
	t.Helper()
	var seen strings.Builder
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		var data []byte
		if info.Mode().IsRegular() {
			if data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintln(&seen, path, info.Mode(), info.ModTime(), string(data))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return seen.String()
}
