package operations

import (
	"testing"
	"time"

	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const (
	operation = "gardener.cloud/operation"
	force     = "confirmation.gardener.cloud/force-deletion"
)

func bastion(annotations ...string) *gardenoperations.Bastion {
	b := &gardenoperations.Bastion{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		b.Annotations[annotations[i]] = annotations[i+1]
	}
	return b
}

// TestHeartbeat is the life of a Bastion: created, kept alive, and not to be prolonged otherwise.
func TestHeartbeat(t *testing.T) {
	start := time.Unix(1_800_000_000, 999)
	clock := clocktesting.NewFakePassiveClock(start)
	def := bastions(clock)
	b := bastion(operation, "keepalive")
	expect := func(about string, beat time.Time) {
		t.Helper()
		if !b.Status.LastHeartbeatTimestamp.Time.Equal(beat.Truncate(time.Second)) || b.Status.ExpirationTimestamp.Sub(b.Status.LastHeartbeatTimestamp.Time) != TimeToLive {
			t.Errorf("%s: heartbeat %s, expires %s", about, b.Status.LastHeartbeatTimestamp, b.Status.ExpirationTimestamp)
		}
		if _, ok := b.Annotations[operation]; ok {
			t.Errorf("%s: the annotation stays", about)
		}
	}
	def.PrepareForCreate(t.Context(), b)
	expect("created", start)

	clock.SetTime(start.Add(30 * time.Minute))
	def.PrepareForUpdate(t.Context(), b, b.DeepCopy())
	expect("updated", start)
	b.Annotations[operation] = "keepalive"
	def.PrepareForUpdate(t.Context(), b, b.DeepCopy())
	expect("kept alive", clock.Now())

	b.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(start.Add(1000 * time.Hour)))
	def.PrepareStatus(t.Context(), b, b.DeepCopy())
	expect("prolonged through the status", clock.Now())

	ahead := b.DeepCopy()
	ahead.Status.LastHeartbeatTimestamp = ptr.To(metav1.NewTime(clock.Now().Add(time.Second)))
	if errs := def.ValidateStatusUpdate(ahead, b); len(errs) != 1 || errs[0].Type != field.ErrorTypeInvalid {
		t.Errorf("a heartbeat to come: %v", errs)
	}
	ahead.Status.Ingress = &corev1.LoadBalancerIngress{}
	def.PrepareForUpdate(t.Context(), ahead, b)
	if ahead.Status.Ingress != nil || !ahead.Status.LastHeartbeatTimestamp.Equal(b.Status.LastHeartbeatTimestamp) {
		t.Errorf("status written with the Bastion: %+v", ahead.Status)
	}

	b.Status.LastHeartbeatTimestamp = nil
	def.PrepareStatus(t.Context(), b, b.DeepCopy())
	if errs := def.ValidateStatusUpdate(b, b); len(errs) != 1 || errs[0].Field != "status.lastHeartbeatTimestamp" {
		t.Errorf("without a heartbeat: %v", errs)
	}
}

func TestGeneration(t *testing.T) {
	other := bastion()
	other.Spec.SSHPublicKey = "k"
	for name, test := range map[string]struct {
		b, old *gardenoperations.Bastion
		moves  bool
	}{
		"nothing":               {bastion(), bastion(), false},
		"spec":                  {other, bastion(), true},
		"keepalive":             {bastion(operation, "keepalive"), bastion(), false},
		"reconcile":             {bastion(operation, "reconcile"), bastion(), true},
		"force deletion":        {bastion(force, "true"), bastion(), true},
		"force deletion, still": {bastion(force, "true"), bastion(force, "true"), false},
	} {
		if got := bastionSpecChanged(test.b, test.old); got != test.moves {
			t.Errorf("%s: the generation moves: %t", name, got)
		}
	}
}

func TestColumns(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(d))) }
	columns := bastionColumns(clocktesting.NewFakePassiveClock(now))
	for _, test := range []struct {
		status gardenoperations.BastionStatus
		want   [3]string // IP, Heartbeat, Expires
	}{
		{gardenoperations.BastionStatus{}, [3]string{"<pending>", "<never>", "<pending>"}},
		{gardenoperations.BastionStatus{Ingress: &corev1.LoadBalancerIngress{}, LastHeartbeatTimestamp: at(-5 * time.Minute), ExpirationTimestamp: at(55 * time.Minute)},
			[3]string{"<pending>", "5m ago", "55m"}},
		{gardenoperations.BastionStatus{Ingress: &corev1.LoadBalancerIngress{IP: "10.0.0.1"}, LastHeartbeatTimestamp: at(-time.Hour), ExpirationTimestamp: at(-time.Second)},
			[3]string{"10.0.0.1", "60m ago", "<expired>"}},
		{gardenoperations.BastionStatus{Ingress: &corev1.LoadBalancerIngress{IP: "10.0.0.1", Hostname: "h"}}, [3]string{"h", "<never>", "<pending>"}},
	} {
		b := &gardenoperations.Bastion{Status: test.status}
		for i, want := range test.want {
			if got := columns[i+2].Value(b); got != want {
				t.Errorf("%s is %v, not %s", columns[i+2].Name, got, want)
			}
		}
	}
}
