package control

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestList: landscapes that run, that do not, that are broken, and directories that are no landscape's.
func TestList(t *testing.T) {
	root := t.TempDir()
	folder := func(name string, run *statedir.Run) string {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if run != nil {
			if err := statedir.WriteRun(dir, run); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	started := time.Now().UTC().Truncate(time.Second)
	run := statedir.Run{Name: "a", PID: 7, URL: "https://127.0.0.1:1", StartedAt: started, Datastore: "sqlite",
		Control: filepath.Join(root, "nothing.sock")}
	stopped, silent, alone, broken := folder("stopped", &run), folder("silent", &run), folder("gardenlet-x", nil),
		folder("broken", nil)
	if err := os.WriteFile(filepath.Join(stopped, "data"), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, statedir.RunFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := statedir.Lock(silent)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock() //nolint:errcheck // the test ends
	all := List(t.Context(), []string{stopped, silent, alone, broken, filepath.Join(root, "gone")})
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	if l := all[0]; l.State != StateStopped || l.Name != "a" || l.URL != "" || l.PID != 0 || l.Size < 64<<10 ||
		!l.StartedAt.Equal(started) {
		t.Errorf("stopped: %+v", l)
	}
	if l := all[1]; l.State != stateUnknown || l.PID != 7 || l.Message == "" {
		t.Errorf("silent: %+v", l)
	}
	if l := all[2]; l.State != stateUnknown || l.Message == "" || l.Name != "broken" || l.Dir != broken {
		t.Errorf("broken: %+v", l)
	}
}
