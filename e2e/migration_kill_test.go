package e2e

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// A control plane that moves is at a place between 0 and 300: with the old seed until 100, with none until 200, and with the
// new one.
const (
	leaving  = 0
	between  = 100
	arriving = 200
	arrived  = 300
)

// placeOf says how far a Shoot has come on its way to a seed; -1 before the migration begins.
func placeOf(shoot *unstructured.Unstructured, to string) int {
	kind, state, _ := lastOperation(shoot)
	percent, _, _ := unstructured.NestedInt64(shoot.Object, "status", "lastOperation", "progress")
	on, _, _ := unstructured.NestedString(shoot.Object, "status", "seedName")
	switch {
	case kind == "Migrate" && state == "Succeeded":
		return between
	case kind == "Migrate":
		return leaving + int(min(percent, 99))
	case kind == "Restore" && state == "Succeeded", on == to && kind != "Restore":
		return arrived
	case kind == "Restore":
		return arriving + int(min(percent, 99))
	}
	return -1
}

// stateWritten is the moment at which the garden has all that the new seed needs of the old one.
const stateWritten = -2

// migrationKills are the places at which the process is killed, move for move: 4 in all, in the long form 20.
func migrationKills() [][]int {
	if testutil.Soaking() {
		return [][]int{
			{leaving}, {leaving + 20}, {stateWritten}, {leaving + 70}, {leaving + 90}, {between}, {arriving}, {arriving + 30},
			{arriving + 60}, {arriving + 90}, {arrived},
			{leaving, between}, {stateWritten, arriving}, {leaving + 40, arriving + 50}, {leaving + 60, stateWritten, arriving + 80},
		}
	}
	return [][]int{{leaving + 1, between}, {stateWritten, arriving + 50}}
}

// TestKilledUnderMigration kills the process when a control plane that moves has come to certain places. After the next start
// it arrives, with all that is the Shoot's, and nothing of it is left behind.
func TestKilledUnderMigration(t *testing.T) {
	t.Parallel()
	l := newLandscape(t, "--seeds", "2")
	k := &killedShoot{l: l}
	k.s = l.newShoot(t, "moved", func(spec map[string]any) {
		spec["seedName"] = "local"
		spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)["minimum"] = 1
	})
	k.addresses = addresses(k.s.succeeds(t))
	k.key = k.s.sshKey(t)
	k.client = clientOf(t, k.s.admin(t)) // of before, for all that comes
	nodes := k.s.nodes(t, k.client, 1)
	keep(t, k.client)
	token, ca := serviceAccountToken(t, k.client), k.s.ca(t)

	from, to := "local", "local-2"
	for _, places := range migrationKills() {
		what := fmt.Sprintf("a migration that was killed at %v", places)
		written := k.stateVersion(t)
		k.s.moveTo(t, to)
		for _, place := range places {
			k.killAt(t, place, to, written)
		}
		k.s.isOn(t, to)
		k.isAsBefore(t, what)
		if !reflect.DeepEqual(ca, k.s.ca(t)) || !tokenWorks(t, k.s, token) {
			t.Errorf("after %s the authority is another one, or a token of before is refused", what)
		}
		if now := k.s.nodes(t, k.client, 1); !reflect.DeepEqual(nodes, now) {
			t.Errorf("after %s the nodes were %v and are %v", what, nodes, now)
		}
		k.leftNothingOn(t, from, what)
		from, to = to, from
	}
	l.refusesNothing(t)
}

// stateVersion is that of the ShootState, "" if there is none.
func (k *killedShoot) stateVersion(t *testing.T) string {
	t.Helper()
	state, err := k.l.at("shootstates", shootNamespace).Get(t.Context(), k.s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	must(t, err)
	return state.GetResourceVersion()
}

// killAt kills the process as soon as the Shoot has come to a place or is beyond it, and starts it again. before is the
// version of the ShootState from before the move.
func (k *killedShoot) killAt(t *testing.T, place int, to, before string) {
	t.Helper()
	resource, name := "shoots", k.s.name
	if place == stateWritten {
		resource = "shootstates"
	}
	ctx, cancel := context.WithTimeout(t.Context(), shootTimeout)
	defer cancel()
	// The first events are what there is already.
	watched, err := k.l.at(resource, shootNamespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	must(t, err)
	defer watched.Stop()
	for event := range watched.ResultChan() {
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Deleted {
			continue
		}
		if place == stateWritten && obj.GetResourceVersion() != before || place != stateWritten && placeOf(obj, to) >= place {
			k.l.kill()
			operation, _, _ := unstructured.NestedMap(obj.Object, "status", "lastOperation")
			t.Logf("killed at %d: %v", place, operation)
			k.l.up(t)
			return
		}
	}
	t.Fatalf("Shoot %s does not come to %d: %v", k.s.name, place, k.s.must(t).Object["status"])
}

// leftNothingOn looks for what a seed still has of the Shoot.
func (k *killedShoot) leftNothingOn(t *testing.T, seed, after string) {
	t.Helper()
	api := k.l.seeds[seed].CoreV1().RESTClient()
	paths := []string{"/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}
	for _, kind := range []string{"clusters", "backupentries", "infrastructures", "controlplanes", "workers", "networks",
		"operatingsystemconfigs", "dnsrecords"} {
		paths = append(paths, "/apis/extensions.gardener.cloud/v1alpha1/"+kind)
	}
	eventually(t, waitTimeout, func(context.Context) error {
		for _, path := range paths {
			list, err := api.Get().AbsPath(path).Do(t.Context()).Raw()
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if strings.Contains(string(list), k.s.id()) {
				return fmt.Errorf("after %s seed %s has something of it in %s: %s", after, seed, path, list)
			}
		}
		return nil
	})
}
