package shootcare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// required are the Deployments that every control plane has.
var required = []string{spec.APIServer, spec.ControllerManager}

func (c *care) controlPlane() *problem {
	if wrong := c.extensionProblem(corev1beta1.ShootControlPlaneHealthy); wrong != nil {
		return wrong
	}
	var missing []string
	for _, name := range required {
		if c.deployment(name) == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return &problem{reason: "DeploymentMissing", message: "Required Deployments are missing: " + strings.Join(missing, ", ")}
	}
	for i := range c.deployments {
		if why := unhealthy(&c.deployments[i]); why != "" {
			return &problem{reason: "DeploymentUnhealthy", message: fmt.Sprintf("Deployment %q is unhealthy: %s", c.deployments[i].Name, why)}
		}
	}
	return c.managedProblem(func(m *resourcesv1alpha1.ManagedResource) bool {
		about := m.Labels[constants.LabelCareConditionType]
		return m.Spec.Class != nil && (about == "" || about == string(corev1beta1.ShootControlPlaneHealthy))
	})
}

func (c *care) observability() *problem {
	if wrong := c.extensionProblem(corev1beta1.ShootObservabilityComponentsHealthy); wrong != nil {
		return wrong
	}
	return c.managedProblem(func(m *resourcesv1alpha1.ManagedResource) bool {
		return m.Labels[constants.LabelCareConditionType] == string(corev1beta1.ShootObservabilityComponentsHealthy)
	})
}

func (c *care) systemComponents() (*problem, error) {
	if c.cluster == nil {
		return nil, errors.New(c.unreachable)
	}
	if wrong := c.extensionProblem(corev1beta1.ShootSystemComponentsHealthy); wrong != nil {
		return wrong, nil
	}
	return c.managedProblem(func(m *resourcesv1alpha1.ManagedResource) bool {
		return m.Spec.Class == nil || m.Labels[constants.LabelCareConditionType] == string(corev1beta1.ShootSystemComponentsHealthy)
	}), nil
}

// unhealthy returns why a Deployment is unhealthy, empty if it is healthy.
func unhealthy(d *appsv1.Deployment) string {
	if d.Status.ObservedGeneration < d.Generation {
		return fmt.Sprintf("its status is of generation %d, and there is %d", d.Status.ObservedGeneration, d.Generation)
	}
	wants := map[appsv1.DeploymentConditionType]corev1.ConditionStatus{
		appsv1.DeploymentAvailable: corev1.ConditionTrue, appsv1.DeploymentProgressing: corev1.ConditionTrue,
		appsv1.DeploymentReplicaFailure: corev1.ConditionFalse,
	}
	available := false
	for _, condition := range d.Status.Conditions {
		available = available || condition.Type == appsv1.DeploymentAvailable
		if want, ok := wants[condition.Type]; ok && condition.Status != want {
			return fmt.Sprintf("condition %q is %s (%s): %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	if !available {
		return fmt.Sprintf("it has no condition %q yet", appsv1.DeploymentAvailable)
	}
	return ""
}

// managedProblem returns the problem of the first unhealthy ManagedResource among the selected ones, nil if all are
// healthy.
func (c *care) managedProblem(selected func(*resourcesv1alpha1.ManagedResource) bool) *problem {
	for i := range c.managed {
		if m := &c.managed[i]; selected(m) {
			if wrong := c.ofManaged(m); wrong != nil {
				return wrong
			}
		}
	}
	return nil
}

func (c *care) ofManaged(m *resourcesv1alpha1.ManagedResource) *problem {
	applied := conditions.Get(m.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if m.Generation != m.Status.ObservedGeneration {
		if applied != nil && applied.Status == corev1beta1.ConditionFalse && applied.Reason == resourcesv1alpha1.ConditionApplyFailed {
			return &problem{reason: applied.Reason, message: applied.Message}
		}
		return &problem{reason: corev1beta1.OutdatedStatusError, message: fmt.Sprintf(
			"The status of ManagedResource %s is of generation %d, and there is %d", m.Name, m.Status.ObservedGeneration, m.Generation)}
	}
	var missing []string
	for _, kind := range []corev1beta1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy,
		resourcesv1alpha1.ResourcesProgressing} {
		condition := conditions.Get(m.Status.Conditions, kind)
		switch {
		case condition == nil:
			missing = append(missing, string(kind))
		case kind == resourcesv1alpha1.ResourcesProgressing:
			if wrong := c.rollout(m, condition); wrong != nil {
				return wrong
			}
		case condition.Status == corev1beta1.ConditionFalse || condition.Status == corev1beta1.ConditionUnknown:
			return &problem{reason: condition.Reason, message: condition.Message}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return &problem{reason: corev1beta1.ManagedResourceMissingConditionError,
			message: fmt.Sprintf("ManagedResource %s has no conditions %s yet", m.Name, strings.Join(missing, ", "))}
	}
	return nil
}

// rollout returns a problem if a ManagedResource is progressing for longer than ProgressingThreshold, or at all if
// there is no threshold.
func (c *care) rollout(m *resourcesv1alpha1.ManagedResource, progressing *conditions.Condition) *problem {
	if progressing.Status != corev1beta1.ConditionTrue && progressing.Status != corev1beta1.ConditionUnknown {
		return nil
	}
	if c.ProgressingThreshold == nil {
		return &problem{reason: progressing.Reason, message: progressing.Message}
	}
	if c.Clock.Since(progressing.LastTransitionTime.Time) < c.ProgressingThreshold.Duration {
		return nil
	}
	return &problem{reason: corev1beta1.ManagedResourceProgressingRolloutStuck,
		message: fmt.Sprintf("ManagedResource %s is being rolled out for more than %s", m.Name, c.ProgressingThreshold.Duration)}
}
