package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Landscape is a landscape with a process and a folder of its own.
type Landscape struct {
	Dir     string
	binary  string
	Process *Process
}

// StartLandscape starts a landscape with further flags of "gardenlite up", and waits until it is ready.
func StartLandscape(ctx context.Context, binary string, flags ...string) (*Landscape, error) {
	dir, err := os.MkdirTemp("", "gardenlite-bench-")
	if err != nil {
		return nil, err
	}
	l := &Landscape{Dir: dir, binary: binary}
	if l.Process, err = Start(dir, binary, append([]string{"up", "--port=0", "--name=bench", "--data-dir=" + dir}, flags...)...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// The process may not have written run.json yet, which "gardenlite status" needs.
	if err := Poll(ctx, 2*time.Minute, func() (bool, error) {
		_, err := l.Run(ctx, "status", "--wait")
		return err == nil, nil
	}); err != nil {
		defer l.Stop()
		return nil, fmt.Errorf("waiting for the landscape: %w: %s", err, l.Process.Log())
	}
	return l, nil
}

// Stop ends the process and removes the folder.
func (l *Landscape) Stop() {
	l.Process.End()
	_ = os.RemoveAll(l.Dir)
}

// Run runs a command of gardenlite for the landscape, and returns what it prints.
func (l *Landscape) Run(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, l.binary, append(args, "--name=bench", "--data-dir="+l.Dir)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("gardenlite %s: %w: %s", args[0], err, failed.Stderr)
	}
	return out, err
}

// Config returns a client configuration for the administrator.
func (l *Landscape) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(l.Dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return config, nil
}

// Memory returns the resident memory of the process after a garbage collection, in bytes.
func (l *Landscape) Memory(ctx context.Context) (uint64, error) {
	out, err := l.Run(ctx, "status", "--collect-garbage", "-o=json")
	if err != nil {
		return 0, err
	}
	var status Status
	err = status.Parse(out)
	return status.Memory.Resident, err
}
