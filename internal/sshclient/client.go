package sshclient

import (
	"context"
	"fmt"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

// User is the name of the user on bastions and nodes.
const User = "gardener"

// Client works with the Bastions of a garden.
type Client struct {
	garden client.WithWatch
	shoots *shootclient.Client
	clock  clock.WithTicker
}

// New returns a client for the garden of a configuration. It sends no requests yet. proxy is that of shootclient.Client.
func New(config *rest.Config, proxy string, clk clock.WithTicker) (*Client, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("putting together the types of the garden: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for the garden: %w", err)
	}
	made := newClient(c, clk)
	made.shoots.Proxy = proxy
	return made, nil
}

func newClient(c client.WithWatch, clk clock.WithTicker) *Client {
	return &Client{garden: c, shoots: &shootclient.Client{Client: c}, clock: clk}
}

// newScheme returns a scheme with the types that the client uses.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, corev1beta1.AddToScheme, authenticationv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// Shoot returns a Shoot whose nodes can be reached. The error is shootclient.ErrNotFound if there is no Shoot of this
// name; otherwise it says why the nodes cannot be reached.
func (c *Client) Shoot(ctx context.Context, key shootclient.Key) (*corev1beta1.Shoot, error) {
	shoot, err := c.shoots.Shoot(ctx, key)
	if err != nil {
		return nil, err
	}
	return shoot, reachable(key, shoot)
}

// reachable returns an error that says why the nodes of a Shoot cannot be reached.
func reachable(key shootclient.Key, shoot *corev1beta1.Shoot) error {
	settings := shoot.Spec.Provider.WorkersSettings
	edit := fmt.Sprintf("\"kubectl -n %s edit shoot %s\"", shoot.Namespace, shoot.Name)
	switch {
	case shoot.DeletionTimestamp != nil:
		return fmt.Errorf("shoot %s is being deleted: there is no way to its nodes any more", key)
	case len(shoot.Spec.Provider.Workers) == 0:
		return fmt.Errorf("shoot %s has no nodes: it has no workers. Choose another one", key)
	case settings != nil && settings.SSHAccess != nil && !settings.SSHAccess.Enabled:
		return fmt.Errorf("SSH is disabled for the nodes of shoot %s: enable it in spec.provider.workersSettings.sshAccess with %s", key, edit)
	case shoot.Status.IsHibernated || shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false):
		return fmt.Errorf("shoot %s is hibernated and has no nodes: wake it up by spec.hibernation.enabled: false with %s", key, edit)
	case ptr.Deref(shoot.Spec.SeedName, "") == "" || shoot.Status.TechnicalID == "":
		return fmt.Errorf("shoot %s is not on a seed yet: try again when \"gardenlite shoot list\" shows that it is ready", key)
	}
	return nil
}
