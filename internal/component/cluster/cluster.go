// Package cluster reads the Shoot in the Cluster resource of a seed. It imports nothing of the project.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shoot returns the Shoot whose control plane is in the namespace, from the Cluster of the same name.
func Shoot(ctx context.Context, seed client.Reader, namespace string) (*corev1beta1.Shoot, error) {
	cluster := &extensionsv1alpha1.Cluster{}
	if err := seed.Get(ctx, client.ObjectKey{Name: namespace}, cluster); err != nil {
		return nil, fmt.Errorf("reading the Cluster %s: %w", namespace, err)
	}
	shoot := &corev1beta1.Shoot{}
	if err := json.Unmarshal(cluster.Spec.Shoot.Raw, shoot); err != nil {
		return nil, fmt.Errorf("reading the Shoot in the Cluster %s: %w", namespace, err)
	}
	return shoot, nil
}

// IsHibernated reports whether the Shoot's spec enables hibernation, so that it is to have no machines.
func IsHibernated(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}
