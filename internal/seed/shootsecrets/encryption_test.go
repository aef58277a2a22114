package shootsecrets

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEncryptionKey rotates a key while each write fails once. The old key must be kept until everything is encrypted with
// the new one.
func TestEncryptionKey(t *testing.T) {
	for fails := 0; fails <= 4; fails++ {
		writes := 100
		m := newManager(t, func() error {
			if writes--; writes == 0 {
				return errors.New("killed")
			}
			return nil
		})
		try := func(do func() error) {
			t.Helper()
			if do() != nil {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var e Encryption
		ensure := func(rotation Rotation) {
			t.Helper()
			try(func() (err error) {
				e, err = m.Encryption(t.Context(), rotation, "secretbox")
				return err
			})
		}
		reach := func(stage Stage) {
			t.Helper()
			try(func() error { return m.SetEncryptionStage(t.Context(), &e, stage) })
		}
		ensure(Rotation{})
		reach(EncryptsAll)
		first, rotation := string(e.Current[KeySecret]), Rotation{Initiated: &metav1.Time{Time: now.Add(time.Hour)}}
		writes = fails
		ensure(rotation)
		second := string(e.Current[KeySecret])
		if second == first || string(e.Old[KeySecret]) != first || e.Stage != EncryptsNothing ||
			Provider(e.Current) != "secretbox" || len(second) != 32 {
			t.Fatalf("%d: %q, the old key is the one before: %t", fails, e.Stage, string(e.Old[KeySecret]) == first)
		}
		reach(EncryptsNew)
		// Now the old key must neither be dropped nor replaced by a third one.
		for _, r := range []Rotation{{Initiated: rotation.Initiated, Completing: true}, {Initiated: &metav1.Time{Time: now.Add(2 * time.Hour)}}} {
			if ensure(r); string(e.Current[KeySecret]) != second || string(e.Old[KeySecret]) != first || e.Stage != EncryptsNew {
				t.Fatalf("%d: the old key is lost, or the new one", fails)
			}
		}
		reach(EncryptsAll)
		rotation.Completing = true
		if ensure(rotation); string(e.Current[KeySecret]) != second || e.Old != nil {
			t.Errorf("%d: the old key is still there, or the new one is lost", fails)
		}
		other := Encryption{Pair: Pair{Current: map[string][]byte{KeySecret: []byte("x")}}}
		if err := m.SetEncryptionStage(t.Context(), &other, EncryptsAll); err == nil {
			t.Error("another key is said to have encrypted everything")
		}
	}
}
