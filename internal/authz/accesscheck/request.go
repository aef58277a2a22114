package accesscheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// maxAnswer is the maximum size of a response body that is read.
const maxAnswer = 32 << 20

// object is an API object as decoded JSON.
type object = map[string]any

type request struct {
	method, path string
	body         any // nil for none
}

func get(path string) *request         { return &request{http.MethodGet, path, nil} }
func post(path string, o any) *request { return &request{http.MethodPost, path, o} }
func remove(path string) *request      { return &request{http.MethodDelete, path, nil} }

// patch returns a merge patch request.
func patch(path string, o any) *request { return &request{http.MethodPatch, path, o} }

// named returns the path to read one object with a field selector, as informers do.
func named(path, name string) string {
	return path + "?fieldSelector=" + url.QueryEscape("metadata.name="+name)
}

// dryRun returns the request as a dry run, unless it changes nothing anyway.
func (r request) dryRun() request {
	if r.method != http.MethodGet && !strings.HasPrefix(r.path, "/apis/authorization.k8s.io/") {
		r.path += "?dryRun=All"
	}
	return r
}

func (r request) String() string { return r.method + " " + r.path }

type answer struct {
	code    int
	message string // of a refusal or an error
	body    []byte // of a success
}

func (a answer) ok() bool { return a.code/100 == 2 }

// client sends requests as one user, without retries and rate limits, so that each response belongs to the request.
type client struct {
	host string
	http *http.Client
}

func newClient(config *rest.Config) (*client, error) {
	config = rest.CopyConfig(config)
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the garden: %w", err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the garden: %w", err)
	}
	return &client{strings.TrimSuffix(server.String(), "/"), c}, nil
}

// open sends a request and returns the response with its body open.
func (c *client) open(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, c.host+r.path, body)
	if err != nil {
		return nil, err
	}
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("Content-Type", "application/json")
	if r.method == http.MethodPatch {
		sent.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return c.http.Do(sent)
}

// do sends a request. It returns an error only if there was no response.
func (c *client) do(ctx context.Context, r request) (answer, error) {
	response, err := c.open(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, err
	}
	a := answer{code: response.StatusCode, body: data}
	if !a.ok() {
		a.message = strings.TrimSpace(string(data)) // the response is plain text if an authorizer failed
		var status metav1.Status
		if json.Unmarshal(data, &status) == nil {
			a.message = status.Message
		}
		a.body = nil
	}
	return a, nil
}

// must sends a request that has to succeed, and decodes the response into a value unless that is nil.
func (c *client) must(ctx context.Context, r *request, into any) error {
	a, err := c.do(ctx, *r)
	switch {
	case err != nil:
		return err
	case !a.ok():
		return &statusError{r, a}
	case into == nil:
		return nil
	}
	return json.Unmarshal(a.body, into)
}

// statusError is the error for an unsuccessful response to the administrator.
type statusError struct {
	request *request
	answer  answer
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.request, e.answer.code, e.answer.message)
}

func hasCode(err error, code int) bool {
	status, ok := err.(*statusError)
	return ok && status.answer.code == code
}
