package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// newState returns a state directory with a datastore and some files.
func newState(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, statedir.LockFile, "")
	if err := statedir.WriteRun(dir, &statedir.Run{Name: "one", PID: 1, Port: 6443, Control: "/elsewhere", Datastore: datastore.SQLite}); err != nil {
		t.Fatal(err)
	}
	store, err := datastore.Start(t.Context(), datastore.Config{Dir: filepath.Join(dir, statedir.DataFolder, "garden")})
	if err != nil {
		t.Fatal(err)
	}
	store.Stop()
	for _, name := range []string{"pki/garden/ca.key", "cloud/instances/a/machine/disk/disk", "data/shoots/b/port", "seeds.json", "clock.json",
		"processes/volumes/a/b", "processes/pids/1", "images.json", "ssh/key", "gardenlite.log"} {
		write(t, dir, name, text)
	}
	write(t, dir, "cloud/large", strings.Repeat(text, smallFile))
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns the files of a folder, without datastores, run.json and snapshots.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), datastore.FileName) ||
			entry.Name() == statedir.RunFile || strings.HasPrefix(name, filepath.Join(dir, statedir.SnapshotsFolder)) {
			return err
		}
		data, err := os.ReadFile(name)
		relative, _ := filepath.Rel(dir, name)
		files[relative] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func save(t *testing.T, dir string) string {
	t.Helper()
	if _, err := Save(t.Context(), dir, "s"); err != nil {
		t.Fatal(err)
	}
	return Path(dir, "s")
}

func TestSaveAndRestore(t *testing.T) {
	dir := newState(t, "before")
	before := read(t, dir)
	file := save(t, dir)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Save(t.Context(), dir, "s"); err == nil {
		t.Error("a snapshot was replaced")
	}
	write(t, dir, "pki/garden/ca.key", "after")
	write(t, dir, "pki/new", "after")
	write(t, dir, "images.json", "after")
	if err := os.Remove(filepath.Join(dir, statedir.SeedsFile)); err != nil {
		t.Fatal(err)
	}
	if err := Restore(dir, file); err != nil {
		t.Fatal(err)
	}
	before["images.json"] = "after" // which programs run is up to the machine
	if after := read(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("it has\n%v\nand had\n%v", after, before)
	}
	run, err := statedir.ReadRun(dir)
	if err != nil || run.Port != 6443 || run.PID != 0 || run.Control != filepath.Join(dir, statedir.ControlSocket) {
		t.Errorf("%+v, %v", run, err)
	}
	other := t.TempDir()
	if err := Restore(other, file); err != nil {
		t.Fatal(err)
	}
	for _, local := range []string{"images.json", "ssh/key", "processes/pids/1", "gardenlite.log", "lock"} {
		delete(before, local)
	}
	if after := read(t, other); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("another folder has\n%v\nnot\n%v", after, before)
	}
	store, err := datastore.Start(t.Context(), datastore.Config{Dir: filepath.Join(other, statedir.DataFolder, "garden")})
	if err != nil {
		t.Fatal(err)
	}
	store.Stop()
}

// Each byte of a file counts, and what is refused has touched nothing.
func TestDamaged(t *testing.T) {
	dir := newState(t, "before")
	good, err := os.ReadFile(save(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	target := newState(t, "other")
	before := read(t, target)
	name := filepath.Join(t.TempDir(), "damaged")
	refuse := func(what string, data []byte, want string) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(name); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Fatalf("%s: %v, without %q", what, err, want)
		}
		if err := Restore(target, name); !errors.Is(err, ErrInvalid) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := range good {
		altered := slices.Clone(good)
		altered[i] ^= 1 << (i % 8)
		refuse(fmt.Sprintf("byte %d", i), altered, "")
	}
	for _, length := range []int{0, 1, 7, 8, 30, len(good) / 2, len(good) - 1} {
		refuse(fmt.Sprintf("%d bytes", length), good[:length], "")
	}
	refuse("more", append(slices.Clone(good), 0), "checksum")
	refuse("newer", bytes.Replace(good, []byte("snapshot 1\n"), []byte("snapshot 2\n"), 1), "a newer one")
	if after := read(t, target); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("it has\n%v\nand had\n%v", after, before)
	}
}

// archive returns a file with a valid checksum, whatever is in it.
func archive(t *testing.T, manifest any, files ...tar.Header) []byte {
	t.Helper()
	var content bytes.Buffer
	compressed, err := zstd.NewWriter(&content)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compressed)
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	add := func(header tar.Header, data []byte) {
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(data))}, data)
	for _, file := range files {
		add(file, make([]byte, file.Size))
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content.Bytes())
	return append(header(sum[:]), content.Bytes()...)
}

