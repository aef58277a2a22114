package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// changeSeeds adds a seed, uses it over a restart, and removes it, and then the landscape's first seed.
func (l *landscape) changeSeeds(t *testing.T) {
	gardenlite(t, l.dir, "seed", "add", "far").OK(t).Shows(t, "Seed far is ready")
	if r := gardenlite(t, l.dir, "seed", "add", "far"); r.Code != 1 || !strings.Contains(r.Stderr, "runs already") {
		t.Errorf("adding it twice: exit status %d, %s", r.Code, r.Stderr)
	}
	if r := gardenlite(t, l.dir, "seed", "add", "Far"); r.Code != 2 || !strings.Contains(r.Stderr, "lower case") {
		t.Errorf("a wrong name: exit status %d, %s", r.Code, r.Stderr)
	}
	gardenlite(t, l.dir, "shoot", "create", "on-far", "--workers", "0", "--seed", "far", "--wait").OK(t)
	refused := func() {
		t.Helper()
		r := gardenlite(t, l.dir, "seed", "remove", "far", "--yes")
		if r.Code != 1 ||
			!strings.Contains(r.Stderr, "there are Shoots on seed far: delete or migrate them first: dev/on-far") {
			t.Errorf("removing a seed with a Shoot: exit status %d, %s", r.Code, r.Stderr)
		}
	}
	refused()
	address := seedAdmin(t, l.dir, "far").CoreV1().RESTClient().Get().URL().Host
	l.stop(t)
	l.up(t)
	if now := seedAdmin(t, l.dir, "far").CoreV1().RESTClient().Get().URL().Host; now != address {
		t.Errorf("after a restart the seed is at %s, before at %s", now, address)
	}
	refused()
	gardenlite(t, l.dir, "shoot", "delete", "on-far", "--yes", "--wait").OK(t)
	gardenlite(t, l.dir, "seed", "remove", "far", "--yes").OK(t).Shows(t, "Seed far is gone")
	kubeconfig := filepath.Base(statedir.SeedKubeconfigPath("", "far"))
	for _, path := range []string{"data/seed-far", "pki/seed-far", kubeconfig} {
		if _, err := os.Stat(filepath.Join(l.dir, path)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if r := gardenlite(t, l.dir, "status"); strings.Contains(r.OK(t).Stdout, "far") {
		t.Errorf("the status still has the seed: %s", r.Stdout)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error { // the garbage collector deletes what the Seed owned
		secrets, err := l.kube.CoreV1().Secrets("garden").List(ctx, metav1.ListOptions{})
		for _, secret := range secrets.Items {
			if strings.Contains(secret.Name, "far") {
				return fmt.Errorf("the Secret %s is left", secret.Name)
			}
		}
		return err
	})

	gardenlite(t, l.dir, "seed", "remove", "local", "--yes").OK(t)
	r := gardenlite(t, l.dir, "seed", "remove", "local", "--yes")
	if r.Code != 1 || !strings.Contains(r.Stderr, "no seed") {
		t.Errorf("removing it twice: exit status %d, %s", r.Code, r.Stderr)
	}
	gardenlite(t, l.dir, "seed", "add", "local").OK(t)
	l.connect(t)
}
