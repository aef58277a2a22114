package programs

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestGardenlet: Gardener's gardenlet, with the file of gardenlet-config and the proxy that it names, brings its Seed and a Shoot with
// workers to healthy, hibernates it, wakes it up, rotates its SSH keys and deletes it.
func TestGardenlet(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := newLandscape(t, "--controllers", "*,-gardenlet", "--audit-log", audit)
	config := l.run("gardenlet-config", "local")
	l.startGardenlet(config)
	l.eventually("the Seed is ready", l.seedReady)

	l.run("shoot", "create", "one", "--workers", "2")
	l.eventually("the Shoot is healthy", l.shootHealthy)
	l.eventually("its nodes are ready", l.nodesReady(2))
	before := l.sshKeys()
	if len(before) != 1 {
		t.Errorf("the machine knows %d keys, want 1", len(before))
	}

	l.run("shoot", "hibernate", "one")
	l.eventually("the Shoot is hibernated", func(ctx context.Context) error { return l.shootIs(ctx, true) })
	if _, err := l.shootClient(); err == nil {
		t.Error("the API server of the hibernated Shoot answers")
	}
	l.run("shoot", "wake", "one")
	l.eventually("the Shoot is awake", func(ctx context.Context) error { return l.shootIs(ctx, false) })
	l.eventually("it is healthy again", l.shootHealthy)
	l.eventually("its nodes are ready again", l.nodesReady(2))

	l.run("rotate", "ssh-keypair", "dev/one")
	l.eventually("the SSH keys are rotated", func(ctx context.Context) error {
		if err := l.shootHealthy(ctx); err != nil {
			return err
		}
		if after := l.sshKeys(); len(after) != 2 || !slices.Contains(after, before[0]) {
			return fmt.Errorf("the machine knows %q, and before %q", after, before)
		}
		return nil
	})

	l.run("shoot", "delete", "one", "--yes")
	l.eventually("the Shoot is gone", func(ctx context.Context) error {
		shoot := &gardencorev1beta1.Shoot{}
		err := l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "one"}, shoot)
		if err == nil {
			return fmt.Errorf("its last operation is %+v", shoot.Status.LastOperation)
		}
		return client.IgnoreNotFound(err)
	})
	l.eventually("the Seed is still ready", l.seedReady)
	l.nothingForbidden(audit, "gardener.cloud:system:seed:local")
}

// TestGardenletTakesOver: Gardener's gardenlet takes over a Seed with a Shoot of gardenlite's gardenlet, and gives them back. The Shoot's
// data, authorities and kubeconfigs stay.
func TestGardenletTakesOver(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := newLandscape(t, "--audit-log", audit)
	l.run("shoot", "create", "one", "--workers", "1", "--wait")
	before, err := l.shootClient()
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string][]byte{"a": []byte("b")}}
	if _, err := before.CoreV1().Secrets("default").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	works := func(gardenlet string, id func(gardencorev1beta1.Gardener) bool) {
		t.Helper()
		l.eventually(gardenlet+" has reconciled the Shoot", func(ctx context.Context) error {
			shoot := &gardencorev1beta1.Shoot{}
			if err := l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "one"}, shoot); err != nil {
				return err
			}
			if !id(shoot.Status.Gardener) {
				return fmt.Errorf("it is of %+v, and its last operation is %+v", shoot.Status.Gardener, shoot.Status.LastOperation)
			}
			return l.shootHealthy(ctx)
		})
		l.eventually("its node is ready", l.nodesReady(1))
		secret, err := before.CoreV1().Secrets("default").Get(t.Context(), kept.Name, metav1.GetOptions{})
		if err != nil || string(secret.Data["a"]) != "b" {
			t.Errorf("with the kubeconfig of before: %v, %v", secret, err)
		}
	}
	ours := func(g gardencorev1beta1.Gardener) bool { return g.Name == "gardenlet-local" }

	l.restart("--audit-log", audit, "--controllers", "*,-gardenlet")
	stop := l.startGardenlet(l.run("gardenlet-config", "local"))
	works("Gardener's gardenlet", func(g gardencorev1beta1.Gardener) bool { return !ours(g) })
	l.eventually("the Seed is ready", l.seedReady)
	l.nothingForbidden(audit, "gardener.cloud:system:seed:local")

	stop()
	l.restart("--audit-log", audit)
	works("gardenlite's gardenlet", ours)
	l.run("rotate", "ssh-keypair", "dev/one", "--wait")
	l.run("shoot", "delete", "one", "--yes", "--wait")
	l.eventually("the Seed is ready", l.seedReady)
}

// shootIs reports an error unless the Shoot has the state.
func (l *landscape) shootIs(ctx context.Context, hibernated bool) error {
	shoot := &gardencorev1beta1.Shoot{}
	if err := l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "one"}, shoot); err != nil {
		return err
	}
	last := shoot.Status.LastOperation
	if shoot.Status.IsHibernated != hibernated || last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("hibernated is %v, the last operation is %+v", shoot.Status.IsHibernated, last)
	}
	return nil
}

// sshKeys returns the keys with which one may log in to a node of the Shoot.
func (l *landscape) sshKeys() []string {
	l.Helper()
	return strings.FieldsFunc(l.run("ssh", "dev/one", "--", "cat", ".ssh/authorized_keys"), func(r rune) bool { return r == '\n' })
}
