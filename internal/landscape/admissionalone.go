package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// DefaultAdmissionDir returns the state directory of an admission controller of that name that runs alone.
func DefaultAdmissionDir(name string) (string, error) {
	return statedir.DefaultDir("admission-controller-" + name)
}

// RunAdmissionController runs an admission controller for a garden elsewhere until the context ends. It locks its
// state directory, and writes the log there.
func RunAdmissionController(ctx context.Context, cfg server.StandaloneConfig, logFormat string, verbose bool) (err error) {
	alone, err := server.NewStandalone(ctx, cfg)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, statedir.RunFile)); err == nil {
		return usage.Errorf("--data-dir %s is a landscape's, which has an admission controller of its own: choose another", cfg.Dir)
	}
	if err := statedir.Prepare(cfg.Dir); err != nil {
		return err
	}
	held, err := statedir.Lock(cfg.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w: choose another --name or --data-dir", cfg.Dir, err)
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	logs, err := control.StartLogging(control.LogConfig{Dir: cfg.Dir, Format: logFormat, Verbose: verbose})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	return alone.Run(ctx)
}
