package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// The control socket's paths. Only the owner of the state directory can open the socket, so there is no authentication.
const (
	statusPath = "/status"
	stopPath   = "/stop"
)

// Serve serves the control socket until closeServer is called, which waits for the end. Each handler serves the
// paths that begin with its key.
func Serve(socket net.Listener, status func(collect bool) Status, stop func(), handlers map[string]http.Handler) (
	closeServer func() error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statusPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status(r.URL.Query().Has("collect")))
	})
	mux.HandleFunc("POST "+stopPath, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		stop()
	})
	for prefix, handler := range handlers {
		mux.Handle(prefix, handler)
	}
	server, done := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(socket)
	}()
	return func() error {
		_ = server.Close()
		<-done
		return nil
	}
}

// Client talks to the process that holds a landscape.
type Client struct {
	run  *statedir.Run
	http *http.Client
}

// connectTimeout is how long Connect waits for a process that holds the lock to write run.json, which it does right
// after it has taken the lock.
const connectTimeout = 5 * time.Second

// Connect returns a client for the process that holds the landscape, or ErrNotRunning.
func Connect(dir string) (*Client, error) {
	run, err := holder(dir)
	if err != nil {
		return nil, err
	}
	return clientOf(run), nil
}

func clientOf(run *statedir.Run) *Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", run.Control)
		},
	}
	return &Client{run: run, http: &http.Client{Transport: transport}}
}

// holder returns what run.json says of the process that holds the landscape.
func holder(dir string) (*statedir.Run, error) {
	timeout := time.After(connectTimeout)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if isHeld, err := statedir.IsHeld(dir); err != nil {
			return nil, err
		} else if !isHeld {
			return nil, statedir.ErrNotRunning
		}
		if run, err := statedir.ReadRun(dir); !errors.Is(err, statedir.ErrNotRunning) {
			return run, err
		}
		select {
		case <-timeout:
			return nil, fmt.Errorf("a process has taken the landscape %s ago and does not say how to talk to it", connectTimeout)
		case <-ticker.C:
		}
	}
}

// Status returns the status. With collect, garbage is collected before memory is measured.
func (c *Client) Status(ctx context.Context, collect bool) (*Status, error) {
	path := statusPath
	if collect {
		path += "?collect"
	}
	response, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	status := &Status{}
	if err := json.NewDecoder(response.Body).Decode(status); err != nil {
		return nil, fmt.Errorf("reading the landscape's status: %w", err)
	}
	return status, nil
}

// Stop asks the process to end. It does not wait.
func (c *Client) Stop(ctx context.Context) error {
	response, err := c.do(ctx, http.MethodPost, stopPath, nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// maxMessage is the largest size of an error message, in bytes.
const maxMessage = 64 << 10

// Call sends a request and returns the body of the response. Any status but 200 is an error, and 400 is a usage
// error.
func (c *Client) Call(ctx context.Context, method, path string, data []byte) (io.ReadCloser, error) {
	response, err := c.do(ctx, method, path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	message, err := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	message = bytes.TrimSpace(message)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the landscape's answer: %w", err)
	case response.StatusCode == http.StatusBadRequest:
		return nil, &usage.Error{Err: errors.New(string(message))}
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("process %d that holds the landscape is of version %s and does not know this yet: restart "+
			"it with \"gardenlite down\" and \"gardenlite up\"", c.run.PID, c.run.Version)
	}
	return nil, errors.New(string(message))
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://gardenlite"+path, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("process %d holds the landscape but does not answer: %w", c.run.PID, err)
	}
	return response, nil
}

// WaitReady waits until the landscape is ready. It returns an error when the landscape ends or the context does.
func WaitReady(ctx context.Context, dir string) (*Status, error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		client, err := Connect(dir)
		if err == nil {
			var status *Status
			status, err = client.Status(ctx, false)
			client.http.CloseIdleConnections()
			if err == nil && status.State == StateReady {
				return status, nil
			}
		} else if errors.Is(err, statedir.ErrNotRunning) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the landscape is not ready: %w", errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

// WaitStopped waits until no process holds the landscape.
func WaitStopped(ctx context.Context, dir string) error {
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		isHeld, err := statedir.IsHeld(dir)
		return !isHeld, err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the landscape has not stopped: %w", err)
	}
	return err
}
