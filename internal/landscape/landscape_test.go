package landscape

import (
	"os"
	"testing"

	"k8s.io/utils/clock"

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
