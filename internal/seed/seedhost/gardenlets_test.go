package seedhost

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/seed"
)

// TestAdoptsDeployedConfiguration checks that a gardenlet that was deployed by its Gardenlet object runs with the
// configuration of that after a restart, without fields of the one that the process is started with.
func TestAdoptsDeployedConfiguration(t *testing.T) {
	h := &Host{cfg: Config{Dir: t.TempDir(), Status: &control.Store{}, Clock: clock.RealClock{}, Selects: func(string) bool { return false }}}
	h.work.Store(&work{deployer: newDeployer(h)})
	deployed, given := gardenletConfiguration(""), gardenletConfiguration("")
	given.SeedConfig.Labels = map[string]string{"former": "label"}
	given.SeedConfig.Spec.Taints = []gardencorev1beta1.SeedTaint{{Key: gardencorev1beta1.SeedTaintProtected}}
	deployed.SeedConfig.Spec.DNS.Provider = nil
	data, err := json.Marshal(record{Checksum: "x", Config: deployed})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(h.recordFile("")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.recordFile(""), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.adopt(&seed.Cluster{}, given); err != nil {
		t.Fatal(err)
	}
	got := h.find("").record.Config.SeedConfig
	if len(got.Labels) > 0 || len(got.Spec.Taints) > 0 || got.Spec.DNS.Provider != nil {
		t.Errorf("%v %v %v", got.Labels, got.Spec.Taints, got.Spec.DNS.Provider)
	}
}
