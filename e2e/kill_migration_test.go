package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// The places of a control plane during a migration, between 0 and 300: it belongs to the old seed until 100, to none
// until 200, and then to the new seed.
const (
	leaving  = 0
	between  = 100
	arriving = 200
	arrived  = 300
)

// placeOf returns how far a Shoot's migration to a seed has come, or -1 before the migration begins.
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

// stateWritten stands for the moment at which the garden has all that the new seed needs of the old one.
const stateWritten = -2

// migrationKills returns for each migration the places at which the process is killed: 4 in total, in the soak 20.
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

// killedUnderMigration kills the process at certain places of a migration. After the next start the migration
// completes, the Shoot has all that it had, and nothing is left on the old seed.
func (l *landscape) killedUnderMigration(t *testing.T, _ *rand.Rand) {
	k := &killedShoot{l: l}
	k.s = l.newShoot(t, "moved", func(spec map[string]any) {
		spec["seedName"] = "local"
		spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)["minimum"] = 1
	})
	k.addresses = addresses(k.s.waitForSucceeded(t))
	k.key = k.s.sshKey(t)
	k.client = clientOf(t, k.s.admin(t)) // it has to work after each migration
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
		k.s.expectSeed(t, to)
		k.isAsBefore(t, what)
		if !reflect.DeepEqual(ca, k.s.ca(t)) {
			t.Errorf("after %s the authority is another one", what)
		}
		k.s.wantToken(t, token)
		if now := k.s.nodes(t, k.client, 1); !reflect.DeepEqual(nodes, now) {
			t.Errorf("after %s the nodes were %v and are %v", what, nodes, now)
		}
		k.leftNothingOn(t, from, what)
		from, to = to, from
	}
	k.s.delete(t)
	k.s.waitGone(t)
}

// stateVersion returns the resource version of the ShootState, or "" if there is none.
func (k *killedShoot) stateVersion(t *testing.T) string {
	t.Helper()
	state, err := k.l.at("shootstates", shootNamespace).Get(t.Context(), k.s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	must(t, err)
	return state.GetResourceVersion()
}

// killAt kills the process as soon as the migration has reached a place or is beyond it, and starts it again. before
// is the version of the ShootState from before the migration.
func (k *killedShoot) killAt(t *testing.T, place int, to, before string) {
	t.Helper()
	resource, name := "shoots", k.s.name
	if place == stateWritten {
		resource = "shootstates"
	}
	ctx, cancel := context.WithTimeout(t.Context(), shootTimeout)
	defer cancel()
	// The watch begins with the existing objects.
	watched, err := k.l.watched(t, resource, shootNamespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
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

// leftNothingOn waits until a seed has no object of the Shoot.
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
