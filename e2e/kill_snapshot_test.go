package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestKilledSnapshots saves a landscape at random moments of what happens to its Shoot: what begins with each snapshot converges. Then it
// kills what saves and restores.
func TestKilledSnapshots(t *testing.T) {
	t.Parallel()
	random := killMoments(t)
	l := stoppedLandscape(t)
	l.up(t, "--seeds", "2")
	inTurn(t,
		turn{"at random moments", func(t *testing.T) { l.savedAnywhere(t, random) }},
		turn{"saving", func(t *testing.T) { l.killedWhileSaving(t, random) }},
		turn{"restoring", func(t *testing.T) { l.killedWhileRestoring(t, random) }},
	)
}

// savedAnywhere saves the landscape after each of random changes of a Shoot, often before it is completed, and while the Shoot is
// created and deleted.
func (l *landscape) savedAnywhere(t *testing.T, random *rand.Rand) {
	rounds := 2
	if testutil.Soaking() {
		rounds = 50
	}
	s := &shoot{l: l, name: "saved"}
	w := &wishes{k: &killedShoot{l: l, random: random, s: s}, seed: "local", machines: 1}
	saved := func(what string, most time.Duration) (copied *wishes) {
		<-time.After(within(random, most)) // a random moment
		gardenlite(t, l.dir, "snapshot", "save", "s").OK(t)
		t.Logf("saved after %s was asked for", what)
		other := stoppedLandscape(t)
		other.up(t, "--seeds", "2", "--from", filepath.Join(l.dir, "snapshots", "s.tar.zst"))
		gardenlite(t, l.dir, "snapshot", "delete", "s").OK(t)
		there := *w
		there.k = &killedShoot{l: other, random: random, s: &shoot{l: other, name: s.name}}
		return &there
	}
	ended := func(there *wishes) {
		there.k.l.expectNothingForbidden(t)
		there.k.l.kill()
	}
	l.newShoot(t, s.name, func(spec map[string]any) {
		spec["seedName"] = w.seed
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["minimum"], worker["maximum"] = w.machines, w.machines
	})
	there := saved("creation", 5*time.Second)
	there.k.s.waitForSucceeded(t)
	there.k.client = clientOf(t, there.k.s.admin(t))
	keep(t, there.k.client)
	there.come(t)
	ended(there)
	s.waitForSucceeded(t)
	w.k.client = clientOf(t, s.admin(t))
	keep(t, w.k.client)
	for range rounds {
		what, ask := w.next(random)
		ask(t)
		there := saved(what, 4*time.Second)
		if there.k.s.waitForSucceeded(t); !there.asleep {
			there.k.client = clientOf(t, there.k.s.admin(t))
		}
		there.come(t)
		ended(there)
	}
	w.come(t)
	s.delete(t)
	there = saved("deletion", 2*time.Second)
	there.k.s.waitGone(t)
	ended(there)
	s.waitGone(t)
}

// killedWhileSaving kills what saves: snapshots of before stay, and one that is there is complete.
func (l *landscape) killedWhileSaving(t *testing.T, random *rand.Rand) {
	l.mark(t, "saved")
	gardenlite(t, l.dir, "snapshot", "save", "kept").OK(t)
	l.mark(t, "later")
	for n := range 2 * kills() {
		killedCommand(t, within(random, 60*time.Millisecond), "snapshot", "save", fmt.Sprintf("s%d", n), "--data-dir", l.dir)
	}
	gardenlite(t, l.dir, "snapshot", "save", "last").OK(t)
	var all []struct{ Name, Error string }
	must(t, json.Unmarshal([]byte(gardenlite(t, l.dir, "snapshot", "list", "-o", "json").OK(t).Stdout), &all))
	names := map[string]bool{}
	for _, s := range all {
		if names[s.Name] = true; s.Error != "" {
			t.Errorf("%s: %s", s.Name, s.Error)
		}
	}
	if !names["kept"] || !names["last"] {
		t.Errorf("there are %v", all)
	}
}

// killedWhileRestoring kills what restores: the landscape starts as it was, or as it was saved.
func (l *landscape) killedWhileRestoring(t *testing.T, random *rand.Rand) {
	for range 2 * kills() {
		l.stop(t)
		gardenlite(t, l.dir, "snapshot", "restore", "last", "--yes").OK(t)
		killedCommand(t, within(random, 80*time.Millisecond), "snapshot", "restore", "kept", "--yes", "--data-dir", l.dir)
		l.up(t, "--seeds", "2")
		l.marked(t, "saved", "")
		if _, err := os.Stat(filepath.Join(l.dir, "restoring")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a restore is left: %v", err)
		}
	}
}

// killedCommand runs gardenlite, and kills it after a delay.
func killedCommand(t *testing.T, delay time.Duration, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), delay)
	defer cancel()
	_ = exec.CommandContext(ctx, binary, args...).Run() // killed, or not
}
