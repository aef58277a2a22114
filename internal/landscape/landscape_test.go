package landscape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
)

// TestInterruptedStartKeepsPorts checks that a start that ends before the API servers listen keeps the ports of the last run.
func TestInterruptedStartKeepsPorts(t *testing.T) {
	dir, err := os.MkdirTemp("", "l")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	last := &statedir.Run{Name: "x", Port: 23456, PortChosen: true, Datastore: "memory", SeedPorts: map[string]int{"local": 23457}}
	if err := statedir.WriteRun(dir, last); err != nil {
		t.Fatal(err)
	}
	l := &Landscape{cfg: Config{Name: "x", Dir: dir, BindAddress: DefaultBindAddress, Datastore: "memory", Clock: clock.RealClock{}},
		stop: func() {}, done: make(chan struct{})}
	l.supervisor = supervisor.Supervisor{Status: &l.store, Clock: l.cfg.Clock}
	if _, _, err := l.announce(); err != nil {
		t.Fatal(err)
	}
	if err := l.close(); err != nil { // killed, or stopped because the datastore does not answer
		t.Fatal(err)
	}
	run, err := statedir.ReadRun(dir)
	if err != nil || run.Port != last.Port || run.SeedPorts["local"] != 23457 {
		t.Errorf("%+v %v", run, err)
	}
}

// TestOtherDatastore checks that a landscape does not start without the data of its last run.
func TestOtherDatastore(t *testing.T) {
	l := &Landscape{cfg: Config{Dir: t.TempDir(), Datastore: "memory"}}
	folder := filepath.Join(l.cfg.Dir, statedir.DataFolder, statedir.GardenCluster)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, datastore.FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for previous, says := range map[string]string{
		"": "", "memory": "", "postgres": "", "sqlite": "is in sqlite, not in memory", "nats": "NATS is not supported any more; use sqlite",
	} {
		err := l.checkDatastore(&statedir.Run{Datastore: previous})
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v; it should say %q", previous, err, says)
		}
	}
}
