package landscape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/control"
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

// TestShowDatastore checks that a landscape whose datastore does not answer is not Ready, and neither are the clusters that use it.
func TestShowDatastore(t *testing.T) {
	for shared, failed := range map[bool]string{true: "garden,seed-local", false: "garden"} {
		s := control.Status{State: control.StateReady, Run: statedir.Run{Datastore: "postgres"}, Clusters: []control.Cluster{
			{Name: "garden", State: control.StateReady}, {Name: "seed-local", State: control.StateReady},
			{Name: "shoot--dev--x", State: control.StateStopped}},
			Components: []control.Component{{Name: "garden"}, {Name: "seed-local"}, {Name: "scheduler"}}}
		showDatastore(&s, datastore.ErrNoAnswer, shared)
		var names []string
		for _, c := range s.Clusters {
			if c.State == control.StateFailed && c.Message == "the datastore does not answer" {
				names = append(names, c.Name)
			}
		}
		var components []string
		for _, c := range s.Components[1:] {
			if c.State == control.StateFailed {
				components = append(components, c.Name)
			}
		}
		if got := strings.Join(names, ","); got != failed || s.State != control.StateFailed || len(components) != len(names) ||
			!strings.HasPrefix(s.Components[0].Message, "the datastore does not answer (postgres): start it again") {
			t.Errorf("%s do not answer; the status is %+v", got, s)
		}
	}
}
