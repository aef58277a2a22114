package shootcare

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type extension struct {
	kind string
	extensionsv1alpha1.Object
}

// extensionKinds are the kinds of extension resources of a Shoot, each with the condition that reports a failed
// operation.
var extensionKinds = []struct {
	kind  string
	list  client.ObjectList
	about corev1beta1.ConditionType
}{
	{extensionsv1alpha1.ContainerRuntimeResource, &extensionsv1alpha1.ContainerRuntimeList{}, corev1beta1.ShootSystemComponentsHealthy},
	{extensionsv1alpha1.ControlPlaneResource, &extensionsv1alpha1.ControlPlaneList{}, corev1beta1.ShootControlPlaneHealthy},
	{extensionsv1alpha1.DNSRecordResource, &extensionsv1alpha1.DNSRecordList{}, corev1beta1.ShootControlPlaneHealthy},
	{extensionsv1alpha1.ExtensionResource, &extensionsv1alpha1.ExtensionList{}, corev1beta1.ShootSystemComponentsHealthy},
	{extensionsv1alpha1.InfrastructureResource, &extensionsv1alpha1.InfrastructureList{}, corev1beta1.ShootControlPlaneHealthy},
	{extensionsv1alpha1.NetworkResource, &extensionsv1alpha1.NetworkList{}, corev1beta1.ShootSystemComponentsHealthy},
	{extensionsv1alpha1.OperatingSystemConfigResource, &extensionsv1alpha1.OperatingSystemConfigList{}, corev1beta1.ShootEveryNodeReady},
	{extensionsv1alpha1.WorkerResource, &extensionsv1alpha1.WorkerList{}, corev1beta1.ShootEveryNodeReady},
}

func readExtensions(ctx context.Context, seed client.Reader, namespace string) (all []extension, err error) {
	for _, k := range extensionKinds {
		list := k.list.DeepCopyObject().(client.ObjectList)
		if err := seed.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the extension resources of kind %s: %w", k.kind, err)
		}
		err := meta.EachListItem(list, func(obj runtime.Object) error {
			if e, ok := obj.(extensionsv1alpha1.Object); ok {
				all = append(all, extension{k.kind, e})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("going through the extension resources of kind %s: %w", k.kind, err)
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
		if aboutOf(e.kind) == about && last != nil &&
			(last.State == corev1beta1.LastOperationStateError || last.State == corev1beta1.LastOperationStateFailed) {
			wrong := &problem{reason: e.kind + "UnhealthyReport", message: name + " has failed: " + last.Description}
			if failed := e.GetExtensionStatus().GetLastError(); failed != nil {
				wrong.message, wrong.codes = name+" has failed: "+failed.Description, failed.Codes
			}
			return wrong
		}
	}
	return nil
}

func aboutOf(kind string) corev1beta1.ConditionType {
	for _, k := range extensionKinds {
		if k.kind == kind {
			return k.about
		}
	}
	return ""
}
