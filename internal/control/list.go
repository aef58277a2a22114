package control

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// Landscape is a landscape of this machine, running or not.
type Landscape struct {
	Name  string `json:"name"`
	Dir   string `json:"dir"`
	State string `json:"state"`
	// Message says why the state is not known.
	Message string `json:"message,omitempty"`
	// URL and PID are set while the landscape runs.
	URL       string `json:"url,omitempty"`
	PID       int    `json:"pid,omitempty"`
	Version   string `json:"version"`
	Datastore string `json:"datastore"`
	// StartedAt is when it was started last.
	StartedAt time.Time `json:"startedAt"`
	// Size is how many bytes it takes on the disk.
	Size uint64 `json:"size"`
}

// stateUnknown is the state of a landscape that does not answer.
const stateUnknown = "Unknown"

// listTimeout bounds how long one landscape may take to say how it is.
const listTimeout = 2 * time.Second

// List returns the landscapes in state directories. Directories without a landscape's run.json are left out: they are
// empty, or those of a gardenlet or an admission controller that runs alone.
func List(ctx context.Context, dirs []string) []Landscape {
	all := []Landscape{}
	for _, dir := range dirs {
		run, err := statedir.ReadRun(dir)
		if errors.Is(err, statedir.ErrNotRunning) {
			continue
		}
		l := Landscape{Name: filepath.Base(dir), Dir: dir, State: stateUnknown, Size: fsutil.Size(dir)}
		if err != nil {
			l.Message = err.Error()
			all = append(all, l)
			continue
		}
		l.Name, l.Version, l.Datastore, l.StartedAt = run.Name, run.Version, run.Datastore, run.StartedAt
		l.State, err = listedState(ctx, dir)
		if err != nil {
			l.Message = err.Error()
		}
		if l.State != StateStopped {
			l.URL, l.PID = run.URL, run.PID
		}
		all = append(all, l)
	}
	return all
}

func listedState(ctx context.Context, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	client, err := Connect(dir)
	if errors.Is(err, statedir.ErrNotRunning) {
		return StateStopped, nil
	}
	if err != nil {
		return stateUnknown, err
	}
	defer client.http.CloseIdleConnections()
	status, err := client.Status(ctx, false)
	if err != nil {
		return stateUnknown, err
	}
	return status.State, nil
}
