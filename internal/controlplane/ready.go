package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// readyPoll is how often the readiness of a starting server is checked.
const readyPoll = 5 * time.Millisecond

// settleTimeout is how long a server whose start was aborted may take to become ready.
const settleTimeout = 5 * time.Second

// healthUser is the user that checks readiness. It needs no group.
const healthUser = "gardenlite:health"

// waitReady waits until /readyz is ok, the server has ended, or the context has ended.
func (s *Server) waitReady(ctx context.Context) error {
	config, err := s.ClientConfig("health", healthUser)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making the client that waits for the API server: %w", err)
	}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		missing, err := readyz(ctx, client, s.URL())
		if err == nil && missing == "" {
			return nil
		}
		select {
		case <-s.done:
			return errors.Join(errors.New("the API server ended before it was ready"), s.err)
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %s: %w", missing, ctx.Err())
		case <-ticker.C:
		}
	}
}

// settle lets a server whose start was aborted become ready for some time. A server that is stopped before it is ready
// takes longer: its own requests wait ten seconds each for the caches of admission, which no longer sync.
func (s *Server) settle(aborted context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(aborted), settleTimeout)
	defer cancel()
	_ = s.waitReady(ctx)
}

// readyz reads the readiness of an API server. It returns the failed checks, an empty text if the server is ready.
func readyz(ctx context.Context, client *http.Client, url string) (missing string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz?verbose", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "it does not answer", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || response.StatusCode == http.StatusOK {
		return "", err
	}
	var failed []string
	for line := range strings.Lines(string(body)) {
		if check, isFailed := strings.CutPrefix(line, "[-]"); isFailed {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}
	if len(failed) == 0 {
		return fmt.Sprintf("/readyz answers %d", response.StatusCode), nil
	}
	return "waiting for " + strings.Join(failed, ", "), nil
}
