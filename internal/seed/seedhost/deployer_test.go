package seedhost

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
)

// TestDeploysAgainAfterFailure checks that a gardenlet whose deployment has failed is deployed again with the same
// configuration, and that one whose deployment has succeeded is not.
func TestDeploysAgainAfterFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// No seed can be started in a state directory that is a file.
	d := &deployer{h: &Host{cfg: Config{Dir: file, Status: &control.Store{}, Clock: clock.RealClock{}}}, units: map[string]*unit{}}
	g := deployment.Gardenlet{Target: deployment.Target{SeedName: "x"}}
	deploy := func() (failed bool) {
		t.Helper()
		d.h.cfg.Status.Remove(GardenletName + " x")
		if err := d.Deploy(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		d.working.Wait()
		for _, c := range d.h.cfg.Status.Components() {
			failed = failed || c.Name == GardenletName+" x" && c.State == control.StateFailed
		}
		return failed
	}
	if !deploy() {
		t.Fatal("a seed has been started in a file")
	}
	if !deploy() {
		t.Error("the gardenlet that has failed is not deployed again")
	}
	checksum, err := g.Checksum()
	if err != nil {
		t.Fatal(err)
	}
	d.find("x").record.Checksum = checksum
	if deploy() {
		t.Error("a gardenlet that has been deployed is deployed again")
	}
}
