package controllerutils

import (
	"slices"
	"strconv"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

// ManagedResourcesHonored returns the constraint of this name of a Shoot or a Seed, from its ManagedResources: it is False
// if some have the annotation that excludes them from reconciliation.
func ManagedResourcesHonored(managed []resourcesv1alpha1.ManagedResource) conditions.Condition {
	var ignored []string
	for i := range managed {
		if ignore, _ := strconv.ParseBool(managed[i].Annotations[resourcesv1alpha1.Ignore]); ignore {
			ignored = append(ignored, managed[i].Name)
		}
	}
	if len(ignored) == 0 {
		return conditions.Condition{Type: corev1beta1.ShootManagedResourcesHonored, Status: corev1beta1.ConditionTrue}
	}
	slices.Sort(ignored)
	return conditions.Condition{Type: corev1beta1.ShootManagedResourcesHonored, Status: corev1beta1.ConditionFalse,
		Reason: "ManagedResourcesIgnored",
		Message: "Some ManagedResources are annotated with " + resourcesv1alpha1.Ignore + "=true, so nothing is done for them: " +
			strings.Join(ignored, ", ")}
}
