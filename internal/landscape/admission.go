package landscape

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/authz/admissioncontroller"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garden"
)

const (
	// admissionController is the name of the component, for the status and for --controllers.
	admissionController = "admission-controller"
	// admissionFolder has the files that tell the garden's API server of the webhooks.
	admissionFolder = "admission"
	// webhookClient is who the API server is to the webhooks.
	webhookClient = "gardenlite:apiserver"
	// loopback is where the webhooks listen, wherever the API server does: only it asks them.
	loopback = "127.0.0.1"
)

// admission is the admission controller beside the garden.
type admission struct {
	listener   net.Listener
	url        string
	controller *admissioncontroller.Controller
}

// listenAdmission takes the port of the webhooks, the one of the last time if it is free.
func (l *Landscape) listenAdmission(previous *Run) error {
	port := 0
	if previous != nil && previous.AdmissionPort != 0 {
		port = freePort(loopback, previous.AdmissionPort)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listening for the admission webhooks: %w", err)
	}
	l.admission.listener, l.admission.url = listener, "https://"+listener.Addr().String()
	l.onClose(func() error {
		_ = listener.Close() // the server has closed it, if it was started
		return nil
	})
	return nil
}

// services says to the garden's API server that the webhooks' Service is here: each process has its own, and what is
// installed suits all of them.
func (a *admission) services() map[string]*url.URL {
	return map[string]*url.URL{
		constants.GardenNamespace + "/" + admissioncontroller.ServiceName: {Scheme: "https", Host: a.listener.Addr().String()},
	}
}

func (a *admission) port() int { return a.listener.Addr().(*net.TCPAddr).Port }

// prepareAdmission writes the files that the API server is started with.
func (l *Landscape) prepareAdmission(p *pki.PKI) ([]string, error) {
	client, err := p.Client("apiserver-webhooks", webhookClient)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(l.cfg.Dir, admissionFolder)
	files, err := admissioncontroller.NewFiles(folder, admissioncontroller.Client{
		URL: l.admission.url, CAPEM: p.CAPEM(), CertFile: client.CertFile, KeyFile: client.KeyFile,
	})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for the admission webhooks: %w", err)
	}
	for name, data := range files {
		if err := fsutil.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return admissioncontroller.Args(folder), nil
}

// startAdmission starts the admission controller, and returns when it answers for all that is in the garden.
func (l *Landscape) startAdmission(ctx context.Context) error {
	begin := time.Now()
	if !garden.SelectsController(l.cfg.Controllers, admissionController) {
		// The API server keeps asking: gardenlets are refused until somebody answers on the port.
		return l.admission.listener.Close()
	}
	l.board.component(admissionController, StateStarting, "")
	server := l.garden.Server()
	config, err := server.ClientConfig(admissionController, admissioncontroller.User)
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(server.PKI().CAPEM())
	c, err := admissioncontroller.New(admissioncontroller.Config{
		REST: config, Listener: l.admission.listener, CAPEM: server.PKI().CAPEM(),
		CertFile: server.PKI().ServingCertFile(), KeyFile: server.PKI().ServingKeyFile(),
		ClientCAs: authorities, ClientNames: []string{webhookClient}, Debug: true, DebugToken: rand.Text(), Clock: l.cfg.Clock, Log: klog.Background().WithName(admissionController),
	})
	if err != nil {
		return err
	}
	l.admission.controller = c
	// Before anybody is let through by the first webhook, the second one looks at what he does.
	if err := admissioncontroller.Install(ctx, l.garden.AdminConfig(), "", server.PKI().CAPEM()); err != nil {
		return err
	}
	runCtx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := c.Run(runCtx)
		if runCtx.Err() == nil {
			klog.Background().Error(err, "The admission controller has ended by itself")
			l.board.component(admissionController, StateFailed, err.Error())
		}
		ended <- err
	}()
	l.onClose(func() error {
		l.board.component(admissionController, StateStopping, "")
		cancel()
		return <-ended
	})
	if err := waitSynced(ctx, c); err != nil {
		return err
	}
	l.board.component(admissionController, StateReady, "")
	l.step("admission controller", time.Since(begin))
	return nil
}

func waitSynced(ctx context.Context, c *admissioncontroller.Controller) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !c.HasSynced() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the admission controller waits for %s", c.Missing()), ctx.Err())
		}
	}
	return nil
}
