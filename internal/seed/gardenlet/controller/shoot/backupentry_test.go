package shoot

import (
	"slices"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

const entryName = id + "--u"

func (w *world) entry(name string) *corev1beta1.BackupEntry {
	w.Helper()
	return get(w, w.garden, key.Namespace, name, &corev1beta1.BackupEntry{})
}

// TestBackupEntry checks that a Shoot has an entry in the bucket of its seed, which is left to the garbage collector
// when the Shoot is deleted.
func TestBackupEntry(t *testing.T) {
	w := newWorld(t, aSeed(), aShoot(func(s *corev1beta1.Shoot) { s.Spec.Purpose = ptr.To(corev1beta1.ShootPurposeProduction) }))
	w.settle()
	e := w.entry(entryName)
	if e.Spec.BucketName != "seed-a" || *e.Spec.SeedName != "a" || e.Annotations["shoot.gardener.cloud/purpose"] != "production" ||
		len(e.OwnerReferences) != 1 || e.OwnerReferences[0].Name != "y" || *e.OwnerReferences[0].BlockOwnerDeletion {
		t.Errorf("%+v", e)
	}
	if err := w.garden.Delete(t.Context(), w.shoot()); err != nil {
		t.Fatal(err)
	}
	if w.settle() != nil || w.entry(entryName).Name == "" {
		t.Error("the Shoot is there, or its BackupEntry is not")
	}
}

// TestBackupEntryFails checks that an error of the BackupEntry becomes one of the Shoot, and that a missing bucket is
// waited for.
func TestBackupEntryFails(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	if err := w.garden.Delete(t.Context(), aBucket("seed-a")); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w.must(requeueWaiting)
		w.simulate()
	}
	if last := w.shoot().Status.LastOperation; last.State != "Processing" || last.Description != stepEntry {
		t.Errorf("%+v", last)
	}
	if err := w.garden.Create(t.Context(), aBucket("seed-a")); err != nil {
		t.Fatal(err)
	}
	w.must(requeueWaiting)
	e := w.entry(entryName)
	e.Status = corev1beta1.BackupEntryStatus{
		ObservedGeneration: e.Generation, LastOperation: &corev1beta1.LastOperation{Type: "Reconcile", State: "Error"},
		LastError: &corev1beta1.LastError{Description: "no room", Codes: []corev1beta1.ErrorCode{"ERR_INFRA_DEPENDENCIES"}}}
	if err := w.garden.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.must(0)
	if s := w.shoot().Status; s.LastOperation.State != "Failed" || len(s.LastErrors) != 1 ||
		!slices.Equal(s.LastErrors[0].Codes, []corev1beta1.ErrorCode{"ERR_INFRA_DEPENDENCIES"}) {
		t.Errorf("%+v", s)
	}
}

// TestNoBackup checks that there is no BackupEntry if the seed has no bucket for backups.
func TestNoBackup(t *testing.T) {
	seed := aSeed()
	seed.Spec.Backup = nil
	w := newWorld(t, aShoot(), seed)
	if w.settle(); w.entry(entryName).Name != "" {
		t.Error("there is a BackupEntry")
	}
}

// TestBackupEntryMoves checks that the BackupEntry moves to the other seed's bucket, and that there is a source entry
// for the old bucket only during the restoration.
func TestBackupEntryMoves(t *testing.T) {
	other := aSeed()
	other.Name, other.UID = "b", "seed-b"
	w := newWorld(t, aShoot(), aSeed(), other)
	w.settle()
	w.moves("b")
	if e := w.entry(entryName); *e.Spec.SeedName != "b" || e.Status.SeedName != nil || e.Spec.BucketName != "seed-a" ||
		e.Status.LastOperation.Type != "Migrate" {
		t.Errorf("after the migration: %+v", e)
	}
	w.onSeed("b")
	var written []string
	w.before = func(cluster, verb string, obj client.Object) error {
		if e, is := obj.(*corev1beta1.BackupEntry); is && verb != "status" {
			written = append(written, verb+" "+e.Name+" "+e.Spec.BucketName+" "+e.Annotations["gardener.cloud/operation"]+
				e.Annotations["backupentry.core.gardener.cloud/force-deletion"])
		}
		return nil
	}
	w.settle()
	wanted := []string{
		"create source-" + entryName + " seed-a reconcile", "patch " + entryName + " seed-b restore",
		"patch source-" + entryName + " seed-a true", "delete source-" + entryName + " seed-a true",
	}
	if !slices.Equal(written, wanted) {
		t.Errorf("wrote %q", written)
	}
	if e := w.entry(entryName); *e.Status.SeedName != "b" || e.Status.LastOperation.Type != "Restore" ||
		w.entry("source-"+entryName).Name != "" {
		t.Errorf("after the restoration: %+v", e)
	}
}

