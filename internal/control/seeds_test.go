package control

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// TestSeeds checks that the client gets the names to the landscape, and the landscape's errors back.
func TestSeeds(t *testing.T) {
	var got []string
	change := func(what string) func(context.Context, string) error {
		return func(_ context.Context, name string) error {
			got = append(got, what+" "+name)
			switch name {
			case "a b":
				return usage.Errorf("no name")
			case "busy":
				return errors.New("there are Shoots")
			}
			return nil
		}
	}
	mux := http.NewServeMux()
	mux.Handle(SeedsPath, SeedsHandler(change("add"), change("remove")))
	server := httptest.NewServer(mux)
	defer server.Close()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	client := &Client{run: &statedir.Run{}, http: &http.Client{Transport: &http.Transport{DialContext: dial}}}
	defer client.http.CloseIdleConnections()
	if err := errors.Join(client.AddSeed(t.Context(), "edge"), client.RemoveSeed(t.Context(), "edge")); err != nil {
		t.Error(err)
	}
	var wrong *usage.Error
	if err := client.AddSeed(t.Context(), "a b"); !errors.As(err, &wrong) || err.Error() != "no name" {
		t.Errorf("a wrong name: %v", err)
	}
	err := client.RemoveSeed(t.Context(), "busy")
	if errors.As(err, &wrong) || err == nil || err.Error() != "there are Shoots" {
		t.Errorf("a seed that cannot be removed: %v", err)
	}
	if all := strings.Join(got, ", "); all != "add edge, remove edge, add a b, remove busy" {
		t.Error(all)
	}
}
