package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// The files of a state directory.
const (
	LockFile       = "lock"
	RunFile        = "run.json"
	KubeconfigFile = "kubeconfig"
	LogFile        = "gardenlite.log"
	ControlSocket  = "control.sock"
	PKIFolder      = "pki"
	DataFolder     = "data"
	// ChartsFolder has OCI layouts of charts, which the user puts there.
	ChartsFolder = "charts"
	// CloudFolder has the simulated cloud's networks and instances.
	CloudFolder = "cloud"
	// ShootsFolder is the path element before a shoot's technical ID, below the folder of a landscape's data or its
	// prefix in a shared datastore.
	ShootsFolder = "shoots"
	// GardenletsFolder records which gardenlets were deployed, so that they run again after a restart. It has no
	// credentials.
	GardenletsFolder = "gardenlets"
	// AdmissionFolder has the files with which the garden's API server finds the webhooks.
	AdmissionFolder = "admission"
	// ProcessesFolder has the folders and logs of Pods that run as processes.
	ProcessesFolder = "processes"
	// ImagesFile has the images that were mapped while the landscape ran.
	ImagesFile = "images.json"
	// ClockFile has what has become of the clock.
	ClockFile = "clock.json"
	// SeedsFile has the seeds that were added and removed while the landscape ran.
	SeedsFile = "seeds.json"
	// StacksFolder has packages of stacks.
	StacksFolder = "stacks"
	// SnapshotsFolder has the snapshots of the landscape.
	SnapshotsFolder = "snapshots"
	// RestoringFolder has the snapshot that is being restored.
	RestoringFolder = "restoring"
	// bastionsFolder has the folders of Bastions that were kept.
	bastionsFolder = "ssh"
	// PortFile keeps the port of a gardenlet that runs alone, for the next start.
	PortFile = "port"
)

// GardenCluster is the name of the garden's cluster, and of its Node.
const GardenCluster = "garden"

// SeedPrefix precedes a seed's name in the names of its cluster, of the Node there, and of its folders.
const SeedPrefix = "seed-"

// ErrLocked says that another process holds the landscape.
var ErrLocked = errors.New("another process holds this landscape")

// ErrNotRunning says that no process holds the landscape.
var ErrNotRunning = errors.New("the landscape is not running")

// Run is the content of run.json, about the process that holds the landscape or held it last.
type Run struct {
	Name      string    `json:"name"`
	PID       int       `json:"pid"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
	// URL is the address of the garden's API server. Port is taken again at the next start with --port 0. PortChosen
	// means that --port 0 chose it.
	URL        string `json:"url,omitempty"`
	Port       int    `json:"port,omitempty"`
	PortChosen bool   `json:"portChosen,omitempty"`
	// Options are the values of Config.Options.
	Options map[string]string `json:"options,omitempty"`
	// AdmissionPort is the port of the admission controller's webhooks, which is taken again at the next start.
	AdmissionPort int `json:"admissionPort,omitempty"`
	// ProxyPort is the port of the proxy for gardenlets outside of their seeds, 0 if there is none.
	ProxyPort int `json:"proxyPort,omitempty"`
	// SeedPorts are the ports of the seeds' API servers by seed name, which are taken again at the next start.
	SeedPorts map[string]int `json:"seedPorts,omitempty"`
	// Control is the path of the control socket.
	Control string `json:"control"`
	// Datastore is the kind of datastore that has the data: sqlite, memory, or the scheme of an endpoint.
	Datastore string `json:"datastore"`
}

// ReadRun reads run.json of a landscape.
func ReadRun(dir string) (*Run, error) {
	data, err := os.ReadFile(filepath.Join(dir, RunFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("reading the landscape's state: %w", err)
	}
	run := &Run{}
	if err := json.Unmarshal(data, run); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, RunFile), err)
	}
	return run, nil
}

func WriteRun(dir string, run *Run) error {
	data, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return err
	}
	return fsutil.WriteFile(filepath.Join(dir, RunFile), append(data, '\n'), 0o600)
}

// CheckReset returns why a landscape's data cannot be deleted: a process holds the landscape, or the directory does
// not look like a landscape's.
func CheckReset(dir string) error {
	held, err := lockForReset(dir)
	if held != nil {
		_ = held.Unlock()
	}
	return err
}

// lockForReset locks a landscape that can be deleted. It returns no lock for a directory that is empty or missing.
func lockForReset(dir string) (*flock.Flock, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	if len(entries) == 0 {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(dir, LockFile)); err != nil {
		return nil, fmt.Errorf("%s is not the state directory of a landscape; nothing was deleted", dir)
	}
	return Lock(dir)
}

// Reset deletes what a landscape has created. The files that identify its folder, run.json and the lock, go last, so
// that a reset that was interrupted can be run again. end is called first: it ends what a killed landscape has left
// behind.
func Reset(dir string, end func() error) error {
	held, err := lockForReset(dir)
	if err != nil {
		return err
	}
	if held == nil {
		if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	defer held.Unlock() //nolint:errcheck // the file is gone
	if err := end(); err != nil {
		return err
	}
	if err := fsutil.RemoveSockets(dir); err != nil {
		return fmt.Errorf("deleting what a killed landscape has left: %w", err)
	}
	for _, name := range []string{RestoringFolder, DataFolder, PKIFolder, CloudFolder, AdmissionFolder, GardenletsFolder, ProcessesFolder,
		StacksFolder, SnapshotsFolder, ImagesFile, SeedsFile, ClockFile, bastionsFolder, KubeconfigFile, PortFile,
		ControlSocket} {
		if err := fsutil.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("deleting the landscape's data: %w", err)
		}
	}
	// A kill may have left unfinished files.
	for _, pattern := range []string{"gardenlite*.log*", filepath.Base(SeedKubeconfigPath(dir, "*")), fsutil.Unfinished,
		RunFile, LockFile} {
		names, _ := fs.Glob(os.DirFS(dir), pattern)
		for _, name := range names {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("deleting the landscape's data: %w", err)
			}
		}
	}
	_ = os.Remove(dir) // fails if the user keeps other files in it
	return nil
}
