package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// killedUnderShoots kills the process at random moments of a Shoot's operations. After the next start each
// operation completes, addresses and certificates are as before, and in the end nothing is left.
func (l *landscape) killedUnderShoots(t *testing.T, random *rand.Rand) {
	before := l.mustInventory(t)
	for round := range kills() {
		k := &killedShoot{l: l, random: random}
		if round == 0 {
			k.explains(t)
		}
		k.live(t, round)
	}
	l.becomes(t, before, "after all Shoots were deleted")
}

// killedWhileRolling kills the process while machines of a Shoot are replaced one after the other. When that is
// over there are as many Nodes as machines, all of them ready: no Node of a deleted machine is left.
func (l *landscape) killedWhileRolling(t *testing.T, random *rand.Rand) {
	const machines = 4
	k := &killedShoot{l: l, random: random, s: &shoot{l: l, name: "rolling"}}
	pool := func(machineType string) string {
		return fmt.Sprintf(`{"spec":{"provider":{"workers":[{"name":"worker","minimum":%d,"maximum":%[1]d,"maxSurge":1,`+
			`"machine":{"type":%q,"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]}]}}}`, machines, machineType)
	}
	l.newShoot(t, k.s.name, func(spec map[string]any) {
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["minimum"], worker["maximum"] = machines, machines
	})
	k.s.waitForSucceeded(t)
	k.client = clientOf(t, k.s.admin(t))
	for round := range 2 * kills() {
		k.disturb(t, "a rolling update", 5*time.Second, func() { k.s.patch(t, pool([]string{"local-large", "local"}[round%2])) })
		k.s.waitForSucceeded(t)
		k.s.nodes(t, k.client, machines)
	}
	k.s.delete(t)
	k.s.waitGone(t)
}

// killedShoot is a Shoot whose operations are disturbed.
type killedShoot struct {
	l      *landscape
	random *rand.Rand

	s         *shoot
	addresses any
	key       map[string][]byte
	client    kubernetes.Interface
}

// live goes through a Shoot's life: five operations, each killed once.
func (k *killedShoot) live(t *testing.T, round int) {
	t.Helper()
	k.s = &shoot{l: k.l, name: fmt.Sprintf("k%d", round)}
	k.disturb(t, "creation", 4*time.Second, func() {
		k.l.newShoot(t, k.s.name, func(spec map[string]any) {
			spec["seedName"] = "local"
			spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)["minimum"] = 1
		})
	})
	k.addresses = addresses(k.s.waitForSucceeded(t))
	k.key = k.s.sshKey(t)
	k.client = clientOf(t, k.s.admin(t))
	k.s.nodes(t, k.client, 1)
	keep(t, k.client)

	k.disturb(t, "hibernation", 2*time.Second, func() { k.s.hibernate(t) })
	k.s.waitForSucceeded(t)
	k.disturb(t, "waking", 3*time.Second, func() { k.s.patch(t, `{"spec":{"hibernation":{"enabled":false}}}`) })
	k.isAsBefore(t, "waking")
	k.disturb(t, "a rolling update", 3*time.Second, func() {
		k.s.patch(t, `{"spec":{"provider":{"workers":[{"name":"worker","minimum":1,"maximum":3,`+
			`"machine":{"type":"local-large","image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]}]}}}`)
	})
	k.isAsBefore(t, "a rolling update")
	k.disturb(t, "migration", 5*time.Second, func() { k.s.moveTo(t, "local-2") })
	k.s.expectSeed(t, "local-2")
	k.isAsBefore(t, "migration")
	k.disturb(t, "deletion", 3*time.Second, func() { k.s.delete(t) })
	k.s.waitGone(t)
}

// explains makes a failed test log the BackupEntries in the garden and the seeds, and the lines of the log about
// them: a migration waits for them last.
func (k *killedShoot) explains(t *testing.T) {
	t.Cleanup(func() {
		if !t.Failed() || !k.l.isRunning() {
			return
		}
		for _, cluster := range append([]string{""}, k.l.names...) {
			kubeconfig := filepath.Join(k.l.dir, strings.TrimSuffix("kubeconfig-seed-"+cluster, "-seed-"))
			out, err := exec.Command(kubectlBinary, "--kubeconfig", kubeconfig, "get", "backupentries", "-A", "-o", "json").CombinedOutput()
			t.Logf("%q: %v: %s", cluster, err, strings.Join(strings.Fields(string(out)), " "))
		}
		lines := k.l.logged(t, 0, "ackupentry", "ackupEntry")
		t.Log(strings.Join(lines[max(0, len(lines)-30):], "\n"))
	})
}

// disturb requests something, kills the process a while later, and starts it again.
func (k *killedShoot) disturb(t *testing.T, what string, most time.Duration, ask func()) {
	t.Helper()
	ask()
	delay := within(k.random, most)
	t.Logf("%s: killed %s after %s was asked for", k.s.name, delay.Round(time.Millisecond), what)
	k.l.killAfter(delay)
	k.l.up(t)
}

// isAsBefore waits until an operation has completed, and checks what must not have changed.
func (k *killedShoot) isAsBefore(t *testing.T, after string) {
	t.Helper()
	if now := addresses(k.s.waitForSucceeded(t)); !reflect.DeepEqual(k.addresses, now) {
		t.Errorf("after %s the addresses were %v and are %v", after, k.addresses, now)
	}
	if !reflect.DeepEqual(k.key, k.s.sshKey(t)) {
		t.Errorf("after %s the SSH key has changed", after)
	}
	eventually(t, shootTimeout, func(context.Context) error {
		_, err := k.client.Discovery().ServerVersion()
		return err
	})
	isKept(t, k.client)
	k.s.nodes(t, k.client, 1)
	machines := k.s.machines(t)
	eventually(t, shootTimeout, func(context.Context) error {
		if machines = k.s.machines(t); len(machines) != 1 {
			return fmt.Errorf("after %s there are the machines %v", after, machines)
		}
		return nil
	})
	seed, _, _ := unstructured.NestedString(k.s.must(t).Object, "status", "seedName")
	for _, other := range k.l.names {
		_, err := k.l.seeds[other].CoreV1().Namespaces().Get(t.Context(), k.s.id(), metav1.GetOptions{})
		if other != seed && !apierrors.IsNotFound(err) {
			t.Errorf("after %s the Shoot is on %s, and there is a namespace on %s: %v", after, seed, other, err)
		}
	}
}
