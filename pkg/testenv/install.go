package testenv

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	corev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/gardenlite/gardenlite/internal/manifest"
)

const (
	// installTimeout is how long the garden may take to serve what the test brings along.
	installTimeout = time.Minute
	// removeTimeout is how long what the test has brought along may take to go.
	removeTimeout = 30 * time.Second
)

// newScheme returns the scheme of a client for a garden, which also knows what there is in seeds.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		authenticationv1alpha1.AddToScheme, corev1.AddToScheme, corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme, operationsv1alpha1.AddToScheme,
		resourcesv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// install has the garden have the CustomResourceDefinitions, manifests and webhooks of the test, in this order.
func (e *Env) install(ctx context.Context, o *options) error {
	if len(o.crds) > 0 {
		_, err := envtest.InstallCRDs(e.Config(),
			envtest.CRDInstallOptions{Paths: o.crds, ErrorIfPathMissing: true, MaxTime: installTimeout})
		if err != nil {
			return fmt.Errorf("WithCRDs: %w", err)
		}
	}
	applier, err := manifest.NewApplier(e.config)
	if err != nil {
		return err
	}
	for _, path := range o.manifests {
		if err := applier.Path(ctx, path); err != nil {
			return fmt.Errorf("WithManifests %s: %w", path, err)
		}
	}
	if len(o.webhooks) == 0 {
		return nil
	}
	e.webhooks = envtest.WebhookInstallOptions{Paths: o.webhooks, MaxTime: installTimeout}
	if err := e.webhooks.Install(e.Config()); err != nil {
		return fmt.Errorf("WithWebhooks: %w", err)
	}
	return nil
}

// WebhookServerOptions returns the address and the certificate of the webhook server that WithWebhooks needs, for
// webhook.NewServer. What the webhooks match fails until the test runs that server.
func (e *Env) WebhookServerOptions() webhook.Options {
	w := e.webhooks
	return webhook.Options{Host: w.LocalServingHost, Port: w.LocalServingPort, CertDir: w.LocalServingCertDir}
}

// removeWebhooks removes the webhooks of the test from a garden that goes on without it, and their certificate.
func (e *Env) removeWebhooks() error {
	errs := []error{e.webhooks.Cleanup()}
	if e.landscape != nil || e.client == nil {
		return errors.Join(errs...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	for _, hook := range e.webhooks.MutatingWebhooks {
		errs = append(errs, client.IgnoreNotFound(e.client.Delete(ctx, hook)))
	}
	for _, hook := range e.webhooks.ValidatingWebhooks {
		errs = append(errs, client.IgnoreNotFound(e.client.Delete(ctx, hook)))
	}
	return errors.Join(errs...)
}
