package shootclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/kubeconfig"
	"github.com/gardenlite/gardenlite/internal/retry"
)

// DefaultPollInterval is the default interval at which Wait and WaitGone read a Shoot.
const DefaultPollInterval = 250 * time.Millisecond

// Client works with the Shoots of a garden.
type Client struct {
	client.Client
	// PollInterval is DefaultPollInterval by default.
	PollInterval time.Duration
	// Proxy is the URL of a proxy to API servers that have a name instead of an IP address, "" if there is none.
	Proxy string
}

// New returns a client for the garden of this configuration. It sends no request.
func New(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	config.QPS = -1 // polling limits itself
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for the garden: %w", err)
	}
	return &Client{Client: c}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, corev1beta1.AddToScheme, authenticationv1alpha1.AddToScheme,
		securityv1alpha1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// Key identifies a Shoot by its project and name, as users do.
type Key struct{ Project, Name string }

// ParseKey parses PROJECT/NAME, or NAME alone for a Shoot of the given project.
func ParseKey(text, project string) (Key, error) {
	key := Key{Project: project, Name: text}
	if before, after, found := strings.Cut(text, "/"); found {
		key = Key{Project: before, Name: after}
	}
	if key.Project == "" || key.Name == "" || strings.Contains(key.Name, "/") {
		return Key{}, fmt.Errorf("%q: a shoot is PROJECT/NAME", text)
	}
	return key, nil
}

func (k Key) String() string { return k.Project + "/" + k.Name }

// Namespace returns the namespace of a project.
func (c *Client) Namespace(ctx context.Context, project string) (string, error) {
	p, err := c.project(ctx, project)
	if err != nil {
		return "", err
	}
	namespace := ptr.Deref(p.Spec.Namespace, "")
	if namespace == "" {
		return "", fmt.Errorf("the project %s has no namespace yet: try again in a moment", project)
	}
	return namespace, nil
}

func (c *Client) project(ctx context.Context, name string) (*corev1beta1.Project, error) {
	p := &corev1beta1.Project{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, p); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no project %q: \"kubectl get projects\" shows those that there are", name)
	} else if err != nil {
		return nil, fmt.Errorf("reading the project %s: %w", name, err)
	}
	return p, nil
}

func (c *Client) pollInterval() time.Duration { return cmp.Or(c.PollInterval, DefaultPollInterval) }

// ErrNotFound means that the Shoot does not exist.
var ErrNotFound = errors.New("does not exist")

// Shoot returns a Shoot, or ErrNotFound if it does not exist.
func (c *Client) Shoot(ctx context.Context, key Key) (*corev1beta1.Shoot, error) {
	namespace, err := c.Namespace(ctx, key.Project)
	if err != nil {
		return nil, err
	}
	return c.shoot(ctx, namespace, key)
}

func (c *Client) shoot(ctx context.Context, namespace string, key Key) (*corev1beta1.Shoot, error) {
	shoot := &corev1beta1.Shoot{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.Name}, shoot); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("shoot %s %w", key, ErrNotFound)
	} else if err != nil {
		return nil, fmt.Errorf("reading the shoot %s: %w", key, err)
	}
	return shoot, nil
}

