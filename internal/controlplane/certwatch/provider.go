package certwatch

import (
	"bytes"
	"context"
	"os"
	"slices"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

// CA returns a provider of authorities that reads its files with the watcher of the process.
func CA(provider dynamiccertificates.CAContentProvider, files ...string) dynamiccertificates.CAContentProvider {
	if reloads, ok := provider.(dynamiccertificates.ControllerRunner); ok {
		return ca{provider, reloader{reloads, files}}
	}
	return provider
}

// Cert returns a provider of a certificate and its key that reads its files with the watcher of the process.
func Cert(provider dynamiccertificates.CertKeyContentProvider,
	files ...string) dynamiccertificates.CertKeyContentProvider {
	if reloads, ok := provider.(dynamiccertificates.ControllerRunner); ok {
		return cert{provider, reloader{reloads, files}}
	}
	return provider
}

// Reloader returns what reloads a provider with the watcher of the process.
func Reloader(provider dynamiccertificates.ControllerRunner, files ...string) dynamiccertificates.ControllerRunner {
	return reloader{provider, files}
}

// Hook returns what replaces a hook that reloads a certificate and its key with a watcher of its own: it calls the hook
// only once one of the files has changed.
func Hook(files ...string) func(genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	return func(reload genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
		loaded := contents(files)
		return func(hook genericapiserver.PostStartHookContext) error {
			go func() {
				ctx, cancel := context.WithCancel(hook)
				defer cancel()
				Until(ctx, func() {
					if !slices.EqualFunc(contents(files), loaded, bytes.Equal) {
						cancel()
					}
				}, files...)
				_ = reload(hook) // if the server has ended, this only ends the queue of its provider
			}()
			return nil
		}
	}
}

// contents reads files. What cannot be read is empty.
func contents(files []string) (contents [][]byte) {
	for _, file := range files {
		data, _ := os.ReadFile(file)
		contents = append(contents, data)
	}
	return contents
}

type ca struct {
	dynamiccertificates.CAContentProvider
	reloader
}

type cert struct {
	dynamiccertificates.CertKeyContentProvider
	reloader
}

type reloader struct {
	provider dynamiccertificates.ControllerRunner
	files    []string
}

func (r reloader) RunOnce(ctx context.Context) error { return r.provider.RunOnce(ctx) }

func (r reloader) Run(ctx context.Context, workers int) {
	Until(ctx, func() {
		if err := r.provider.RunOnce(ctx); err != nil { // between the writes of a certificate and of its key, for example
			klog.FromContext(ctx).Error(err, "Could not reload certificates; trying again after the next change",
				"files", r.files)
		}
	}, r.files...)
	r.provider.Run(ctx, workers) // the context has ended: this only ends the provider's queue
}
