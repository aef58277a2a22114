package controllerutils

import (
	"context"
	"fmt"
	"slices"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ExtensionKind is a kind of extension resources.
type ExtensionKind struct {
	Kind string
	// Object is for watches, and List is copied for each use.
	Object extensionsv1alpha1.Object
	List   client.ObjectList
}

// ShootExtensionKinds are the kinds of extension resources that a Shoot has in its namespace in the seed.
var ShootExtensionKinds = []ExtensionKind{
	{extensionsv1alpha1.WorkerResource, &extensionsv1alpha1.Worker{}, &extensionsv1alpha1.WorkerList{}},
	{extensionsv1alpha1.OperatingSystemConfigResource, &extensionsv1alpha1.OperatingSystemConfig{},
		&extensionsv1alpha1.OperatingSystemConfigList{}},
	{extensionsv1alpha1.ContainerRuntimeResource, &extensionsv1alpha1.ContainerRuntime{}, &extensionsv1alpha1.ContainerRuntimeList{}},
	{extensionsv1alpha1.ExtensionResource, &extensionsv1alpha1.Extension{}, &extensionsv1alpha1.ExtensionList{}},
	{extensionsv1alpha1.NetworkResource, &extensionsv1alpha1.Network{}, &extensionsv1alpha1.NetworkList{}},
	{extensionsv1alpha1.ControlPlaneResource, &extensionsv1alpha1.ControlPlane{}, &extensionsv1alpha1.ControlPlaneList{}},
	{extensionsv1alpha1.DNSRecordResource, &extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.DNSRecordList{}},
	{extensionsv1alpha1.InfrastructureResource, &extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.InfrastructureList{}},
}

// ExtensionKinds are all kinds of extension resources that need an extension.
var ExtensionKinds = slices.Concat(ShootExtensionKinds, []ExtensionKind{
	{extensionsv1alpha1.BackupBucketResource, &extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupBucketList{}},
	{extensionsv1alpha1.BackupEntryResource, &extensionsv1alpha1.BackupEntry{}, &extensionsv1alpha1.BackupEntryList{}},
	{extensionsv1alpha1.BastionResource, &extensionsv1alpha1.Bastion{}, &extensionsv1alpha1.BastionList{}},
	{extensionsv1alpha1.SelfHostedShootExposureResource, &extensionsv1alpha1.SelfHostedShootExposure{},
		&extensionsv1alpha1.SelfHostedShootExposureList{}},
})

// Each calls a function for the extension resources of the kind, until it returns an error.
func (k ExtensionKind) Each(ctx context.Context, seed client.Reader, do func(extensionsv1alpha1.Object) error,
	options ...client.ListOption) error {
	list := k.List.DeepCopyObject().(client.ObjectList)
	if err := seed.List(ctx, list, options...); err != nil {
		return fmt.Errorf("listing the extension resources of kind %s: %w", k.Kind, err)
	}
	return meta.EachListItem(list, func(obj runtime.Object) error { return do(obj.(extensionsv1alpha1.Object)) })
}
