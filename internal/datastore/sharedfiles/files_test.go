package sharedfiles

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gardenlite/gardenlite/internal/datastore"
)

// process is one process of a landscape.
type process struct {
	*Files
	t   *testing.T
	dir string
}

// newDatastore returns a function that starts processes with one datastore.
func newDatastore(t *testing.T) func() *process {
	store, err := datastore.Start(t.Context(), datastore.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	return func() *process {
		dir := t.TempDir()
		client, err := store.NewClient(t.Context(), requestTimeout)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return &process{&Files{client: client, files: map[string]*file{},
			cfg: Config{Prefix: "/gardenlite/test/files", Dir: dir, Paths: []string{"cloud", "seeds.json", "data/shoots/*/port"}}}, t, dir}
	}
}

func (p *process) path(name string) string { return filepath.Join(p.dir, name) }

func (p *process) write(name string, data []byte) {
	p.t.Helper()
	err := os.MkdirAll(filepath.Dir(p.path(name)), 0o700)
	if err == nil {
		err = os.WriteFile(p.path(name), data, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) save(name string, data []byte) {
	p.t.Helper()
	p.write(name, data)
	if err := p.Save(p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

// append appends to a file and saves it.
func (p *process) append(name string, data []byte) {
	p.t.Helper()
	file, err := os.OpenFile(p.path(name), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.Write(data)
		err = errors.Join(err, file.Close())
	}
	if err == nil {
		err = p.Save(p.path(name))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) load() (moved int) {
	p.t.Helper()
	moved, err := p.Load(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return moved
}

// wants checks which files the process has, besides those that are not shared.
func (p *process) wants(files map[string][]byte) {
	p.t.Helper()
	for name, want := range files {
		if got, err := os.ReadFile(p.path(name)); err != nil || !bytes.Equal(got, want) {
			p.t.Errorf("%s has %d bytes instead of %d: %v", name, len(got), len(want), err)
		}
	}
	found := 0
	for _, name := range p.local() {
		_ = filepath.WalkDir(name, func(_ string, entry os.DirEntry, _ error) error {
			if entry.Type().IsRegular() {
				found++
			}
			return nil
		})
	}
	if found != len(files) {
		p.t.Errorf("there are %d files instead of %d", found, len(files))
	}
}

// keys counts the keys below a prefix.
func (p *process) keys(elements ...string) int {
	p.t.Helper()
	found, err := p.client.Get(p.t.Context(), p.key(elements...)+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		p.t.Fatal(err)
	}
	return len(found.Kvs)
}

// TestAnotherProcess checks that a second process has what the first one has written, and nothing else, and the first one then what
// the second one has changed.
func TestAnotherProcess(t *testing.T) {
	start := newDatastore(t)
	first, second := start(), start()
	if moved := first.load(); moved != 0 {
		t.Errorf("%d files were moved of an empty folder", moved)
	}
	disk := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	first.save("cloud/networks/a.json", []byte("{}"))
	first.save("cloud/instances/a/disk", disk)
	first.save("cloud/instances/b/disk", disk[:inline])
	first.save("cloud/instances/b/key", nil)
	first.save("data/shoots/a/port", []byte("20000\n"))
	for range 2 * maxParts {
		first.append("cloud/instances/a/disk", []byte("more"))
	}
	if parts := first.keys("parts"); parts > maxParts {
		t.Errorf("a file is in %d parts", parts)
	}
	first.save("cloud/instances/c/disk", disk)
	if err := first.Remove(first.path("cloud/instances/c")); err != nil {
		t.Fatal(err)
	}
	if err := first.Remove(first.path("cloud/instances")); err != nil || first.keys("files", "cloud/instances") > 0 {
		t.Errorf("the files of a removed folder are left: %v", err)
	}
	first.save("cloud/instances/a/disk", append(disk, "end"...))

	second.write("cloud/instances/old/disk", []byte("of long ago"))
	second.write("data/shoots/a/state", []byte("not shared"))
	if moved := second.load(); moved != 0 {
		t.Errorf("%d files were moved although there are some", moved)
	}
	second.wants(map[string][]byte{"cloud/networks/a.json": []byte("{}"), "cloud/instances/a/disk": append(disk, "end"...),
		"data/shoots/a/port": []byte("20000\n")})
	if _, err := os.Stat(second.path("data/shoots/a/state")); err != nil {
		t.Error("a file is gone that is not shared")
	}

	second.append("cloud/instances/a/disk", []byte(" of the second"))
	second.save("cloud/instances/a/disk", disk[:100])
	first.load()
	first.wants(map[string][]byte{"cloud/networks/a.json": []byte("{}"), "cloud/instances/a/disk": disk[:100],
		"data/shoots/a/port": []byte("20000\n")})
	if parts := first.keys("parts"); parts != 0 {
		t.Errorf("%d parts are left that no file has", parts)
	}
}

// TestKilledWhileWriting checks that a file that was not written to its end is the one before, and that nothing is left of it.
func TestKilledWhileWriting(t *testing.T) {
	start := newDatastore(t)
	first, second := start(), start()
	first.load()
	disk := bytes.Repeat([]byte("x"), partSize+1)
	first.save("cloud/disk", disk)
	known := first.files["cloud/disk"]
	for _, key := range []string{first.partKey(known.head.Generation, known.head.Parts), first.partKey("new", 0)} {
		if _, err := first.put(t.Context(), key, []byte("half"), 0); err != nil {
			t.Fatal(err)
		}
	}
	second.load()
	second.wants(map[string][]byte{"cloud/disk": disk})
	if parts := second.keys("parts"); parts != known.head.Parts {
		t.Errorf("there are %d parts instead of %d", parts, known.head.Parts)
	}
}

// TestChangedByAnother checks that a process that has not noticed that it was followed by another one does not overwrite the files of
// that.
func TestChangedByAnother(t *testing.T) {
	start := newDatastore(t)
	first, second := start(), start()
	first.load()
	first.save("seeds.json", []byte("1"))
	second.load()
	second.save("seeds.json", []byte("2"))
	second.save("cloud/new", []byte("of the second"))

	for _, name := range []string{"seeds.json", "cloud/new"} {
		first.write(name, []byte("of the first"))
		if err := first.Save(first.path(name)); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	second.load()
	second.wants(map[string][]byte{"seeds.json": []byte("2"), "cloud/new": []byte("of the second")})
}

// TestMovesOldFiles checks that what an earlier version has left in the folder comes into the datastore, once, also if the process is
// killed on the way.
func TestMovesOldFiles(t *testing.T) {
	start := newDatastore(t)
	first, second := start(), start()
	old := map[string][]byte{"cloud/instances/a/disk": bytes.Repeat([]byte("x"), inline+1), "seeds.json": []byte("{}"),
		"data/shoots/a/port": []byte("1")}
	for name, data := range old {
		first.write(name, data)
	}
	if err := first.readHeads(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Save(first.path("seeds.json")); err != nil { // and is killed
		t.Fatal(err)
	}
	if moved := first.load(); moved != len(old) {
		t.Errorf("%d files were moved", moved)
	}
	if moved := first.load(); moved != 0 {
		t.Errorf("%d files were moved again", moved)
	}
	second.load()
	second.wants(old)
}

// TestRefuses checks that nothing outside of the kept files is read or written, and that a newer format is refused.
func TestRefuses(t *testing.T) {
	start := newDatastore(t)
	p := start()
	p.load()
	for _, name := range []string{"gardenlite.log", "../cloud", "data/shoots/a/state.db", "data/shoots"} {
		if err := p.Save(p.path(name)); err == nil {
			t.Errorf("%s was written to the datastore", name)
		}
	}
	for _, name := range []string{"../outside", "cloud/../../outside", "data/shoots/a/state.db", "/cloud/x", "cloud//x"} {
		revision, err := p.put(t.Context(), p.key("files", name), []byte(`{"data":"eA==","size":1}`), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "no file of a landscape") {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := p.delete(t.Context(), p.key("files", name), revision); err != nil {
			t.Fatal(err)
		}
	}
	p.load()
	format, err := p.get(t.Context(), p.key("format"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.put(t.Context(), p.key("format"), []byte("2"), format.Kvs[0].ModRevision); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "use a newer one") {
		t.Errorf("a newer format: %v", err)
	}
}
