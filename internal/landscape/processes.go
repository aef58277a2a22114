package landscape

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

const (
	// processesFolder has the folders and logs of Pods that run as processes.
	processesFolder = "processes"
	// imagesFile has the images that were mapped while the landscape ran.
	imagesFile = "images.json"
	// imagesPath is the path of the control socket about mapped images.
	imagesPath = "/images"
	// maxImage bounds a request that maps an image.
	maxImage = 64 << 10
)

// startProcesses starts what runs containers as processes. Those that an earlier process has left behind are ended.
func (l *Landscape) startProcesses() (err error) {
	if l.images, err = process.OpenImages(filepath.Join(l.cfg.Dir, imagesFile), l.cfg.Images); err != nil {
		return err
	}
	l.processes, err = process.Start(process.Config{
		Dir: filepath.Join(l.cfg.Dir, processesFolder), Images: l.images, Clock: l.cfg.Clock, Log: klog.Background().WithName(processesFolder),
	})
	if err != nil {
		return err
	}
	l.onClose(l.processes.Close)
	return nil
}

// status is the landscape's status now; with collect, after a garbage collection.
func (l *Landscape) status(collect bool) Status {
	s := l.board.snapshot(collect)
	if l.processes != nil {
		s.Processes = l.processes.Processes()
	}
	return s
}

// imagesHandler answers about mapped images.
func imagesHandler(images func() *process.Images) http.Handler {
	mux := http.NewServeMux()
	handle := func(method string, answer func(*process.Images, *http.Request) (any, error)) {
		mux.HandleFunc(method+" "+imagesPath, func(w http.ResponseWriter, r *http.Request) {
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
		return nil, all.Forget(r.URL.Query().Get("reference"))
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
	body, err := c.Call(ctx, method, imagesPath+query, data)
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
