package seed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/manifests"
)

const (
	// fieldManager is the field manager of all writes.
	fieldManager = "gardenlite"
	// namespaceRetry and namespaceTimeout limit the wait for kube-system, which a new API server creates after it is ready.
	namespaceRetry   = 20 * time.Millisecond
	namespaceTimeout = 30 * time.Second
)

// bootstrap creates or updates the objects that every seed has, and returns the cluster's identity.
func bootstrap(ctx context.Context, config *rest.Config, httpClient *http.Client) (identity string, err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // many writes at once, in a row
	core, errCore := kubernetes.NewForConfigAndClient(config, httpClient)
	extensions, errExtensions := apiextensionsclient.NewForConfigAndClient(config, httpClient)
	objects, errObjects := dynamic.NewForConfigAndClient(config, httpClient)
	if err := errors.Join(errCore, errExtensions, errObjects); err != nil {
		return "", fmt.Errorf("making the clients: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return ensureCRDs(ctx, extensions.ApiextensionsV1().CustomResourceDefinitions(), core.Discovery())
	})
	group.Go(func() error {
		base, err := manifest.LoadFS(manifests.Seed, "seed/base")
		if err != nil {
			return err
		}
		return manifest.Ensure(ctx, objects, base)
	})
	group.Go(func() error {
		defaults, err := manifest.LoadFS(manifests.FS, "cluster")
		if err != nil {
			return err
		}
		return manifest.CreateMissing(ctx, objects, defaults)
	})
	group.Go(func() (err error) {
		identity, err = ensureIdentity(ctx, core)
		return err
	})
	err = group.Wait()
	return identity, err
}

// ensureIdentity ensures the ConfigMap that identifies this cluster, and returns the identity. A new identity is the UID of
// kube-system, which a gardenlet would choose as well, so that all creators agree. An existing identity is kept.
func ensureIdentity(ctx context.Context, client kubernetes.Interface) (string, error) {
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	current, err := configMaps.Get(ctx, v1beta1constants.ClusterIdentity, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		current, err = createIdentity(ctx, client)
	}
	if apierrors.IsAlreadyExists(err) {
		current, err = configMaps.Get(ctx, v1beta1constants.ClusterIdentity, metav1.GetOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("looking for the cluster's identity, ConfigMap %s/%s: %w", metav1.NamespaceSystem,
			v1beta1constants.ClusterIdentity, err)
	}
	identity := current.Data[v1beta1constants.ClusterIdentity]
	if identity == "" {
		return "", fmt.Errorf("the ConfigMap %s/%s has no identity under %q: delete it, and a new one is made at the next start",
			metav1.NamespaceSystem, v1beta1constants.ClusterIdentity, v1beta1constants.ClusterIdentity)
	}
	return identity, nil
}

func createIdentity(ctx context.Context, client kubernetes.Interface) (*corev1.ConfigMap, error) {
	var system *corev1.Namespace
	err := wait.PollUntilContextTimeout(ctx, namespaceRetry, namespaceTimeout, true, func(ctx context.Context) (done bool, err error) {
		system, err = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1constants.ClusterIdentity, Namespace: metav1.NamespaceSystem},
		Immutable:  ptr.To(true),
		Data: map[string]string{
			v1beta1constants.ClusterIdentity:       string(system.UID),
			v1beta1constants.ClusterIdentityOrigin: v1beta1constants.ClusterIdentityOriginSeed,
		},
	}, metav1.CreateOptions{FieldManager: fieldManager})
}
