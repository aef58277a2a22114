package cloud

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// copies keeps the files of a folder in another one.
type copies struct {
	from, to string
	fails    error
}

func (c *copies) path(name string) string {
	relative, err := filepath.Rel(c.from, name)
	if err != nil {
		panic(err)
	}
	return filepath.Join(c.to, relative)
}

func (c *copies) Save(file string) error {
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.path(file)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(c.path(file), data, 0o600)
	}
	return errors.Join(err, c.fails)
}

func (c *copies) Remove(path string) error { return errors.Join(os.RemoveAll(c.path(path)), c.fails) }

// TestKeeper checks that a cloud that begins with what the Keeper has goes on where the first one was: with the same addresses, host
// keys and disks, without what was deleted.
func TestKeeper(t *testing.T) {
	kept := &copies{from: t.TempDir(), to: t.TempDir()}
	c, err := Open(Config{Dir: kept.from, Log: logr.Discard(), Keeper: kept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	newNetwork(t, c, "gone")
	newNetwork(t, c, "net")
	ensure(t, c, InstanceSpec{ID: "stopped", Network: "net", UserData: []byte("#!/bin/sh\npoweroff\n")})
	for _, id := range []string{"deleted", "one"} {
		ensure(t, c, InstanceSpec{ID: id, Network: "net"})
		runs(t, c, id)
	}
	one, _ := c.Instance("one")
	m, _ := c.Machine("one")
	if err := errors.Join(m.FS().WriteFile("/kept", []byte("text"), 0o600), m.FS().Sync(), c.DeleteInstance(t.Context(), "deleted"),
		c.DeleteNetwork(t.Context(), "gone")); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "it is off", func() bool {
		i, _ := c.Instance("stopped")
		return i.State == Stopped
	})

	next := open(t, kept.to)
	runs(t, next, "one")
	again, _ := next.Instance("one")
	n, _ := next.Machine("one")
	text, err := n.FS().ReadFile("/kept")
	if err != nil || string(text) != "text" || again.Address != one.Address || !sameKey(m, n) {
		t.Errorf("the disk has %q, the address is %s and was %s: %v", text, again.Address, one.Address, err)
	}
	if stopped, _ := next.Instance("stopped"); stopped.State != Stopped {
		t.Errorf("the instance that was powered off is %s", stopped.State)
	}
	if _, found := next.Instance("deleted"); found || next.networks["gone"] != nil {
		t.Error("what was deleted is there")
	}
}

func sameKey(a, b *machine.Machine) bool {
	return bytes.Equal(a.HostKey().Marshal(), b.HostKey().Marshal())
}

// TestKeeperFails checks that nothing is made or deleted that the Keeper does not know.
func TestKeeperFails(t *testing.T) {
	kept := &copies{from: t.TempDir(), to: t.TempDir()}
	c, err := Open(Config{Dir: kept.from, Log: logr.Discard(), Keeper: kept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	newNetwork(t, c, "net")
	ensure(t, c, InstanceSpec{ID: "one", Network: "net"})
	runs(t, c, "one")
	kept.fails = errors.New("the datastore does not answer")
	_, made := c.EnsureInstance(t.Context(), InstanceSpec{ID: "two", Network: "net"})
	network := c.EnsureNetwork(t.Context(), "other", cidr)
	deleted := c.DeleteInstance(t.Context(), "one")
	for what, err := range map[string]error{"an instance is made": made, "a network is made": network, "an instance is deleted": deleted} {
		if !errors.Is(err, kept.fails) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, found := c.Instance("two"); found {
		t.Error("there is an instance that the Keeper does not know")
	}
	kept.fails = nil
	if err := errors.Join(c.DeleteInstance(t.Context(), "one"), c.DeleteNetwork(t.Context(), "net")); err != nil {
		t.Error(err)
	}
}
