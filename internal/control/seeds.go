package control

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gardenlite/gardenlite/internal/usage"
)

// SeedsPath is the path before the name of a seed on the control socket.
const SeedsPath = "/seeds/"

// SeedsHandler serves requests that add and remove seeds.
func SeedsHandler(add, remove func(ctx context.Context, name string) error) http.Handler {
	mux := http.NewServeMux()
	for method, change := range map[string]func(context.Context, string) error{
		http.MethodPut: add, http.MethodDelete: remove} {
		mux.HandleFunc(method+" "+SeedsPath+"{name}", func(w http.ResponseWriter, r *http.Request) {
			if err := change(r.Context(), r.PathValue("name")); err != nil {
				refuse(w, err)
			}
		})
	}
	return mux
}

// refuse answers with an error, which is a usage error for Call too if it is one.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusConflict
	if wrong := (*usage.Error)(nil); errors.As(err, &wrong) {
		code = http.StatusBadRequest
	}
	http.Error(w, err.Error(), code)
}

// AddSeed adds a seed to the landscape, and returns when it is ready.
func (c *Client) AddSeed(ctx context.Context, name string) error {
	return c.seed(ctx, http.MethodPut, name)
}

// RemoveSeed removes a seed from the landscape, and returns when it is gone.
func (c *Client) RemoveSeed(ctx context.Context, name string) error {
	return c.seed(ctx, http.MethodDelete, name)
}

func (c *Client) seed(ctx context.Context, method, name string) error {
	body, err := c.Call(ctx, method, SeedsPath+url.PathEscape(name), nil)
	if err != nil {
		return err
	}
	return body.Close()
}
