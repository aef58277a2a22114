// Command extension is a small extension of Gardener, to begin one's own with: it reconciles Extensions of the type example and
// OperatingSystemConfigs of the type example-os. Its chart is in the folder chart, docs/extensions.md explains what it does.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run runs the controllers until the process is asked to end. The seed is that of KUBECONFIG, or the one that the process runs in.
func run() error {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
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
	return mgr.Start(ctrl.SetupSignalHandler())
}
