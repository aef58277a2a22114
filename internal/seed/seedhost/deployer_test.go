package seedhost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
	"github.com/gardenlite/gardenlite/internal/shootplane"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestDeploysAgainAfterFailure checks that a gardenlet whose deployment has failed is deployed again with the same
// configuration, and that one whose deployment has succeeded is not.
func TestDeploysAgainAfterFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// No seed can be started in a state directory that is a file.
	d := newDeployer(&Host{cfg: Config{Dir: file, Status: &control.Store{}, Clock: clock.RealClock{}, Selects: all}})
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

// TestDeploysAfterFailedResumption checks that a gardenlet that could not run again after a restart is deployed again.
func TestDeploysAfterFailedResumption(t *testing.T) {
	dir := t.TempDir()
	d := newDeployer(&Host{cfg: Config{Dir: dir, Status: &control.Store{}, Clock: clock.RealClock{}, Selects: all}})
	g := deployment.Gardenlet{Target: deployment.Target{SeedName: "x"}}
	checksum, err := g.Checksum()
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		d.h.recordFile("x"):                     `{"checksum":"` + checksum + `","managed":true}`,
		filepath.Join(dir, statedir.DataFolder): "", // no seed can store data in a file
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.resume(); err != nil {
		t.Fatal(err)
	}
	for _, attempt := range []string{"resumption", "deployment"} {
		d.working.Wait()
		if components := d.h.cfg.Status.Components(); !slices.ContainsFunc(components, func(c control.Component) bool {
			return c.Name == GardenletName+" x" && c.State == control.StateFailed
		}) {
			t.Errorf("the %s has not failed: %+v", attempt, components)
		}
		d.h.cfg.Status.Remove(GardenletName + " x")
		if err := d.Deploy(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	d.working.Wait()
}

// TestStopInterruptsDeployment checks that the landscape does not wait for a deployment when it is stopped.
func TestStopInterruptsDeployment(t *testing.T) {
	d := newDeployer(&Host{cfg: Config{Status: &control.Store{}, Clock: clock.RealClock{}, Selects: all},
		shoots: shootplane.NewHost(shootplane.HostConfig{Dir: t.TempDir(), Clock: clock.RealClock{}})})
	begun := make(chan struct{})
	d.work(&unit{name: "x"}, func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	<-begun
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}
