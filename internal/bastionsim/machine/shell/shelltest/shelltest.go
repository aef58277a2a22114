// Package shelltest is the attempts to break out of a simulated machine and to use up its host, and the trap that
// tells whether one of them succeeded. It is data for tests: those of package shell run the attempts as scripts, those
// of package machine as commands and as what is typed, over SSH. Nothing but tests imports it, and it imports nothing
// of the project.
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

// Escapes are attempts to reach the host or to use more of it than a session may. HOST is a folder of the host with
// the file "secret", HOSTPORT a port that the host listens on, HOSTPID a process of the host; Trap.Script fills them
// in. A user of the machine could never have a file there. An attempt that sees the host in another way than by its
// secret prints the marker itself.
var Escapes = scripts(escapes)

// Bombs are attempts to use up what there is. Each has to be ended by a limit.
var Bombs = scripts(bombs)

var title = regexp.MustCompile(`(?m)^-- (.*) --\n`)

// scripts reads scripts by name. A line "-- name --" stands before each.
func scripts(text string) map[string]string {
	all := map[string]string{}
	texts := title.Split(text, -1)[1:]
	for i, found := range title.FindAllStringSubmatch(text, -1) {
		all[found[1]] = strings.TrimSuffix(texts[i], "\n")
	}
	return all
}

// Marker is what no output and no disk of a machine may have: it is in a file and in a variable of the host.
const Marker = "HOST-SECRET-7f3a"

// Trap is what there is of the host to be reached.
type Trap struct {
	dir      string
	port     string
	before   string
	reached  atomic.Int32
	listener net.Listener
}

// New makes a folder of the host with a secret, a variable of this process with it, and a port that listens, and
// remembers what the folder looks like. They go with the test.
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

// Script fills in what an attempt says about the host.
func (trap *Trap) Script(attempt string) string {
	pairs := []string{"HOSTPID", fmt.Sprint(os.Getpid()), "HOSTPORT", trap.port}
	for _, after := range []string{"/", ";", " ", ":", "\n", ","} {
		pairs = append(pairs, "HOST"+after, trap.dir+after)
	}
	return strings.NewReplacer(pairs...).Replace(attempt)
}

// Port is the port of the host that listens.
func (trap *Trap) Port() string { return trap.port }

// Check fails the test if an attempt with this output has come through.
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

// CheckFolder fails the test if the secret is in a folder of the host: that of a machine's disk.
func (trap *Trap) CheckFolder(t *testing.T, dir string) {
	t.Helper()
	if strings.Contains(look(t, dir), Marker) {
		t.Errorf("the secret is on the machine's disk")
	}
}

// look is what there is to see of a folder.
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
