// Package probe asks an API server how it is. It may import client-go, keeps no state and caches nothing.
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

// Server is an API server.
type Server struct {
	http      *http.Client
	url       *url.URL
	discovery discovery.DiscoveryInterface
}

// maxReport is how much is read of a server's report on itself.
const maxReport = 64 << 10

// New makes a Server that uses an HTTP client which may be shared.
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

// Healthy is nil if the server lives.
func (s *Server) Healthy(ctx context.Context) error { return s.ask(ctx, "healthz") }

// Ready is nil if the server can do all that it is for.
func (s *Server) Ready(ctx context.Context) error { return s.ask(ctx, "readyz") }

// ask asks at once: it does not wait until other requests of this process leave room.
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

// failing are the checks that fail, of the server's report.
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

// Version is the server's version.
func (s *Server) Version(context.Context) (string, error) {
	info, err := s.discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	return info.GitVersion, nil
}

// Resources are the names of all resources that are served, as "backupbuckets.extensions.gardener.cloud".
func (s *Server) Resources(context.Context) (sets.Set[string], error) {
	_, lists, err := s.discovery.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	names := sets.New[string]()
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			continue // of the core group, which has none
		}
		for _, resource := range list.APIResources {
			names.Insert(resource.Name + "." + group)
		}
	}
	return names, nil
}
