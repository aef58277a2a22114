// Package defaultobjects creates the objects in a garden that Gardener's installation would create: namespaces, RBAC,
// its identity, and the default landscape. It may import internal/manifest and manifests.
package defaultobjects

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/manifests"
)

// landscapeMarker is the ConfigMap that marks the default landscape as created. Objects of the default landscape that
// users delete are not created again.
const landscapeMarker = "gardenlite-default-landscape"

// Info describes the garden to its clients.
type Info struct {
	// GardenerVersion is the version of the API.
	GardenerVersion string
	// WorkloadIdentityIssuerURL is the URL of the issuer of WorkloadIdentity tokens. It is not published if empty.
	WorkloadIdentityIssuerURL string
	// Programs are the components, controller-manager and scheduler, that are left to Gardener's programs: their users get the
	// roles that they have in Gardener.
	Programs []string
	// ClusterIdentity distinguishes a new garden from all others; it is generated if empty. An existing garden keeps
	// its identity.
	ClusterIdentity string
}

// EnsureGardenObjects creates or updates the default objects of a garden. It does not write objects that are up to
// date.
func EnsureGardenObjects(ctx context.Context, config *rest.Config, info Info) error {
	client, err := dynamic.NewForConfig(manifest.ForWriting(config))
	if err != nil {
		return err
	}
	return setUp(ctx, client, info)
}

// EnsureBareObjects creates what gardener-apiserver and kube-apiserver create by themselves: two namespaces, the identity of the
// garden, and the endpoint of the Service kubernetes.
func EnsureBareObjects(ctx context.Context, config *rest.Config, info Info) error {
	client, err := dynamic.NewForConfig(manifest.ForWriting(config))
	if err != nil {
		return err
	}
	identity, err := clusterIdentity(info)
	if err != nil {
		return err
	}
	objects, err := manifest.LoadFS(manifests.Seed, "seed/default")
	if err != nil {
		return err
	}
	objects = append(objects, identity)
	for _, name := range []string{gardencorev1beta1.GardenerSeedLeaseNamespace, gardencorev1beta1.GardenerShootIssuerNamespace} {
		objects = append(objects, manifest.Object{Source: "a namespace of the garden", Unstructured: &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}})
	}
	return manifest.CreateMissing(ctx, client, objects)
}

func setUp(ctx context.Context, client dynamic.Interface, info Info) error {
	objects, err := manifest.LoadFS(manifests.FS, "garden")
	if err != nil {
		return err
	}
	for _, program := range info.Programs {
		roles, err := manifest.LoadFS(manifests.FS, "programs/"+program+".yaml")
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(obj manifest.Object) bool {
			return obj.GetKind() == roles[0].GetKind() && obj.GetName() == roles[0].GetName()
		})
		objects = append(objects, roles...)
	}
	own, err := gardenerInfo(info)
	if err != nil {
		return err
	}
	identity, err := clusterIdentity(info)
	if err != nil {
		return err
	}
	if err := manifest.Ensure(ctx, client, append(objects, own)); err != nil {
		return err
	}
	cluster, err := manifest.LoadFS(manifests.FS, "cluster")
	if err != nil {
		return err
	}
	return manifest.CreateMissing(ctx, client, append(cluster, identity))
}

// clusterIdentity returns the ConfigMap that distinguishes this garden from all others. The ConfigMap is never changed.
func clusterIdentity(info Info) (manifest.Object, error) {
	id := cmp.Or(info.ClusterIdentity, "gardenlite-"+uuid.NewString())
	return configMap("the garden's identity", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1constants.ClusterIdentity, Namespace: metav1.NamespaceSystem},
		Immutable:  ptr.To(true),
		Data: map[string]string{
			v1beta1constants.ClusterIdentity:       id,
			v1beta1constants.ClusterIdentityOrigin: v1beta1constants.ClusterIdentityOriginGardenerAPIServer,
		},
	})
}

// gardenerInfo returns the ConfigMap from which clients read the garden's version and issuer.
func gardenerInfo(info Info) (manifest.Object, error) {
	data, err := yaml.Marshal(struct {
		Version                   string `json:"version"`
		WorkloadIdentityIssuerURL string `json:"workloadIdentityIssuerURL,omitempty"`
	}{info.GardenerVersion, info.WorkloadIdentityIssuerURL})
	if err != nil {
		return manifest.Object{}, err
	}
	return configMap("the garden's description", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener-info", Namespace: gardencorev1beta1.GardenerSystemPublicNamespace},
		Data:       map[string]string{"gardenerAPIServer": string(data)},
	})
}

func configMap(source string, cm *corev1.ConfigMap) (manifest.Object, error) {
	cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cm)
	return manifest.Object{Unstructured: &unstructured.Unstructured{Object: content}, Source: source}, err
}

// DefaultLandscape creates the initial objects of a new landscape. It does so only once.
func DefaultLandscape(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	applier, err := manifest.NewApplier(config)
	if err != nil {
		return err
	}
	return defaultLandscape(ctx, client, applier)
}

type applier interface {
	All(ctx context.Context, objects []manifest.Object) error
}

func defaultLandscape(ctx context.Context, client kubernetes.Interface, applier applier) error {
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if _, err := configMaps.Get(ctx, landscapeMarker, metav1.GetOptions{}); err == nil {
		return nil
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking whether the default landscape has been created: %w", err)
	}
	objects, err := manifest.LoadFS(manifests.FS, "landscape")
	if err != nil {
		return err
	}
	if err := applier.All(ctx, objects); err != nil {
		return err
	}
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: landscapeMarker, Namespace: metav1.NamespaceSystem}}
	if _, err := configMaps.Create(ctx, marker, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("noting that the default landscape has been created: %w", err)
	}
	return nil
}
