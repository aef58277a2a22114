package shootcare

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

type extension struct {
	kind string
	extensionsv1alpha1.Object
}

// conditionOf maps the kinds of extension resources of a Shoot to the condition that reports a failed operation.
var conditionOf = map[string]corev1beta1.ConditionType{
	extensionsv1alpha1.ContainerRuntimeResource:      corev1beta1.ShootSystemComponentsHealthy,
	extensionsv1alpha1.ControlPlaneResource:          corev1beta1.ShootControlPlaneHealthy,
	extensionsv1alpha1.DNSRecordResource:             corev1beta1.ShootControlPlaneHealthy,
	extensionsv1alpha1.ExtensionResource:             corev1beta1.ShootSystemComponentsHealthy,
	extensionsv1alpha1.InfrastructureResource:        corev1beta1.ShootControlPlaneHealthy,
	extensionsv1alpha1.NetworkResource:               corev1beta1.ShootSystemComponentsHealthy,
	extensionsv1alpha1.OperatingSystemConfigResource: corev1beta1.ShootEveryNodeReady,
	extensionsv1alpha1.WorkerResource:                corev1beta1.ShootEveryNodeReady,
}

func readExtensions(ctx context.Context, seed client.Reader, namespace string) (all []extension, err error) {
	for _, k := range controllerutils.ShootExtensionKinds {
		err := k.Each(ctx, seed, func(e extensionsv1alpha1.Object) error {
			all = append(all, extension{k.Kind, e})
			return nil
		}, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// extensionProblem returns the problem that an extension reports for a condition, nil if there is none: by a condition
// of that type in the status of its resource, or by a failed operation.
func (c *care) extensionProblem(about corev1beta1.ConditionType) *problem {
	for _, e := range c.extensions {
		name := fmt.Sprintf("%s extension (%s/%s)", e.kind, e.GetNamespace(), e.GetName())
		for _, reported := range e.GetExtensionStatus().GetConditions() {
			if reported.Type == about && reported.Status != corev1beta1.ConditionTrue {
				return &problem{e.kind + "UnhealthyReport", name + " reports a health check that fails: " + reported.Message, reported.Codes}
			}
		}
		last := e.GetExtensionStatus().GetLastOperation()
		if conditionOf[e.kind] == about && operation.Failing(last) {
			wrong := &problem{reason: e.kind + "UnhealthyReport", message: name + " has failed: " + last.Description}
			if failed := e.GetExtensionStatus().GetLastError(); failed != nil {
				wrong.message, wrong.codes = name+" has failed: "+failed.Description, failed.Codes
			}
			return wrong
		}
	}
	return nil
}
