package seedhost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestChanges adds and removes seeds one after the other, and checks which ones the next start has, with --seeds 2.
func TestChanges(t *testing.T) {
	h := &Host{cfg: Config{Dir: t.TempDir()}, count: 2}
	for _, step := range []struct {
		change string // + or -, and the name
		want   []string
	}{
		{"", []string{"local", "local-2"}},
		{"+edge", []string{"local", "local-2", "edge"}},
		{"-local", []string{"local-2", "edge"}},
		{"+far", []string{"local-2", "edge", "far"}},
		{"-edge", []string{"local-2", "far"}},
		{"+local", []string{"local", "local-2", "far"}},
		{"+far", []string{"local", "local-2", "far"}},
		{"-never", []string{"local", "local-2", "far"}},
	} {
		if step.change != "" {
			if err := h.writeChange(step.change[1:], step.change[0] == '+'); err != nil {
				t.Fatal(err)
			}
		}
		c, err := h.readChanges()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.apply(SeedNames(h.count)); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %v, expected %v", step.change, got, step.want)
		}
	}
	// An added seed that a larger --seeds starts, too, starts once.
	if got := (changes{Added: []string{"local-2"}}).apply(SeedNames(2)); len(got) != 2 {
		t.Errorf("%v", got)
	}
	for _, content := range []string{"{", `{"added":["../x"]}`} {
		file := filepath.Join(h.cfg.Dir, statedir.SeedsFile)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := h.readChanges(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", content, err)
		}
		if err := h.writeChange("x", true); err == nil {
			t.Errorf("%s is overwritten", content)
		}
	}
}

func TestCheckSeedName(t *testing.T) {
	for name, valid := range map[string]bool{"edge": true, "e-2": true, strings.Repeat("a", 58): true,
		strings.Repeat("a", 59): false, "": false, "Edge": false, "a.b": false, "-a": false, "a/b": false} {
		if err := checkSeedName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestCheckRemovable checks what is said of a seed that cannot be removed.
func TestCheckRemovable(t *testing.T) {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x",
		Labels: map[string]string{constants.LabelPrefixSeedName + "busy": "true"}}}
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"},
		Spec: corev1beta1.ProjectSpec{Namespace: ptr.To("garden-dev")}}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(shoot, project, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}).Build()
	for _, test := range []struct{ seed, datastore, says string }{
		{"free", "sqlite", ""},
		{"local", "sqlite", ""},
		{"free", "postgres://x", ""},
		{"local", "postgres://x", "other processes on the same datastore may run it"},
		{"busy", "sqlite", "delete or migrate them first: dev/x"},
		{"managed", "sqlite", "ManagedSeed"},
		{"elsewhere", "sqlite", "kubectl annotate seed elsewhere confirmation.gardener.cloud/deletion=true"},
		{"stopped", "sqlite", `start it with "gardenlite seed add stopped"`},
		{"nowhere", "sqlite", `no seed "nowhere"`},
	} {
		h := &Host{cfg: Config{Dir: t.TempDir(), Datastore: test.datastore}, count: 1,
			seeds: &seedClusters{running: map[string]*seed.Cluster{"free": {}, "local": {}, "busy": {}}}}
		h.work.Store(&work{deployer: newDeployer(h)})
		h.work.Load().deployer.add(&unit{name: "managed", record: record{Managed: true}})
		if err := os.WriteFile(statedir.SeedKubeconfigPath(h.cfg.Dir, "stopped"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		err := h.checkRemovable(t.Context(), garden, test.seed)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s with %s: %v", test.seed, test.datastore, err)
		}
	}
}
