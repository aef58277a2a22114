package shootsecrets

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newManager returns a Manager for a new seed, which calls before at each write.
func newManager(t *testing.T, before func() error) *Manager {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return errors.Join(before(), c.Create(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	return &Manager{Client: c, Reader: c, Clock: clocktesting.NewFakeClock(now), Namespace: "ns", SSHBits: 1024}
}

// TestRotationIsCutOff checks that after any failed write the next try completes the rotation with the same old key.
func TestRotationIsCutOff(t *testing.T) {
	for fails := 1; fails <= 2; fails++ {
		writes := 100
		m := newManager(t, func() error {
			if writes--; writes == 0 {
				return errors.New("killed")
			}
			return nil
		})
		first, err := m.SigningKey(t.Context(), Rotation{})
		if err != nil {
			t.Fatal(err)
		}
		rotation := Rotation{Initiated: &metav1.Time{Time: now.Add(time.Hour)}}
		writes = fails
		if _, err := m.SigningKey(t.Context(), rotation); err == nil {
			t.Fatalf("write %d did not fail", fails)
		}
		writes = 100
		second, err := m.SigningKey(t.Context(), rotation)
		if err != nil || !bytes.Equal(second.Old[KeyRSA], first.Current[KeyRSA]) || bytes.Equal(second.Current[KeyRSA], first.Current[KeyRSA]) {
			t.Errorf("write %d: the old key is lost, or there is no new one: %v", fails, err)
		}
		again, err := m.SigningKey(t.Context(), rotation)
		if err != nil || !bytes.Equal(again.Current[KeyRSA], second.Current[KeyRSA]) {
			t.Errorf("write %d: rotated once more: %v", fails, err)
		}
		rotation.Completing = true
		if last, err := m.SigningKey(t.Context(), rotation); err != nil || last.Old != nil ||
			bytes.Count(last.Bundle(KeyRSA), []byte("BEGIN")) != 1 {
			t.Errorf("write %d: the old key is still there: %v", fails, err)
		}
	}
}

// TestTravels checks that a ShootState restores the same secrets, and that restoring fails if it has none.
func TestTravels(t *testing.T) {
	from, to := newManager(t, fine), newManager(t, fine)
	authorities, err := from.Authorities(t.Context(), Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := from.Persist(t.Context())
	if err != nil || len(state) != 3 {
		t.Fatalf("%d entries, %v", len(state), err)
	}
	if err := to.Restore(t.Context(), nil); err == nil {
		t.Error("restored from nothing")
	}
	for range 2 { // the second time they are there
		if err := to.Restore(t.Context(), state); err != nil {
			t.Fatal(err)
		}
	}
	restored, err := to.Authorities(t.Context(), Rotation{})
	if err != nil || !bytes.Equal(restored[CA].Current[KeyPrivateKey], authorities[CA].Current[KeyPrivateKey]) {
		t.Errorf("another authority: %v", err)
	}
}

func TestClientCertificate(t *testing.T) {
	m := newManager(t, func() error { return nil })
	all, err := m.Authorities(t.Context(), Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	mine, other := all[CAClient].Authority(), all[CA].Authority()
	certificate, key, err := mine.Client("me", []string{"us"}, now, time.Hour)
	if err != nil || len(key) == 0 {
		t.Fatal(err)
	}
	cert, err := parseCertificate(certificate)
	if err != nil || cert.Subject.CommonName != "me" || cert.Subject.Organization[0] != "us" || !cert.NotAfter.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v, %v", cert, err)
	}
	signed := func(by Authority, at time.Time, left time.Duration) bool {
		return by.Signed(certificate, clocktesting.NewFakePassiveClock(at), left)
	}
	if !signed(mine, now, time.Minute) || signed(mine, now, 2*time.Hour) || signed(other, now, time.Minute) ||
		signed(mine, now.Add(-time.Hour), time.Minute) {
		t.Error("it is not clear whose certificate it is, or for how long it is valid")
	}
}

// TestAuthorityOfTheFuture checks that a CA that was made while the clock was ahead is replaced, and one of the past stays.
func TestAuthorityOfTheFuture(t *testing.T) {
	m := newManager(t, func() error { return nil })
	clock := m.Clock.(*clocktesting.FakeClock)
	authority := func(at time.Time) Authority {
		t.Helper()
		clock.SetTime(at)
		all, err := m.Authorities(t.Context(), Rotation{})
		if err != nil {
			t.Fatal(err)
		}
		return all[CA].Authority()
	}
	future := authority(now.AddDate(1, 0, 0))
	present := authority(now)
	if bytes.Equal(future.Certificate, present.Certificate) {
		t.Error("the CA is not valid yet")
	}
	if later := authority(now.AddDate(1, 0, 0)); !bytes.Equal(later.Certificate, present.Certificate) {
		t.Error("a valid CA was replaced")
	}
}
