package shoot

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

// answerTime is how long an extension has to begin with what is requested before the Shoot says what runs its controller.
const answerTime = 5 * time.Second

// explain adds to the error of an extension resource that waits for its controller what runs that.
func (b *botanist) explain(ctx context.Context, kind string, obj extensionsv1alpha1.Object, err error) error {
	if !flow.IsPending(err) || b.Clock.Since(operation.AskedAt(obj)) < answerTime ||
		operation.RequestedOperation(obj) == "" && isAnswered(obj) {
		return err
	}
	extensionType := obj.GetExtensionSpec().GetExtensionType()
	return flow.Stuck("%s %s of type %s waits for its controller: %s; %s", kind, client.ObjectKeyFromObject(obj), extensionType,
		b.controllerOf(ctx, kind, extensionType), b.lastAnswer(ctx, kind, extensionType))
}

// controllerOf says what runs the controller of the extension resources of a kind and type.
func (b *botanist) controllerOf(ctx context.Context, kind, extensionType string) string {
	installations, err := controllerinstallation.ResponsibleFor(ctx, b.GardenClient, b.SeedName, kind, extensionType)
	if err != nil {
		return err.Error()
	}
	var found []string
	for i := range installations {
		found = append(found, b.workloadsOf(ctx, &installations[i]))
	}
	if len(found) == 0 {
		return fmt.Sprintf("no ControllerInstallation of seed %s is for it", b.SeedName)
	}
	return strings.Join(found, "; ")
}

// workloadsOf says what runs the controllers of an installation.
func (b *botanist) workloadsOf(ctx context.Context, installation *corev1beta1.ControllerInstallation) string {
	for _, c := range installation.Status.Conditions {
		if (c.Type == corev1beta1.ControllerInstallationValid || c.Type == corev1beta1.ControllerInstallationInstalled) &&
			c.Status != corev1beta1.ConditionTrue {
			return fmt.Sprintf("ControllerInstallation %s is not %s: %s", installation.Name, c.Type, c.Message)
		}
	}
	deployments := &appsv1.DeploymentList{}
	namespace := controllerinstallation.NamespaceName(installation.Name)
	if err := b.SeedClient.List(ctx, deployments, client.InNamespace(namespace)); err != nil {
		return fmt.Sprintf("the Deployments of ControllerInstallation %s cannot be read: %v", installation.Name, err)
	}
	if len(deployments.Items) == 0 {
		return fmt.Sprintf("ControllerInstallation %s has no Deployment: its controller is a process that you start", installation.Name)
	}
	var all []string
	for i := range deployments.Items {
		d := &deployments.Items[i]
		text := fmt.Sprintf("Deployment %s/%s has %d ready Pods", d.Namespace, d.Name, d.Status.ReadyReplicas)
		for _, container := range d.Spec.Template.Spec.Containers {
			if program := b.Program(container.Image); program != "" {
				text += fmt.Sprintf(", whose container %s is the process %s", container.Name, program)
			} else {
				text += fmt.Sprintf(`, whose container %s is simulated: "gardenlite image run %s PROGRAM" runs its program`,
					container.Name, container.Image)
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// lastAnswer says when the controller of the extension resources of a kind and type last wrote the status of one.
func (b *botanist) lastAnswer(ctx context.Context, kind, extensionType string) string {
	var last time.Time
	for _, k := range controllerutils.ShootExtensionKinds {
		if k.Kind != kind {
			continue
		}
		err := k.Each(ctx, b.SeedClient, func(obj extensionsv1alpha1.Object) error {
			answer := obj.GetExtensionStatus().GetLastOperation()
			if obj.GetExtensionSpec().GetExtensionType() == extensionType && answer != nil && answer.LastUpdateTime.Time.After(last) {
				last = answer.LastUpdateTime.Time
			}
			return nil
		})
		if err != nil {
			return err.Error()
		}
	}
	if last.IsZero() {
		return "it has never answered"
	}
	return "it last answered at " + last.UTC().Format(time.RFC3339)
}
