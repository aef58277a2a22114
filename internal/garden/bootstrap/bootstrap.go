package bootstrap

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/manifests"
)

// landscapeMarker is the ConfigMap that says that the default landscape has been created: what users delete of it stays
// deleted.
const landscapeMarker = "gardenlite-default-landscape"

// Info is what clients read of the garden in gardener-system-public/gardener-info.
type Info struct {
	// GardenerVersion is the version of the API.
	GardenerVersion string
}

// Garden sets a garden up, or brings it up to date.
func Garden(ctx context.Context, config *rest.Config, info Info) error {
	applier, err := NewApplier(config)
	if err != nil {
		return err
	}
	objects, err := loadFS(manifests.FS, "garden")
	if err != nil {
		return err
	}
	if err := applier.all(ctx, objects); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := ensureIdentity(ctx, client); err != nil {
		return err
	}
	return ensureInfo(ctx, client, info)
}

// ensureIdentity creates the ConfigMap that tells this garden from all others. It is never changed.
func ensureIdentity(ctx context.Context, client kubernetes.Interface) error {
	identity := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-identity", Namespace: metav1.NamespaceSystem},
		Data:       map[string]string{"cluster-identity": "gardenlite-" + uuid.NewString(), "origin": "gardener-apiserver"},
	}
	_, err := client.CoreV1().ConfigMaps(identity.Namespace).Create(ctx, identity, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the garden's identity: %w", err)
	}
	return nil
}

func ensureInfo(ctx context.Context, client kubernetes.Interface, info Info) error {
	data, err := yaml.Marshal(map[string]any{"version": info.GardenerVersion})
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener-info", Namespace: "gardener-system-public"},
		Data:       map[string]string{"gardenerAPIServer": string(data)},
	}
	configMaps := client.CoreV1().ConfigMaps(cm.Namespace)
	if _, err = configMaps.Create(ctx, cm, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = configMaps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing gardener-info: %w", err)
	}
	return nil
}

// DefaultLandscape creates what a new landscape has to begin with, once.
func DefaultLandscape(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if _, err := configMaps.Get(ctx, landscapeMarker, metav1.GetOptions{}); err == nil {
		return nil
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	applier, err := NewApplier(config)
	if err != nil {
		return err
	}
	objects, err := loadFS(manifests.FS, "landscape")
	if err != nil {
		return err
	}
	namespaces, others := split(objects)
	for _, obj := range append(namespaces, others...) {
		if err := applier.applyWithRetry(ctx, obj); err != nil {
			return err
		}
	}
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: landscapeMarker, Namespace: metav1.NamespaceSystem}}
	_, err = configMaps.Create(ctx, marker, metav1.CreateOptions{})
	return err
}
