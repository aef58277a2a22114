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

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

const (
	operation = "gardener.cloud/operation"
	creator   = "gardener.cloud/created-by"
	force     = "confirmation.gardener.cloud/force-deletion"
)

func bastion(annotations ...string) *gardenoperations.Bastion {
	b := &gardenoperations.Bastion{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		b.Annotations[annotations[i]] = annotations[i+1]
	}
	return b
}

// TestHeartbeat checks that only creation and the operation keepalive set the heartbeat and the expiration of a
// Bastion.
func TestHeartbeat(t *testing.T) {
	const timeToLive = 7 * time.Minute
	start := time.Unix(1_800_000_000, 999)
	clock := clocktesting.NewFakePassiveClock(start)
	def := bastions(clock, timeToLive)
	update := func(b, old *gardenoperations.Bastion) { // as the strategy does
		def.CopyStatus(b, old)
		def.PrepareForUpdate(t.Context(), b, old)
	}
	b := bastion(operation, "keepalive")
	b.Status = lives(start.Add(time.Hour), 1000*time.Hour)
	expect := func(about string, beat time.Time) {
		t.Helper()
		if !b.Status.LastHeartbeatTimestamp.Time.Equal(beat.Truncate(time.Second)) ||
			b.Status.ExpirationTimestamp.Sub(b.Status.LastHeartbeatTimestamp.Time) != timeToLive {
			t.Errorf("%s: heartbeat %s, expires %s", about, b.Status.LastHeartbeatTimestamp, b.Status.ExpirationTimestamp)
		}
		if b.Annotations[operation] == "keepalive" {
			t.Errorf("%s: the annotation stays", about)
		}
	}
	def.PrepareForCreate(t.Context(), b)
	expect("created, with times of its own", start)

	clock.SetTime(start.Add(3 * time.Minute))
	old := b.DeepCopy()
	b.Status = lives(clock.Now(), 1000*time.Hour)
	update(b, old)
	expect("updated, with times of its own", start)

	b.Annotations[operation] = "reconcile"
	update(b, b.DeepCopy())
	expect("another operation", start)
	if b.Annotations[operation] != "reconcile" {
		t.Error("another operation is taken away")
	}

	b.Annotations[operation] = "keepalive"
	old = b.DeepCopy()
	b.Status = lives(start, 1000*time.Hour)
	update(b, old)
	expect("kept alive", clock.Now())
}

// TestTimesAreNotForClients checks that a client that updates the status cannot change the heartbeat and the
// expiration.
func TestTimesAreNotForClients(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	clock := clocktesting.NewFakePassiveClock(start.Add(5 * time.Minute))
	def := bastions(clock, time.Hour)
	for name, test := range map[string]struct {
		change  func(*gardenoperations.Bastion)
		refused string // the field
	}{
		"nothing":              {func(*gardenoperations.Bastion) {}, ""},
		"no times":             {func(b *gardenoperations.Bastion) { b.Status = gardenoperations.BastionStatus{} }, ""},
		"a heartbeat":          {func(b *gardenoperations.Bastion) { b.Status = lives(clock.Now(), time.Hour) }, ""},
		"an earlier heartbeat": {func(b *gardenoperations.Bastion) { b.Status = lives(start.Add(-time.Hour), time.Hour) }, ""},
		"a longer life":        {func(b *gardenoperations.Bastion) { b.Status = lives(start, 1000*time.Hour) }, ""},
		"a shorter life":       {func(b *gardenoperations.Bastion) { b.Status = lives(start, 0) }, ""},
		"a heartbeat to come": {func(b *gardenoperations.Bastion) { b.Status = lives(clock.Now().Add(time.Second), time.Hour) },
			"status.lastHeartbeatTimestamp"},
		"the annotation":         {func(b *gardenoperations.Bastion) { b.Annotations[operation] = "keepalive" }, ""},
		"no owner":               {func(b *gardenoperations.Bastion) { b.OwnerReferences = nil }, ""},
		"another user's":         {func(b *gardenoperations.Bastion) { b.Annotations[creator] = "you" }, "metadata.annotations"},
		"no annotations, so too": {func(b *gardenoperations.Bastion) { b.Annotations = nil }, "metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			old := bastion(creator, "me")
			old.OwnerReferences = []metav1.OwnerReference{{Kind: "Shoot", Name: "s"}}
			old.Status = lives(start, time.Hour)
			b := old.DeepCopy()
			test.change(b)
			b.Status.Ingress = &corev1.LoadBalancerIngress{IP: "127.0.0.2"}
			b.Status.ObservedGeneration = ptr.To[int64](3)
			def.PrepareStatus(t.Context(), b, old)
			errs := def.ValidateStatusUpdate(b, old)
			if test.refused != "" {
				if len(errs) != 1 || errs[0].Type != field.ErrorTypeInvalid || errs[0].Field != test.refused {
					t.Errorf("errors %v", errs)
				}
				return
			}
			want := old.DeepCopy()
			want.Status.Ingress, want.Status.ObservedGeneration = b.Status.Ingress, b.Status.ObservedGeneration
			if len(errs) > 0 || b.Status.Ingress == nil || !resource.Equal(b, want) {
				t.Errorf("errors %v, not %+v but %+v", errs, want, b)
			}
		})
	}
}

func lives(beat time.Time, timeToLive time.Duration) gardenoperations.BastionStatus {
	return gardenoperations.BastionStatus{LastHeartbeatTimestamp: ptr.To(metav1.NewTime(beat)),
		ExpirationTimestamp: ptr.To(metav1.NewTime(beat.Add(timeToLive)))}
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
	ip := &corev1.LoadBalancerIngress{IP: "10.0.0.1"}
	for _, test := range []struct {
		status gardenoperations.BastionStatus
		port   string
		want   [4]string // IP, Port, Heartbeat, Expires
	}{
		{gardenoperations.BastionStatus{}, "", [4]string{"<pending>", "<pending>", "<never>", "<pending>"}},
		{gardenoperations.BastionStatus{Ingress: &corev1.LoadBalancerIngress{}, LastHeartbeatTimestamp: at(-5 * time.Minute),
			ExpirationTimestamp: at(55 * time.Minute)}, "",
			[4]string{"<pending>", "22", "5m ago", "55m"}},
		{gardenoperations.BastionStatus{Ingress: ip, LastHeartbeatTimestamp: at(-time.Hour), ExpirationTimestamp: at(-time.Second)}, "2222",
			[4]string{"10.0.0.1", "2222", "60m ago", "<expired>"}},
		{gardenoperations.BastionStatus{Ingress: &corev1.LoadBalancerIngress{IP: "10.0.0.1", Hostname: "h"}}, "",
			[4]string{"h", "22", "<never>", "<pending>"}},
	} {
		b := &gardenoperations.Bastion{Status: test.status}
		if test.port != "" {
			b.Annotations = map[string]string{"gardenlite.dev/ssh-port": test.port}
		}
		for i, want := range test.want {
			if got := columns[i+2].Value(b); got != want {
				t.Errorf("%s is %v, not %s", columns[i+2].Name, got, want)
			}
		}
	}
	if !columns[3].Wide {
		t.Error("the port is printed without -o wide")
	}
}
