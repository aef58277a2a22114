package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

const (
	// ImagesPath is the path of the mapped images on the control socket.
	ImagesPath = "/images"
	// maxImage is the largest size of a request that maps an image, in bytes.
	maxImage = 64 << 10
)

// ImagesHandler serves requests that list, map and forget images. While images returns nil, it answers 503.
func ImagesHandler(images func() *process.Images) http.Handler {
	mux := http.NewServeMux()
	handle := func(method string, answer func(*process.Images, *http.Request) (any, error)) {
		mux.HandleFunc(method+" "+ImagesPath, func(w http.ResponseWriter, r *http.Request) {
			all := images()
			if all == nil {
				http.Error(w, "the landscape is starting: try again", http.StatusServiceUnavailable)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxImage)
			result, err := answer(all, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			_ = json.NewEncoder(w).Encode(result)
		})
	}
	handle(http.MethodGet, func(all *process.Images, _ *http.Request) (any, error) { return all.List(), nil })
	handle(http.MethodPut, func(all *process.Images, r *http.Request) (any, error) {
		image := process.Image{}
		if err := json.NewDecoder(r.Body).Decode(&image); err != nil {
			return nil, fmt.Errorf("reading the image: %w", err)
		}
		return image, all.Set(image)
	})
	handle(http.MethodDelete, func(all *process.Images, r *http.Request) (any, error) {
		return nil, all.Delete(r.URL.Query().Get("reference"))
	})
	return mux
}

// Images returns the mapped images.
func (c *Client) Images(ctx context.Context) (all []process.Image, err error) {
	return all, c.images(ctx, http.MethodGet, "", nil, &all)
}

// MapImage maps an image to a program.
func (c *Client) MapImage(ctx context.Context, image process.Image) error {
	return c.images(ctx, http.MethodPut, "", image, nil)
}

// ForgetImage removes a mapping.
func (c *Client) ForgetImage(ctx context.Context, reference string) error {
	return c.images(ctx, http.MethodDelete, "?"+url.Values{"reference": {reference}}.Encode(), nil, nil)
}

func (c *Client) images(ctx context.Context, method, query string, request, into any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	body, err := c.Call(ctx, method, ImagesPath+query, data)
	if err != nil {
		return err
	}
	defer body.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, body)
		return err
	}
	return json.NewDecoder(body).Decode(into)
}
