package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// user sends requests with a certificate, on one HTTP/2 connection as client-go does, but without decoding the answers.
type user struct {
	name, host string
	client     *http.Client
}

// user returns a client with a kubeconfig of "gardenlite kubeconfig".
func (a *actors) user(ctx context.Context, name string, flags ...string) (*user, error) {
	config, err := a.Config(ctx, flags...)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	return &user{name: name, host: config.Host, client: client}, err
}

// send sends a request, and returns an error unless the response has the given status.
func (u *user) send(ctx context.Context, method, path string, body []byte, status int) error {
	_, err := u.ask(ctx, method, path, body, status)
	return err
}

func (u *user) get(ctx context.Context, path string) error {
	return u.send(ctx, http.MethodGet, path, nil, http.StatusOK)
}

func (u *user) create(ctx context.Context, path string, body []byte) error {
	return u.send(ctx, http.MethodPost, path, body, http.StatusCreated)
}

func (u *user) ask(ctx context.Context, method, path string, body []byte, status int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := u.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != status {
		return nil, fmt.Errorf("%s: %s %s: %s instead of %d: %.300s", u.name, method, path, response.Status, status, answer)
	}
	return answer, nil
}
