package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// landscape is a landscape that this program started, with its data in memory and a port of its own.
type landscape struct {
	binary, dir string
	host        string // of the API server
	webhooks    string // of the admission controller
	admin       *rest.Config
}

func startLandscape(binary string, flags ...string) (*landscape, error) {
	dir, err := os.MkdirTemp("", "bench-access-")
	if err != nil {
		return nil, err
	}
	l := &landscape{binary: binary, dir: dir}
	started.add(l)
	up := append([]string{"up", "--detach", "--seeds=0", "--port=0", "--datastore=memory"}, flags...)
	if _, err := l.run(up...); err != nil {
		return nil, err
	}
	return l, l.open()
}

// landscapes has the landscapes to stop at the end or on a signal, because they run in the background.
type landscapes struct {
	mu  sync.Mutex
	all []*landscape
}

var started landscapes

func (s *landscapes) add(l *landscape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, l)
}

func (s *landscapes) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		l.stop()
	}
	s.all = nil
}

func stopOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	<-signals
	started.stop()
	os.Exit(1)
}

// open reads the addresses of the landscape, and its kubeconfig.
func (l *landscape) open() error {
	data, err := os.ReadFile(filepath.Join(l.dir, "run.json"))
	if err != nil {
		return err
	}
	var run struct {
		URL           string `json:"url"`
		AdmissionPort int    `json:"admissionPort"`
	}
	if err := json.Unmarshal(data, &run); err != nil {
		return fmt.Errorf("reading run.json: %w", err)
	}
	l.host, l.webhooks = run.URL, fmt.Sprintf("https://127.0.0.1:%d", run.AdmissionPort)
	l.admin, err = clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, "kubeconfig"))
	if err != nil {
		return err
	}
	l.admin.QPS = -1
	return nil
}

func (l *landscape) stop() {
	if _, err := l.run("down"); err != nil && l.host != "" { // or it has not started
		fmt.Fprintln(os.Stderr, "Stopping the landscape:", err)
	}
	_ = os.RemoveAll(l.dir)
}

// run returns the standard output of a command. The standard error is part of the error.
func (l *landscape) run(args ...string) ([]byte, error) {
	out, err := exec.Command(l.binary, append(args, "--name=bench-access", "--data-dir="+l.dir)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("gardenlite %v: %w: %s", args, err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("gardenlite %v: %w", args, err)
	}
	return out, nil
}

// administrator returns a client with the administrator's certificate.
func (l *landscape) administrator() (*user, error) { return newUser("administrator", l.host, l.admin) }

// user returns a client with a certificate for the name and the groups.
func (l *landscape) user(name string, groups ...string) (*user, error) {
	config, err := l.certificate(name, groups...)
	if err != nil {
		return nil, err
	}
	return newUser(name, l.host, config)
}

// webhookClient returns a client for the webhooks, which answer only the API server.
func (l *landscape) webhookClient() (*user, error) {
	const name = "gardenlite:apiserver"
	config, err := l.certificate(name)
	if err != nil {
		return nil, err
	}
	config.Host = l.webhooks
	return newUser(name, l.webhooks, config)
}

func (l *landscape) certificate(name string, groups ...string) (*rest.Config, error) {
	args := []string{"kubeconfig", "--user=" + name}
	for _, group := range groups {
		args = append(args, "--group="+group)
	}
	kubeconfig, err := l.run(args...)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	return config, nil
}
