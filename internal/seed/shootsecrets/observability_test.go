package shootsecrets

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"golang.org/x/crypto/bcrypt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestObservability checks that a rotation creates one new password and keeps nothing of the old one.
func TestObservability(t *testing.T) {
	m := newManager(t, func() error { return nil })
	first, err := m.Observability(t.Context(), Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	name, hash, _ := strings.Cut(string(first[KeyAuth]), ":")
	if len(first[KeyPassword]) != 32 || string(first[KeyUsername]) != "admin" || name != "admin" ||
		bcrypt.CompareHashAndPassword([]byte(hash), first[KeyPassword]) != nil {
		t.Errorf("name %q, hash %q, a password of %d", first[KeyUsername], hash, len(first[KeyPassword]))
	}
	rotation := Rotation{Initiated: &metav1.Time{Time: now.Add(time.Hour)}}
	second, err := m.Observability(t.Context(), rotation)
	if err != nil || bytes.Equal(second[KeyPassword], first[KeyPassword]) {
		t.Errorf("the password is the same: %v", err)
	}
	if again, err := m.Observability(t.Context(), rotation); err != nil || !bytes.Equal(again[KeyPassword], second[KeyPassword]) {
		t.Errorf("the password is another one again: %v", err)
	}
	kept, err := m.Persist(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Name != ObservabilityUsers {
		t.Errorf("%v, %v", kept, err)
	}
	if err := m.RemoveObservability(t.Context()); err != nil {
		t.Error(err)
	}
	if kept, err := m.Persist(t.Context()); err != nil || len(kept) > 0 {
		t.Errorf("left: %v, %v", kept, err)
	}
}

// TestRollouts checks that requested rollouts are stored for the existing pools.
func TestRollouts(t *testing.T) {
	m := newManager(t, func() error { return nil })
	at := func(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }
	for i, step := range []struct {
		pools  []string
		asked  map[string]metav1.Time
		wanted map[string]string
	}{
		{pools: []string{"a", "b"}},
		{pools: []string{"a", "b"}, asked: map[string]metav1.Time{"a": at(1), "gone": at(1)}, wanted: map[string]string{"a": "1"}},
		{pools: []string{"a", "b"}, asked: map[string]metav1.Time{"b": at(2)}, wanted: map[string]string{"a": "1", "b": "2"}},
		{pools: []string{"a", "b"}, wanted: map[string]string{"a": "1", "b": "2"}},
		{pools: []string{"b", "c"}, asked: map[string]metav1.Time{"b": at(3)}, wanted: map[string]string{"b": "3"}},
		{pools: []string{"c"}},
	} {
		got, err := m.Rollouts(t.Context(), step.pools, step.asked)
		if err != nil || !maps.Equal(got, step.wanted) {
			t.Errorf("step %d: %v, want %v: %v", i, got, step.wanted, err)
		}
		kept, err := m.Persist(t.Context())
		if is := slices.IndexFunc(kept, func(k corev1beta1.GardenerResourceData) bool { return k.Name == WorkerPoolRollouts }) >=
			0; err != nil || is != (len(step.wanted) > 0) {
			t.Errorf("step %d: kept for another seed: %t, %v", i, is, err)
		}
	}
}