// Who makes a file makes its checksum, too.
func TestHostile(t *testing.T) {
	regular := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
	}
	manifest := func(files ...File) Manifest { return Manifest{Format: Format, Files: files} }
	pki := File{Path: "pki", Mode: fs.ModeDir | 0o700}
	pkiEntry := tar.Header{Typeflag: tar.TypeDir, Name: "pki/"}
	many := make([]File, maxFiles+1)
	for name, data := range map[string][]byte{
		"above":           archive(t, manifest(File{Path: "../out", Mode: 0o600}), regular("../out", 0)),
		"inside above":    archive(t, manifest(pki, File{Path: "pki/../../out", Mode: 0o600}), pkiEntry, regular("pki/../../out", 0)),
		"absolute":        archive(t, manifest(File{Path: "/out", Mode: 0o600}), regular("/out", 0)),
		"images":          archive(t, manifest(File{Path: "images.json", Mode: 0o600}), regular("images.json", 0)),
		"pids":            archive(t, manifest(File{Path: "processes/pids/1", Mode: 0o600}), regular("processes/pids/1", 0)),
		"ssh":             archive(t, manifest(File{Path: "ssh", Mode: fs.ModeDir | 0o700}), tar.Header{Typeflag: tar.TypeDir, Name: "ssh/"}),
		"snapshots":       archive(t, manifest(File{Path: "snapshots", Mode: fs.ModeDir | 0o700}), tar.Header{Typeflag: tar.TypeDir, Name: "snapshots/"}),
		"file for folder": archive(t, manifest(File{Path: "pki", Mode: 0o600}), regular("pki", 0)),
		"folder for file": archive(t, manifest(File{Path: "clock.json", Mode: fs.ModeDir | 0o700}), tar.Header{Typeflag: tar.TypeDir, Name: "clock.json/"}),
		"no folder":       archive(t, manifest(File{Path: "pki/a/b", Mode: 0o600}), regular("pki/a/b", 0)),
		"twice":           archive(t, manifest(pki, pki), pkiEntry, pkiEntry),
		"mode":            archive(t, manifest(pki, File{Path: "pki/a", Mode: fs.ModeSetuid | 0o700}), pkiEntry, regular("pki/a", 0)),
		"others":          archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o666}), pkiEntry, regular("pki/a", 0)),
		"link":            archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600}), pkiEntry, tar.Header{Typeflag: tar.TypeSymlink, Name: "pki/a", Linkname: "/etc"}),
		"hard link":       archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600}), pkiEntry, tar.Header{Typeflag: tar.TypeLink, Name: "pki/a", Linkname: "/etc/passwd"}),
		"other name":      archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600}), pkiEntry, regular("../../out", 0)),
		"longer":          archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600, Size: 1}), pkiEntry, regular("pki/a", 2)),
		"unlisted":        archive(t, manifest(pki), pkiEntry, regular("pki/a", 1)),
		"missing":         archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600}), pkiEntry),
		"huge":            archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600, Size: maxSize + 1})),
		"overflow":        archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600, Size: 1 << 62}, File{Path: "pki/b", Mode: 0o600, Size: 1 << 62})),
		"negative":        archive(t, manifest(pki, File{Path: "pki/a", Mode: 0o600, Size: -1})),
		"many":            archive(t, manifest(many...)),
		"newer":           archive(t, Manifest{Format: Format + 1}),
		"no manifest":     archive(t, "text"),
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir, file := filepath.Join(parent, "a", "b", "c"), filepath.Join(parent, "file")
			write(t, dir, "pki/old", "old")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Restore(dir, file); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v", err)
			}
			found := read(t, parent)
			delete(found, "file")
			for name := range found {
				if strings.HasPrefix(name, filepath.Join("a", "b", "c", statedir.SnapshotsFolder)) {
					delete(found, name)
				}
			}
			if len(found) != 1 || found["a/b/c/pki/old"] != "old" {
				t.Errorf("there is %v", found)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, statedir.SnapshotsFolder, unfinished+"*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// A Restore that is killed at any moment leaves the old landscape, or one that Finish makes the new one.
func TestFinish(t *testing.T) {
	source := newState(t, "new")
	file := save(t, source)
	want := newState(t, "old")
	if err := Restore(want, file); err != nil {
		t.Fatal(err)
	}
	for moved := range len(entries) + 1 {
		dir := newState(t, "old")
		r, closeFile, err := open(file)
		if err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(dir, statedir.RestoringFolder)
		if err := os.Mkdir(from, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.extract(from), closeFile()); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		write(t, from, manifestName, string(data))
		n := 0
		for entry := range entries {
			if n++; n > moved {
				break
			}
			if err := os.RemoveAll(filepath.Join(dir, entry)); err != nil {
				t.Fatal(err)
			}
			if n < moved { // else the kill comes between both
				if err := os.Rename(filepath.Join(from, entry), filepath.Join(dir, entry)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
		if err := Finish(dir); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir); fmt.Sprint(got) != fmt.Sprint(read(t, want)) {
			t.Errorf("after %d of %d: %v", moved, len(entries), got)
		}
	}
}

func TestSaveRefuses(t *testing.T) {
	dir := newState(t, "x")
	for _, name := range []string{"", "A", "a/b", "../a", "-a", "a.", strings.Repeat("a", MaxName+1)} {
		if _, err := Save(t.Context(), dir, name); err == nil || !strings.Contains(err.Error(), "no name of a snapshot") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Save(t.Context(), t.TempDir(), "a"); err == nil || !strings.Contains(err.Error(), "has no landscape") {
		t.Error(err)
	}
	if err := statedir.WriteRun(dir, &statedir.Run{Datastore: "postgres"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Save(t.Context(), dir, "a"); err == nil || !strings.Contains(err.Error(), "postgres") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := newState(t, "x")
	if _, err := Save(ctx, other, "a"); !errors.Is(err, context.Canceled) || len(Names(other)) > 0 {
		t.Errorf("%v, %v", err, Names(other))
	}
}
