package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestCleanUpInFolderWithBrackets checks that a path is not taken for a pattern.
func TestCleanUpInFolderWithBrackets(t *testing.T) {
	for _, name := range []string{"a[b", "a[b]", `a*b`} {
		dir := filepath.Join(t.TempDir(), name)
		r := &Runner{cfg: Config{Dir: dir}}
		if err := os.MkdirAll(r.podDir("uid"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.podDir("uid"), ownerFile), []byte("node"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.CleanUp(func(node, uid string) bool { return node == "node" && uid == "uid" })
		if _, err := os.Stat(r.podDir("uid")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the folder is left: %v", name, err)
		}
	}
}

// TestOwnerIsReplaced checks that a Pod that goes on replaces the file with the name of its Node: CleanUp, which reads it at
// the same time, would take the Pod of an empty file for one without a Node.
func TestOwnerIsReplaced(t *testing.T) {
	w := newWorld(t, "exit 0")
	p := w.run(newPod("pod", corev1.RestartPolicyNever))
	<-p.Done()
	owner, before := filepath.Join(p.dir, ownerFile), filepath.Join(t.TempDir(), "before")
	if err := os.Link(owner, before); err != nil {
		t.Fatal(err)
	}
	<-w.run(p.Object()).Done()
	if err := os.WriteFile(before, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if node, err := os.ReadFile(owner); err != nil || string(node) != p.cfg.Node || p.cfg.Node == "" {
		t.Errorf("the Pod's Node: %q, %v", node, err)
	}
}

// TestInterruptedRemoval checks that the next Runner removes the folder of a Pod whose removal was interrupted, and no other.
func TestInterruptedRemoval(t *testing.T) {
	w := newWorld(t, "exit 0")
	for _, uid := range []string{"kept", "interrupted"} {
		if err := os.MkdirAll(filepath.Join(w.podDir(uid), "volumes", "secret"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.podDir("kept"), ownerFile), []byte("node"), 0o600); err != nil {
		t.Fatal(err)
	}
	startWorld(t, w.cfg.Dir, "/bin/true")
	if folders, err := os.ReadDir(filepath.Dir(w.podDir("kept"))); err != nil || len(folders) != 1 || folders[0].Name() != "kept" {
		t.Errorf("there are %v, %v", folders, err)
	}
}

// TestInterruptedUpdate checks that a Pod runs again although gardenlite was killed while it updated a volume, and that the
// files of the unfinished update are gone.
func TestInterruptedUpdate(t *testing.T) {
	w := newWorld(t, "exit 0")
	object := newPod("pod", corev1.RestartPolicyAlways)
	object.Spec.Volumes = []corev1.Volume{
		{Name: "info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			DefaultMode: ptr.To[int32](0o644), Items: []corev1.DownwardAPIVolumeFile{
				{Path: "name", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}},
			},
		}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	volumes := filepath.Join(w.podDir(string(object.UID)), "volumes")
	info, scratch := filepath.Join(volumes, "info"), filepath.Join(volumes, "scratch")
	for _, dir := range []string{filepath.Join(info, "..2026_01_01"), scratch} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..2026_01_01", filepath.Join(info, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(volumes, "..", ownerFile), []byte("node"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, w.run(object), "waiting for its restart", waits("CrashLoopBackOff"))
	if name, err := os.ReadFile(filepath.Join(info, "name")); err != nil || string(name) != "pod" {
		t.Errorf("the file of the volume: %q, %v", name, err)
	}
	if _, err := os.Stat(filepath.Join(info, "..2026_01_01")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the files of the unfinished update: %v", err)
	}
	if _, err := os.Stat(filepath.Join(scratch, "file")); err != nil {
		t.Errorf("the file in the emptyDir: %v", err)
	}
}
