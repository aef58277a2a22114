package landscape

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/authz/inspect"
	"github.com/gardenlite/gardenlite/internal/authz/server"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/garden"
)

const (
	// admissionController is the name of the component, for the status and for --controllers.
	admissionController = "admission-controller"
	// admissionFolder has the files that tell the garden's API server of the webhooks.
	admissionFolder = "admission"
	// loopback is where the webhooks listen, wherever the API server does: only it asks them.
	loopback = "127.0.0.1"
)

// admission is the admission controller beside the garden.
type admission struct {
	listener   net.Listener
	url        string
	controller *server.Controller
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
		constants.GardenNamespace + "/" + server.ServiceName: {Scheme: "https", Host: a.listener.Addr().String()},
	}
}

func (a *admission) port() int { return a.listener.Addr().(*net.TCPAddr).Port }

// prepareAdmission writes the files that the API server is started with.
func (l *Landscape) prepareAdmission(p *pki.PKI) ([]string, error) {
	client, err := p.Client(server.ClientName, server.ClientUser)
	if err != nil {
		return nil, err
	}
	return server.Client{URL: l.admission.url, CAPEM: p.CAPEM(), CertFile: client.CertFile, KeyFile: client.KeyFile}.
		WriteFiles(filepath.Join(l.cfg.Dir, admissionFolder))
}

// startAdmission starts the admission controller, and returns when it answers for all that is in the garden.
func (l *Landscape) startAdmission(ctx context.Context) error {
	begin := time.Now()
	if !garden.SelectsController(l.cfg.Controllers, admissionController) {
		// The API server keeps asking: gardenlets are refused until another admission controller answers on the port.
		return l.admission.listener.Close()
	}
	l.board.component(admissionController, StateStarting, "")
	apiserver := l.garden.Server()
	config, err := apiserver.ClientConfig(admissionController, server.User)
	if err != nil {
		return err
	}
	authority := apiserver.PKI().CAPEM()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	c, err := server.New(server.Config{
		REST: config, Listener: l.admission.listener, CAPEM: authority,
		CertFile: apiserver.PKI().ServingCertFile(), KeyFile: apiserver.PKI().ServingKeyFile(),
		ClientCAs: authorities, ClientNames: []string{server.ClientUser}, Debug: true, Clock: l.cfg.Clock,
		Log: klog.Background().WithName(admissionController),
	})
	if err != nil {
		return err
	}
	l.admission.controller = c
	// Before the first webhook allows anything: the second one looks at what is written then.
	if err := server.Install(ctx, l.garden.AdminConfig(), "", authority); err != nil {
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
	if err := c.WaitSynced(ctx, func(string) {}); err != nil {
		return err
	}
	l.board.component(admissionController, StateReady, "")
	l.step("admission controller", time.Since(begin))
	return nil
}

// inspector explains access to the garden. It is refused until the landscape is ready: what it needs is written before that,
// by another goroutine.
func (l *Landscape) inspector() (*inspect.Inspector, error) {
	l.board.mu.Lock()
	state := l.board.status.State
	l.board.mu.Unlock()
	if state != StateReady {
		return nil, fmt.Errorf("the landscape is not ready: it is %s; wait with \"gardenlite status --wait\"", state)
	}
	if l.admission.controller == nil {
		return nil, errors.New("the landscape runs without the " + admissionController +
			", so nothing is allowed to gardenlets beyond RBAC: start it without -" + admissionController + " in --controllers")
	}
	return l.admission.controller.Inspector(l.garden.AdminConfig())
}
