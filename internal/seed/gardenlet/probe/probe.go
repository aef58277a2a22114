// Package probe checks the health of an API server. It may import client-go, keeps no state and caches nothing.
package probe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Server checks an API server.
type Server struct {
	http      *http.Client
	url       *url.URL
	discovery discovery.DiscoveryInterface
}

// maxReport limits how much of the server's health report is read.
const maxReport = 64 << 10

// New creates a Server. The HTTP client may be shared.
func New(config *rest.Config, httpClient *http.Client) (*Server, error) {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server, %q: %w", config.Host, err)
	}
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &Server{httpClient, address, resources}, nil
}

// Healthy returns an error if /healthz fails.
func (s *Server) Healthy(ctx context.Context) error { return s.ask(ctx, "healthz") }

// Ready returns an error if /readyz fails.
func (s *Server) Ready(ctx context.Context) error { return s.ask(ctx, "readyz") }

// ask requests the path. It bypasses the rate limiter of client-go, so that other requests cannot delay it.
func (s *Server) ask(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.JoinPath(path).String(), nil)
	if err != nil {
		return fmt.Errorf("asking the API server for /%s: %w", path, err)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking the API server for /%s: %w", path, err)
	}
	defer response.Body.Close()
	report, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers /%s with %d%s", path, response.StatusCode, failing(string(report)))
	}
	if err != nil {
		return fmt.Errorf("reading the API server's answer to /%s: %w", path, err)
	}
	return nil
}

// failing returns the failed checks in the server's report.
func failing(report string) string {
	var names []string
	for line := range strings.Lines(report) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// Version returns the server's version.
func (s *Server) Version(context.Context) (string, error) {
	info, err := s.discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	return info.GitVersion, nil
}

// Resources returns the names of all served resources, such as "backupbuckets.extensions.gardener.cloud".
func (s *Server) Resources(context.Context) (sets.Set[string], error) {
	_, lists, err := s.discovery.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	names := sets.New[string]()
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			continue // the core group
		}
		for _, resource := range list.APIResources {
			names.Insert(resource.Name + "." + group)
		}
	}
	return names, nil
}