// TestBackupEntryIsLetGo checks that a migration waits until the BackupEntry is on no seed, even if an earlier
// operation on the entry is reported after the entry was assigned to the other seed.
func TestBackupEntryIsLetGo(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	w.change(func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") })
	b := w.reconciler.newBotanist(gardenData{shoot: w.shoot()}, corev1beta1.LastOperationTypeMigrate)
	setStatus := func(what corev1beta1.LastOperationType, on *string) {
		e := w.entry(entryName)
		e.Status.ObservedGeneration, e.Status.SeedName = e.Generation, on
		e.Status.LastOperation = &corev1beta1.LastOperation{Type: what, State: "Succeeded"}
		if err := w.garden.Status().Update(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	_ = b.migrateEntry(t.Context())
	setStatus("Reconcile", ptr.To("a"))
	if err := b.migrateEntry(t.Context()); !flow.IsPending(err) {
		t.Errorf("while it is on this seed: %v", err)
	}
	setStatus("Migrate", nil)
	if err := b.migrateEntry(t.Context()); err != nil {
		t.Errorf("after it has left: %v", err)
	}
}

// TestBackupEntryNeverCame checks that a Shoot which moves on before its BackupEntry was restored here does not wait
// for the entry, because no gardenlet handles it.
func TestBackupEntryNeverCame(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	e := w.entry(entryName)
	e.Generation, e.Annotations["gardener.cloud/operation"] = 7, "restore"
	if err := w.garden.Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.Status = corev1beta1.BackupEntryStatus{
		ObservedGeneration: 6, LastOperation: &corev1beta1.LastOperation{Type: "Migrate", State: "Succeeded"}}
	if err := w.garden.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.change(func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") })
	b := w.reconciler.newBotanist(gardenData{shoot: w.shoot()}, corev1beta1.LastOperationTypeMigrate)
	if err := b.migrateEntry(t.Context()); err != nil {
		t.Errorf("it waits: %v", err)
	}
	if e := w.entry(entryName); *e.Spec.SeedName != "b" || e.Annotations["gardener.cloud/operation"] != "" {
		t.Errorf("the entry %+v", e)
	}
}

// TestBackupEntryRestoredHalfway checks that the other seed does not begin a restoration that was requested here, and
// that the Shoot does not wait for an entry that is already on the other seed.
func TestBackupEntryRestoredHalfway(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	e := w.entry(entryName)
	e.Generation, e.Annotations["gardener.cloud/operation"] = 7, "restore"
	if err := w.garden.Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.Status = corev1beta1.BackupEntryStatus{SeedName: ptr.To(w.reconciler.SeedName),
		ObservedGeneration: 6, LastOperation: &corev1beta1.LastOperation{Type: "Restore", State: "Processing"}}
	if err := w.garden.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.change(func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") })
	b := w.reconciler.newBotanist(gardenData{shoot: w.shoot()}, corev1beta1.LastOperationTypeMigrate)
	if err := b.migrateEntry(t.Context()); err == nil {
		t.Error("it does not wait until the entry has left")
	}
	e = w.entry(entryName)
	if *e.Spec.SeedName != "b" || e.Annotations["gardener.cloud/operation"] != "" {
		t.Errorf("the entry %+v", e)
	}
	e.Status.SeedName = ptr.To("b")
	if err := w.garden.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := b.migrateEntry(t.Context()); err != nil {
		t.Errorf("it waits for an entry that is on the other seed: %v", err)
	}
}

// TestBackupEntryIsTakenOver checks that an entry does not block a restoration if the previous seed never releases it.
func TestBackupEntryIsTakenOver(t *testing.T) {
	for on, want := range map[string]bool{"": false, "a": true, "b": false} {
		entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "e"}}
		if on != "" {
			entry.Status.SeedName = &on
		}
		w := newWorld(t, aShoot(), entry)
		b := &botanist{Reconciler: &Reconciler{Base: controllerutils.Base{GardenClient: w.garden, SeedName: "b"}}}
		if got, err := b.takeOverEntry(t.Context(), entry); got != want || err != nil {
			t.Errorf("on %q: taken over: %t, %v", on, got, err)
		}
		if left := entry.Status.SeedName; want != (on != "" && left == nil) {
			t.Errorf("on %q: the entry is on %v", on, left)
		}
	}
}
