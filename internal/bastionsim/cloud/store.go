package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	instanceFile = "instance.json"
	stoppedFile  = "stopped"
	machineDir   = "machine"
	jsonSuffix   = ".json"
	// Folders with this prefix are half made or half deleted; no ID begins with it.
	unfinished = "."
)

// record is the stored form of an instance.
type record struct {
	InstanceSpec
	Address netip.Addr `json:"address"`
	// PublicAddress is valid if and only if Public is set.
	PublicAddress netip.AddrPort `json:"publicAddress,omitzero"`
}

type networkRecord struct {
	CIDR netip.Prefix `json:"cidr"`
}

func (c *Cloud) networksDir() string          { return filepath.Join(c.cfg.Dir, "networks") }
func (c *Cloud) instancesDir() string         { return filepath.Join(c.cfg.Dir, "instances") }
func (c *Cloud) networkFile(id string) string { return filepath.Join(c.networksDir(), id+jsonSuffix) }
func (c *Cloud) instanceDir(id string) string { return filepath.Join(c.instancesDir(), id) }
func (c *Cloud) recordFile(id string) string  { return filepath.Join(c.instanceDir(id), instanceFile) }
func (c *Cloud) stoppedMark(id string) string { return filepath.Join(c.instanceDir(id), stoppedFile) }
func (c *Cloud) machineDir(id string) string  { return filepath.Join(c.instanceDir(id), machineDir) }
func (c *Cloud) unfinished(id string) string  { return filepath.Join(c.instancesDir(), unfinished+id) }

func (c *Cloud) saveNetwork(n *network) error {
	data, err := json.Marshal(networkRecord{CIDR: n.cidr})
	if err != nil {
		return err
	}
	return fsutil.WriteFile(c.networkFile(n.id), data, 0o600)
}

// saveInstance creates the folder of an instance atomically.
func (c *Cloud) saveInstance(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	dir := c.unfinished(r.ID)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err = os.WriteFile(filepath.Join(dir, instanceFile), data, 0o600); err == nil {
		err = os.Rename(dir, c.instanceDir(r.ID))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// removeInstance removes the folder of an instance. It renames the folder first, so that a half removed one is never
// loaded.
func (c *Cloud) removeInstance(id string) error {
	dir := c.unfinished(id)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(c.instanceDir(id), dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

func readJSON(file string, value any) error {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, value)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

func (c *Cloud) readRecord(id string) (r record, err error) {
	if err := readJSON(c.recordFile(id), &r); err != nil {
		return r, err
	}
	if r.ID != id {
		return r, fmt.Errorf("reading %s: it is of instance %q", c.recordFile(id), r.ID)
	}
	if (r.Public != nil) != r.PublicAddress.IsValid() {
		return r, fmt.Errorf("reading %s: only a bastion has a public address, and every bastion has one", c.recordFile(id))
	}
	return r, nil
}

// load reads the folder, and removes what a kill left unfinished.
func (c *Cloud) load() error {
	for _, dir := range []string{c.networksDir(), c.instancesDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := c.loadNetworks(); err != nil {
		return err
	}
	return c.loadInstances()
}

func (c *Cloud) loadNetworks() error {
	entries, err := os.ReadDir(c.networksDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		file := filepath.Join(c.networksDir(), entry.Name())
		id, isNetwork := strings.CutSuffix(entry.Name(), jsonSuffix)
		if strings.HasPrefix(id, unfinished) || !isNetwork {
			if err := os.Remove(file); err != nil {
				return err
			}
			continue
		}
		var r networkRecord
		if err := readJSON(file, &r); err != nil {
			return err
		}
		c.networks[id] = &network{id: id, cidr: r.CIDR, used: map[netip.Addr]*instance{}}
	}
	return nil
}

func (c *Cloud) loadInstances() error {
	entries, err := os.ReadDir(c.instancesDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		id := entry.Name()
		if strings.HasPrefix(id, unfinished) {
			if err := os.RemoveAll(c.instanceDir(id)); err != nil {
				return err
			}
			continue
		}
		r, err := c.readRecord(id)
		if err != nil {
			return err
		}
		n := c.networks[r.Network]
		if n == nil {
			return fmt.Errorf("reading %s: network %s: %w", c.recordFile(id), r.Network, ErrNotFound)
		}
		i := newInstance(r)
		if _, err := os.Stat(c.stoppedMark(id)); err == nil {
			i.state = Stopped
		}
		c.instances[id], n.used[r.Address] = i, i
	}
	return nil
}
