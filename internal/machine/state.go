package machine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

// state is a machine in a snapshot.
type state struct {
	Files   []byte           `json:"files"`
	Units   map[string]*unit `json:"units"`
	Journal []string         `json:"journal"`
	Seeded  bool             `json:"seeded"`
}

// Snapshot is all that a machine has to keep over a restart of the landscape.
func (m *Machine) Snapshot() ([]byte, error) {
	files, err := m.fs.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("saving machine %s: %w", m.cfg.Hostname, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.Marshal(state{files, m.units, slices.Clone(m.journal), m.seeded})
}

// Restore makes a machine from its config and a snapshot. Boot does not run the user data again.
func Restore(cfg Config, snapshot []byte) (*Machine, error) {
	var s state
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, fmt.Errorf("reading the snapshot of machine %s: %w", cfg.Hostname, err)
	}
	m := prepare(cfg)
	files, err := vfs.Restore(s.Files, cfg.Disk, m.cfg.Clock.Now)
	if err != nil {
		return nil, fmt.Errorf("restoring machine %s: %w", cfg.Hostname, err)
	}
	m.fs, m.journal, m.seeded = files, s.Journal, s.Seeded
	for name, u := range s.Units {
		if u != nil {
			m.units[name] = u
		}
	}
	return m, nil
}