// List returns the summaries of all Shoots, sorted by project and name.
func (c *Client) List(ctx context.Context) ([]Summary, error) {
	projects, shoots := &corev1beta1.ProjectList{}, &corev1beta1.ShootList{}
	if err := c.Client.List(ctx, projects); err != nil {
		return nil, fmt.Errorf("listing the projects: %w", err)
	}
	if err := c.Client.List(ctx, shoots); err != nil {
		return nil, fmt.Errorf("listing the shoots: %w", err)
	}
	names := map[string]string{}
	for _, project := range projects.Items {
		names[ptr.Deref(project.Spec.Namespace, "")] = project.Name
	}
	all := []Summary{}
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		all = append(all, Summarize(shoot, cmp.Or(names[shoot.Namespace], shoot.Namespace)))
	}
	slices.SortFunc(all, func(a, b Summary) int {
		return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// KubernetesVersions returns the Kubernetes versions of all cloud profiles.
func (c *Client) KubernetesVersions(ctx context.Context) (versions []string, err error) {
	profiles := &corev1beta1.CloudProfileList{}
	if err := c.Client.List(ctx, profiles); err != nil {
		return nil, fmt.Errorf("listing the cloud profiles: %w", err)
	}
	for _, profile := range profiles.Items {
		for _, version := range profile.Spec.Kubernetes.Versions {
			versions = append(versions, version.Version)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions), nil
}

// Delete confirms and requests the deletion of a Shoot. It returns ErrNotFound if the Shoot does not exist, and no
// error if the Shoot is being deleted already.
func (c *Client) Delete(ctx context.Context, key Key) error {
	shoot, err := c.Shoot(ctx, key)
	if err != nil || shoot.DeletionTimestamp != nil {
		return err
	}
	before := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.ConfirmationDeletion, "true")
	if err := c.Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("confirming the deletion of the shoot %s: %w", key, err)
	}
	if err := c.Client.Delete(ctx, shoot); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the shoot %s: %w", key, err)
	}
	return nil
}

// Annotate sets annotations of a Shoot, and removes those that are nil.
func (c *Client) Annotate(ctx context.Context, key Key, annotations map[string]*string) error {
	shoot, err := c.Shoot(ctx, key)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err == nil {
		err = c.Patch(ctx, shoot, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("annotating the shoot %s: %w", key, err)
	}
	return nil
}

// RequestOperation requests an operation on a Shoot, in addition to requested operations that have not begun.
func (c *Client) RequestOperation(ctx context.Context, key Key, operation string) error {
	return retry.OnConflict(ctx, func() error {
		shoot, err := c.Shoot(ctx, key)
		if err != nil {
			return err
		}
		before := shoot.DeepCopy()
		asked := operation
		if pending := shoot.Annotations[constants.GardenerOperation]; pending != "" {
			asked = pending + constants.GardenerOperationsSeparator + operation
		}
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.GardenerOperation, asked)
		if err := c.Patch(ctx, shoot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("asking for %s of the shoot %s: %w", operation, key, err)
		}
		return nil
	})
}

// Kubeconfig returns a kubeconfig for a Shoot, with the rights of an administrator or of a viewer, and its expiration
// time. It is valid no longer than life.
func (c *Client) Kubeconfig(ctx context.Context, key Key, viewer bool, life time.Duration) (*clientcmdapi.Config, time.Time, error) {
	data, expires, err := c.request(ctx, key, viewer, life)
	if err != nil {
		return nil, expires, err
	}
	config, err := kubeconfig.Load(data)
	if err != nil {
		return nil, expires, fmt.Errorf("reading the kubeconfig for the shoot %s: %w", key, err)
	}
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err == nil && net.ParseIP(server.Hostname()) == nil {
			cluster.ProxyURL = c.Proxy
		}
	}
	return config, expires, nil
}

// ShootConfig returns the client configuration of Kubeconfig.
func (c *Client) ShootConfig(ctx context.Context, key Key, viewer bool, life time.Duration) (*rest.Config, error) {
	config, _, err := c.Kubeconfig(ctx, key, viewer, life)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
}

func (c *Client) request(ctx context.Context, key Key, viewer bool, life time.Duration) ([]byte, time.Time, error) {
	shoot, err := c.Shoot(ctx, key)
	if err != nil {
		return nil, time.Time{}, err
	}
	seconds := ptr.To(int64(life / time.Second))
	explain := func(err error) error {
		if err != nil {
			err = fmt.Errorf("asking for a kubeconfig for the shoot %s: %w", key, err)
		}
		return err
	}
	if viewer {
		request := &authenticationv1alpha1.ViewerKubeconfigRequest{
			Spec: authenticationv1alpha1.ViewerKubeconfigRequestSpec{ExpirationSeconds: seconds}}
		err := c.SubResource("viewerkubeconfig").Create(ctx, shoot, request)
		return request.Status.Kubeconfig, request.Status.ExpirationTimestamp.Time, explain(err)
	}
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: seconds}}
	err = c.SubResource("adminkubeconfig").Create(ctx, shoot, request)
	return request.Status.Kubeconfig, request.Status.ExpirationTimestamp.Time, explain(err)
}
