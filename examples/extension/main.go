// Command extension is a small extension of Gardener, to begin one's own with: it reconciles Extensions of the type example and
// OperatingSystemConfigs of the type example-os. Its chart is in the folder chart, docs/extensions.md explains what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	// The seed is that of KUBECONFIG, or the one that the process runs in.
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run runs the controllers for a seed until the context ends.
func run(ctx context.Context, seed *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(seed, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		// Secrets and ConfigMaps are read when they are needed, and not cached.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(
		add(mgr, "example", &extensionsv1alpha1.Extension{}, greeting{mgr.GetClient()}),
		add(mgr, "example-os", &extensionsv1alpha1.OperatingSystemConfig{}, userData{mgr.GetClient()}),
	); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
