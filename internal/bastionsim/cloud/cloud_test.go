package cloud

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

var cidr = netip.MustParsePrefix("10.250.0.0/24")

func open(t testing.TB, dir string) *Cloud {
	t.Helper()
	c, err := Open(Config{Dir: dir, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newNetwork(t testing.TB, c *Cloud, id string) {
	t.Helper()
	if err := c.EnsureNetwork(t.Context(), id, cidr); err != nil {
		t.Fatal(err)
	}
}

func ensure(t testing.TB, c *Cloud, spec InstanceSpec) Instance {
	t.Helper()
	i, err := c.EnsureInstance(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func runs(t testing.TB, c *Cloud, id string) {
	t.Helper()
	testutil.EventuallyTrue(t, id+" runs", func() bool {
		i, _ := c.Instance(id)
		if i.State == Failed {
			t.Fatalf("%s failed: %s", id, i.Message)
		}
		return i.State == Running
	})
}

func TestNetworks(t *testing.T) {
	ctx, c := t.Context(), open(t, t.TempDir())
	for _, wrong := range []struct{ id, cidr string }{
		{"", "10.0.0.0/24"}, {"../a", "10.0.0.0/24"}, {".a", "10.0.0.0/24"}, {"A", "10.0.0.0/24"}, {"a", "10.0.0.0/29"},
		{strings.Repeat("a", MaxID+1), "10.0.0.0/24"},
	} {
		if err := c.EnsureNetwork(ctx, wrong.id, netip.MustParsePrefix(wrong.cidr)); err == nil {
			t.Errorf("network %q with %s is made", wrong.id, wrong.cidr)
		}
	}
	newNetwork(t, c, "n")
	newNetwork(t, c, "n")
	if err := c.EnsureNetwork(ctx, "n", netip.MustParsePrefix("10.251.0.0/24")); err == nil ||
		!strings.Contains(err.Error(), "10.250.0.0/24") {
		t.Errorf("another CIDR: %v", err)
	}
	ensure(t, c, InstanceSpec{ID: "i", Network: "n"})
	if err := c.DeleteNetwork(ctx, "n"); !errors.Is(err, ErrInUse) {
		t.Errorf("deleting a network in use: %v", err)
	}
	if err := errors.Join(c.DeleteInstance(ctx, "i"), c.DeleteNetwork(ctx, "n"), c.DeleteNetwork(ctx, "n")); err != nil {
		t.Error(err)
	}
}

func TestAddressesRunOut(t *testing.T) {
	ctx, c := t.Context(), open(t, t.TempDir())
	if err := c.EnsureNetwork(ctx, "n", netip.MustParsePrefix("10.0.0.0/28")); err != nil {
		t.Fatal(err)
	}
	for i := range 5 { // .10 to .14; .15 is the broadcast address
		if got := ensure(t, c, InstanceSpec{ID: fmt.Sprint("i", i), Network: "n"}).Address.String(); got != fmt.Sprint("10.0.0.", 10+i) {
			t.Errorf("instance %d has %s", i, got)
		}
	}
	if _, err := c.EnsureInstance(ctx, InstanceSpec{ID: "more", Network: "n"}); !errors.Is(err, ErrExhausted) ||
		!strings.Contains(err.Error(), "10.0.0.0/28") {
		t.Errorf("one instance too many: %v", err)
	}
	if err := c.DeleteInstance(ctx, "i2"); err != nil {
		t.Fatal(err)
	}
	if got := ensure(t, c, InstanceSpec{ID: "more", Network: "n"}).Address.String(); got != "10.0.0.12" {
		t.Errorf("the next one has %s, not the address that is free again", got)
	}
}

func TestWrongInstances(t *testing.T) {
	c := open(t, t.TempDir())
	newNetwork(t, c, "n")
	newNetwork(t, c, "m")
	ensure(t, c, InstanceSpec{ID: "i", Network: "n"})
	for name, spec := range map[string]InstanceSpec{
		"no network":      {ID: "a", Network: "unknown"},
		"no ID":           {Network: "n"},
		"path":            {ID: "../a", Network: "n"},
		"another network": {ID: "i", Network: "m"},
		"user data":       {ID: "a", Network: "n", UserData: make([]byte, MaxUserData+1)},
		"hostname":        {ID: "a", Network: "n", Hostname: "a b"},
		"tag":             {ID: "a", Network: "n", Tags: map[string]string{"a": strings.Repeat("x", maxTagSize)}},
	} {
		if _, err := c.EnsureInstance(t.Context(), spec); err == nil {
			t.Errorf("%s: it is made", name)
		}
	}
	if got := len(c.Instances("n")); got != 1 {
		t.Errorf("there are %d instances", got)
	}
}

// After a restart, everything is there again with its address and its disk, and what a kill left half done is removed.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	newNetwork(t, c, "n")
	want := map[string]Instance{}
	for _, id := range []string{"c", "a", "b"} {
		want[id] = ensure(t, c, InstanceSpec{ID: id, Network: "n", Zone: "z1", Hostname: "host-" + id, Type: "small",
			Image: "os", Tags: map[string]string{"k": id}})
		runs(t, c, id)
	}
	m, _ := c.Machine("b")
	if err := m.FS().WriteFile("/root/note", []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.EnsureInstance(t.Context(), InstanceSpec{ID: "late", Network: "n"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	// As a kill in the middle of creating and of deleting leaves it.
	for _, name := range []string{".new", ".gone/machine"} {
		if err := os.MkdirAll(filepath.Join(dir, "instances", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c = open(t, dir)
	all := c.Instances("n")
	for n, id := range []string{"a", "b", "c"} {
		got := ensure(t, c, InstanceSpec{ID: id, Network: "n"}) // and nothing is made again
		if len(all) != 3 || all[n].ID != id || got.Address != want[id].Address || got.ProviderID != "local:///z1/"+id ||
			got.Hostname != "host-"+id || got.Tags["k"] != id || got.Type != "small" || got.Image != "os" {
			t.Errorf("instance %d of %d is %+v, want %+v", n, len(all), got, want[id])
		}
	}
	runs(t, c, "b")
	m, _ = c.Machine("b")
	if note, err := m.FS().ReadFile("/root/note"); err != nil || string(note) != "kept" {
		t.Errorf("the file on the disk is %q, %v", note, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "instances"))
	if err != nil || len(entries) != 3 {
		t.Errorf("in the folder there are %v, %v", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, "instances", "a", instanceFile))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("instance.json: %v, %v", info, err)
	}
}

// TestDamagedRecords checks that an instance whose record cannot be read is named, that the others run, and that it can be
// deleted and made again.
func TestDamagedRecords(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	newNetwork(t, c, "n")
	for _, id := range []string{"whole", "damaged"} {
		ensure(t, c, InstanceSpec{ID: id, Network: "n"})
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "instances", "damaged", instanceFile)
	for name, data := range map[string]string{file: "{", filepath.Join(dir, "networks", "other.json"): ""} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c = open(t, dir)
	runs(t, c, "whole")
	spec := InstanceSpec{ID: "damaged", Network: "n"}
	if _, err := c.EnsureInstance(t.Context(), spec); err == nil || !strings.Contains(err.Error(), file) ||
		!strings.Contains(err.Error(), "put a copy of the file back") {
		t.Errorf("a damaged record: %v", err)
	}
	if err := c.DeleteInstance(t.Context(), "damaged"); err != nil {
		t.Fatal(err)
	}
	ensure(t, c, spec)
	runs(t, c, "damaged")
	newNetwork(t, c, "other")
}

func TestDeleteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	newNetwork(t, c, "n")
	goroutinesEnded := testutil.Goroutines(t)
	var group sync.WaitGroup
	for i := range 20 {
		id := fmt.Sprint("i", i)
		ensure(t, c, InstanceSpec{ID: id, Network: "n"})
		if i%2 == 0 {
			runs(t, c, id)
		}
		for range 2 { // two at once, some while it boots
			group.Go(func() {
				if err := c.DeleteInstance(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	goroutinesEnded(testutil.Timeout)
	entries, err := os.ReadDir(filepath.Join(dir, "instances"))
	if err != nil || len(entries) > 0 {
		t.Errorf("what is left on the disk: %v, %v", entries, err)
	}
	if left := c.Instances("n"); len(left) > 0 {
		t.Errorf("what is left: %v", left)
	}
}

// An instance whose program does not end keeps its folder and address until it has; the caller can give up waiting.
func TestDeleteWaits(t *testing.T) {
	release := make(chan struct{})
	dir := t.TempDir()
	c, err := Open(Config{Dir: dir, Log: logr.Discard(), Programs: map[string]machine.Program{
		"/opt/bin/slow": func(context.Context, *machine.Machine, []string) error { <-release; return nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	newNetwork(t, c, "n")
	ensure(t, c, InstanceSpec{ID: "i", Network: "n"})
	runs(t, c, "i")
	m, _ := c.Machine("i")
	err = errors.Join(m.FS().WriteFile("/etc/systemd/system/slow.service", []byte("[Service]\nExecStart=/opt/bin/slow\n"), 0o644),
		m.Units().Start(t.Context(), "slow"))
	if err != nil {
		t.Fatal(err)
	}
	gaveUp, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := c.DeleteInstance(gaveUp, "i"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := c.EnsureInstance(t.Context(), InstanceSpec{ID: "i", Network: "n"}); !errors.Is(err, ErrDeleting) {
		t.Errorf("making it again: %v", err)
	}
	close(release)
	if err := c.DeleteInstance(t.Context(), "i"); err != nil {
		t.Error(err)
	}
	if _, there := c.Instance("i"); there {
		t.Error("it is there")
	}
}

func TestDial(t *testing.T) {
	c := open(t, t.TempDir())
	newNetwork(t, c, "n")
	newNetwork(t, c, "other")
	i := ensure(t, c, InstanceSpec{ID: "i", Network: "n"})
	runs(t, c, "i")
	m, _ := c.Machine("i")
	for name, try := range map[string]struct {
		network string
		to      netip.AddrPort
		want    error
	}{
		"no network":      {"unknown", netip.AddrPortFrom(i.Address, 22), ErrNotFound},
		"another network": {"other", netip.AddrPortFrom(i.Address, 22), ErrNotFound},
		"no instance":     {"n", netip.MustParseAddrPort("10.250.0.99:22"), ErrNotFound},
		"another port":    {"n", netip.AddrPortFrom(i.Address, 10250), memnet.ErrRefused},
	} {
		if _, err := c.Dial(t.Context(), try.network, try.to); !errors.Is(err, try.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(m.FS().MkdirAll("/root/.ssh", 0o700),
		m.FS().WriteFile("/root/.ssh/authorized_keys", ssh.MarshalAuthorizedKey(key.PublicKey()), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.Dial(t.Context(), "n", netip.AddrPortFrom(i.Address, 22))
	if err != nil {
		t.Fatal(err)
	}
	if host, _, _ := strings.Cut(raw.LocalAddr().String(), ":"); host != "10.250.0.1" {
		t.Errorf("dialed from %s, not from the router", raw.LocalAddr())
	}
	conn, channels, requests, err := ssh.NewClientConn(raw, "i", &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(m.HostKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(conn, channels, requests)
	if _, err := client.Dial("tcp", "10.250.0.1:80"); err == nil {
		t.Error("a node forwards connections")
	}
	if err := c.DeleteInstance(t.Context(), "i"); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait() // is cut
}

// BenchmarkNodes measures the memory and the goroutines of a node with two programs.
func BenchmarkNodes(b *testing.B) {
	idle := func(ctx context.Context, _ *machine.Machine, _ []string) error { <-ctx.Done(); return nil }
	for b.Loop() {
		c,
			err := Open(Config{Dir: b.TempDir(), Log: logr.Discard(), Programs: map[string]machine.Program{"/opt/bin/a": idle, "/opt/bin/b": idle}})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.EnsureNetwork(b.Context(), "n", netip.MustParsePrefix("10.250.0.0/16")); err != nil {
			b.Fatal(err)
		}
		const count = 200
		before, goroutines := memory(), runtime.NumGoroutine()
		for i := range count {
			ensure(b, c, InstanceSpec{ID: fmt.Sprint("i", i), Network: "n"})
		}
		for i := range count {
			id := fmt.Sprint("i", i)
			runs(b, c, id)
			m, _ := c.Machine(id)
			for _, name := range []string{"a", "b"} {
				err := m.FS().WriteFile("/etc/systemd/system/"+name+".service",
					[]byte("[Service]\nExecStart=/opt/bin/"+name+"\nRestart=always\n"), 0o644)
				if err = errors.Join(err, m.Units().Start(b.Context(), name)); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(memory()-before)/count/1024, "KiB/node")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/count, "goroutines/node")
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// memory returns the bytes of the heap and the stacks in use after a garbage collection.
func memory() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}
