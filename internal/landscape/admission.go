package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// admissionController is the name of the component, for the status and for --controllers.
const admissionController = "admission-controller"

// admission is the admission controller of the landscape; controller is nil until it is started.
type admission struct {
	*server.Embedded
	controller *server.Controller
}

// listenAdmission listens on a port for the webhooks, the previous one if it is free.
func (l *Landscape) listenAdmission(previous *statedir.Run) (err error) {
	port := 0
	if previous != nil && previous.AdmissionPort != 0 {
		port = statedir.FreePort("127.0.0.1", previous.AdmissionPort)
	}
	if l.admission.Embedded, err = server.Listen(port); err != nil {
		return err
	}
	l.onClose(func() error {
		_ = l.admission.Close() // the server has closed it, if it was started
		return nil
	})
	return nil
}

// prepareAdmission writes the files that the API server needs for the webhooks, and returns its flags.
func (l *Landscape) prepareAdmission(p *pki.PKI) ([]string, error) {
	return l.admission.WriteFiles(p, filepath.Join(l.cfg.Dir, statedir.AdmissionFolder))
}

// startAdmission starts the admission controller, and waits until it has synced with the garden.
func (l *Landscape) startAdmission(ctx context.Context) error {
	begin := time.Now()
	if !l.selects(admissionController) {
		// The API server keeps asking: gardenlets are refused until another admission controller answers on the port.
		return l.admission.Close()
	}
	l.store.SetComponentState(admissionController, control.StateStarting, "")
	apiserver := l.garden.Server()
	config, err := apiserver.ClientConfig(admissionController, server.User)
	if err != nil {
		return err
	}
	c, err := l.admission.New(ctx, config, l.garden.AdminConfig(), apiserver.PKI(), l.cfg.Clock,
		klog.Background().WithName(admissionController))
	if err != nil {
		return err
	}
	l.admission.controller = c
	runCtx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := c.Run(runCtx)
		if runCtx.Err() == nil {
			klog.Background().Error(err, "The admission controller has ended by itself")
			l.store.SetComponentState(admissionController, control.StateFailed, err.Error())
		}
		ended <- err
	}()
	l.onClose(func() error {
		l.store.SetComponentState(admissionController, control.StateStopping, "")
		cancel()
		return <-ended
	})
	if err := c.WaitSynced(ctx, func(string) {}); err != nil {
		return err
	}
	l.store.SetComponentState(admissionController, control.StateReady, "")
	l.store.RecordStep("admission controller", time.Since(begin))
	return nil
}

// inspected returns the controller that explains access to the garden. It returns an error until the landscape is
// ready, because another goroutine writes these fields before.
func (l *Landscape) inspected() (*server.Controller, *rest.Config, error) {
	if state := l.store.State(); state != control.StateReady {
		return nil, nil, fmt.Errorf("the landscape is not ready: it is %s; wait with \"gardenlite status --wait\"", state)
	}
	if l.admission.controller == nil {
		return nil, nil, errors.New("the landscape runs without the " + admissionController +
			", so nothing is allowed to gardenlets beyond RBAC: start it without -" + admissionController + " in --controllers")
	}
	return l.admission.controller, l.garden.AdminConfig(), nil
}

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
