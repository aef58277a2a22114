package shootsecrets

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// gardeners creates a Secret of the SSH keys as Gardener's gardenlet does.
func gardeners(t *testing.T, m *Manager, object string, data map[string][]byte, issuedAt, rotation string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: object, Labels: map[string]string{
			labelName: SSHKeypair, labelManagedBy: managedBy, labelIdentity: "gardenlet", labelIssuedAt: issuedAt, labelRotation: rotation}},
		Data: data, Immutable: ptr.To(true),
	}
	if err := m.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

func key(data string) map[string][]byte { return map[string][]byte{KeyRSA: []byte(data)} }

func fine() error { return nil }

// TestTakesOver checks that the keys of Gardener's gardenlet stay, also in the middle of a rotation, and that the next rotation makes
// a new one.
func TestTakesOver(t *testing.T) {
	initiated := metav1.NewTime(now)
	for name, test := range map[string]struct {
		before        map[string][2]string // data and rotation, by the name of the object
		rotation      Rotation
		current, last string
	}{
		"one":           {map[string][2]string{"ssh-keypair-1": {"a", ""}}, Rotation{}, "a", ""},
		"with our name": {map[string][2]string{SSHKeypair: {"a", ""}}, Rotation{}, "a", ""},
		"in a rotation": {map[string][2]string{"ssh-keypair-1": {"a", ""}, "ssh-keypair-2": {"b", unix(initiated)}},
			Rotation{Initiated: &initiated}, "b", "a"},
		"of both kinds": {map[string][2]string{SSHKeypair: {"a", ""}, "ssh-keypair-2": {"b", unix(initiated)}},
			Rotation{Initiated: &initiated}, "b", "a"},
		"before the new": {map[string][2]string{SSHKeypair: {"a", ""}}, Rotation{Initiated: &initiated}, "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, fine)
			for object, content := range test.before {
				issued := "100"
				if content[1] != "" {
					issued = "200"
				}
				gardeners(t, m, object, key(content[0]), issued, content[1])
			}
			pair, err := m.SSHKeypair(t.Context(), test.rotation)
			if err != nil {
				t.Fatal(err)
			}
			if current := string(pair.Current[KeyRSA]); test.current != "" && current != test.current || string(pair.Old[KeyRSA]) != test.last {
				t.Errorf("the keys are %q and %q", current, pair.Old[KeyRSA])
			}
			next := metav1.NewTime(now.Add(time.Hour))
			after, err := m.SSHKeypair(t.Context(), Rotation{Initiated: &next})
			if err != nil || !bytes.Equal(after.Old[KeyRSA], pair.Current[KeyRSA]) || bytes.Equal(after.Current[KeyRSA], pair.Current[KeyRSA]) {
				t.Errorf("after the next rotation the keys are %q and %q: %v", after.Current[KeyRSA], after.Old[KeyRSA], err)
			}
		})
	}
}

// TestHandOver checks that a Secret goes when Gardener's gardenlet has its value, and not before.
func TestHandOver(t *testing.T) {
	m := newManager(t, fine)
	pair, err := m.SSHKeypair(t.Context(), Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.write(t.Context(), SSHKeypair+Old, pair.Current, nil); err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		t.Helper()
		if err := m.HandOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		secret, err := m.read(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return secret != nil
	}
	gardeners(t, m, "ssh-keypair-1", key("another"), "100", "")
	if !has(SSHKeypair) || !has(SSHKeypair+Old) {
		t.Error("the keys are gone, although no other Secret has them")
	}
	gardeners(t, m, "ssh-keypair-2", pair.Current, "200", "")
	if has(SSHKeypair) || has(SSHKeypair+Old) {
		t.Error("the keys are still there")
	}
	gardeners(t, m, SSHKeypair, key("static"), "300", "")
	if !has(SSHKeypair) {
		t.Error("a Secret of Gardener's gardenlet is gone")
	}
}
