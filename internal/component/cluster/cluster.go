// Package cluster reads what the Cluster in a seed says of a Shoot. It imports nothing of the project.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shoot is the Shoot whose control plane is in a namespace, as its Cluster says.
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

// IsHibernated says whether the Shoot is to have no machines now.
func IsHibernated(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && shoot.Spec.Hibernation.Enabled != nil && *shoot.Spec.Hibernation.Enabled
}
