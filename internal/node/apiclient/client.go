package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// requestTimeout is the timeout of all requests except watches.
	requestTimeout = 15 * time.Second
	// maxResponse is the maximum number of bytes of a response: more than the 10,000 Pods of the Node of a seed have.
	maxResponse = 256 << 20
	// maxErrorBody is the maximum number of bytes that is read of a response that is an error.
	maxErrorBody = 1 << 20
)

// Client talks to one API server.
type Client struct {
	server    *url.URL
	token     string
	transport http.RoundTripper
	close     func()
}

// Close releases the connection. It can be called several times.
func (c *Client) Close() { c.close() }

// Get reads an object.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, "", nil, into)
}

// List reads the objects of a collection that a field selector selects.
func (c *Client) List(ctx context.Context, path, fieldSelector string, into any) error {
	return c.do(ctx, http.MethodGet, path, url.Values{"fieldSelector": {fieldSelector}}, "", nil, into)
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, path string, options *metav1.DeleteOptions) error {
	return c.do(ctx, http.MethodDelete, path, nil, "application/json", options, nil)
}

// Create creates an object. If into is not nil, the created object is stored in it.
func (c *Client) Create(ctx context.Context, path string, obj, into any) error {
	return c.do(ctx, http.MethodPost, path, nil, "application/json", obj, into)
}

// Update replaces an object.
func (c *Client) Update(ctx context.Context, path string, obj, into any) error {
	return c.do(ctx, http.MethodPut, path, nil, "application/json", obj, into)
}

// Patch changes an object.
func (c *Client) Patch(ctx context.Context, path string, kind types.PatchType, patch, into any) error {
	return c.do(ctx, http.MethodPatch, path, nil, string(kind), patch, into)
}

// PatchAs changes an object with the given field manager.
func (c *Client) PatchAs(ctx context.Context, manager, path string, kind types.PatchType, patch any) error {
	return c.do(ctx, http.MethodPatch, path, url.Values{"fieldManager": {manager}}, string(kind), patch, nil)
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, contentType string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := c.send(ctx, method, path, query, contentType, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err == nil && len(data) > maxResponse {
		err = fmt.Errorf("it has more than %d bytes", maxResponse)
	}
	if err != nil {
		return fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// send returns a successful response; the caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, contentType string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("writing the request %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(data)
	}
	address := c.server.JoinPath(path)
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, address.String(), content)
	if err != nil {
		return nil, fmt.Errorf("writing the request %s %s: %w", method, path, err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "kubelet")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %s %s: %w", method, path, err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, fmt.Errorf("%s %s: %w", method, path, errorOf(response))
}

// errorOf returns the error of a response that is not successful.
func errorOf(response *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	status := metav1.Status{}
	if json.Unmarshal(data, &status) == nil && status.Status == metav1.StatusFailure {
		return apierrors.FromObject(&status)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(response.StatusCode), Message: "the API server answers " + response.Status,
	}}
}

// Watch receives events until it is closed.
type Watch struct {
	body    io.Closer
	decoder *json.Decoder
}

// Watch begins to watch the objects of a collection that a field selector selects, from a resource version on.
func (c *Client) Watch(ctx context.Context, path, fieldSelector, resourceVersion string) (*Watch, error) {
	response, err := c.send(ctx, http.MethodGet, path, url.Values{
		"watch": {"true"}, "fieldSelector": {fieldSelector}, "resourceVersion": {resourceVersion},
	}, "", nil)
	if err != nil {
		return nil, err
	}
	return &Watch{response.Body, json.NewDecoder(response.Body)}, nil
}

// Next waits for the next event, and stores its object. It returns io.EOF when the API server ends the watch.
func (w *Watch) Next(into any) (watch.EventType, error) {
	event := metav1.WatchEvent{}
	if err := w.decoder.Decode(&event); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "", io.EOF
		}
		return "", fmt.Errorf("watching: %w", err)
	}
	if event.Type == string(watch.Error) {
		status := metav1.Status{}
		if err := json.Unmarshal(event.Object.Raw, &status); err != nil {
			return "", fmt.Errorf("watching: reading an error: %w", err)
		}
		return "", fmt.Errorf("watching: %w", apierrors.FromObject(&status))
	}
	if err := json.Unmarshal(event.Object.Raw, into); err != nil {
		return "", fmt.Errorf("watching: reading an event: %w", err)
	}
	return watch.EventType(event.Type), nil
}

// Event is an event of a watch for objects of the type T.
type Event[T any] struct {
	Type   watch.EventType
	Object *T
}

// ReadEvents sends the events of a watch until the watch or the context ends, and returns the reason.
func ReadEvents[T any](ctx context.Context, w *Watch, events chan<- Event[T]) error {
	for {
		object := new(T)
		kind, err := w.Next(object)
		if err != nil {
			return err
		}
		select {
		case events <- Event[T]{kind, object}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the watch.
func (w *Watch) Close() { _ = w.body.Close() }
