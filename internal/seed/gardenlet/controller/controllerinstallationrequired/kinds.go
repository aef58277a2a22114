package controllerinstallationrequired

import (
	"context"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type kind struct {
	object extensionsv1alpha1.Object
	list   client.ObjectList
}

// kinds are all kinds of extension resources that need an extension.
var kinds = map[string]kind{
	extensionsv1alpha1.BackupBucketResource:     {&extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupBucketList{}},
	extensionsv1alpha1.BackupEntryResource:      {&extensionsv1alpha1.BackupEntry{}, &extensionsv1alpha1.BackupEntryList{}},
	extensionsv1alpha1.BastionResource:          {&extensionsv1alpha1.Bastion{}, &extensionsv1alpha1.BastionList{}},
	extensionsv1alpha1.ContainerRuntimeResource: {&extensionsv1alpha1.ContainerRuntime{}, &extensionsv1alpha1.ContainerRuntimeList{}},
	extensionsv1alpha1.ControlPlaneResource:     {&extensionsv1alpha1.ControlPlane{}, &extensionsv1alpha1.ControlPlaneList{}},
	extensionsv1alpha1.DNSRecordResource:        {&extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.DNSRecordList{}},
	extensionsv1alpha1.ExtensionResource:        {&extensionsv1alpha1.Extension{}, &extensionsv1alpha1.ExtensionList{}},
	extensionsv1alpha1.InfrastructureResource:   {&extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.InfrastructureList{}},
	extensionsv1alpha1.NetworkResource:          {&extensionsv1alpha1.Network{}, &extensionsv1alpha1.NetworkList{}},
	extensionsv1alpha1.OperatingSystemConfigResource: {&extensionsv1alpha1.OperatingSystemConfig{},
		&extensionsv1alpha1.OperatingSystemConfigList{}},
	extensionsv1alpha1.SelfHostedShootExposureResource: {&extensionsv1alpha1.SelfHostedShootExposure{},
		&extensionsv1alpha1.SelfHostedShootExposureList{}},
	extensionsv1alpha1.WorkerResource: {&extensionsv1alpha1.Worker{}, &extensionsv1alpha1.WorkerList{}},
}

// counts reports whether an extension resource belongs to a seed or a shoot. The garden has extensions of its own.
func counts(obj client.Object) bool {
	extension, ok := obj.(extensionsv1alpha1.Object)
	if !ok {
		return false
	}
	class := ptr.Deref(extension.GetExtensionSpec().GetExtensionClass(), extensionsv1alpha1.ExtensionClassShoot)
	return class == extensionsv1alpha1.ExtensionClassShoot || class == extensionsv1alpha1.ExtensionClassSeed
}

// exist returns those of the resources, as "kind/type" and sorted, that exist in the seed. unknown is true if one of
// the kinds is not known: then an empty result does not mean that the extension is not required.
func exist(ctx context.Context, seed client.Reader, resources []corev1beta1.ControllerResource) (found []string, unknown bool, err error) {
	types := map[string]map[string]bool{}
	for _, resource := range resources {
		kind, ok := kinds[resource.Kind]
		if !ok {
			unknown = true
			continue
		}
		if types[resource.Kind] == nil {
			if types[resource.Kind], err = typesOf(ctx, seed, kind); err != nil {
				return nil, false, fmt.Errorf("listing the extension resources of kind %s: %w", resource.Kind, err)
			}
		}
		if types[resource.Kind][resource.Type] {
			found = append(found, resource.Kind+"/"+resource.Type)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), unknown, nil
}

// typesOf returns the types of the extension resources of a kind in the seed, none if the kind is not served.
func typesOf(ctx context.Context, seed client.Reader, kind kind) (map[string]bool, error) {
	types := map[string]bool{}
	list := kind.list.DeepCopyObject().(client.ObjectList)
	if err := seed.List(ctx, list, client.UnsafeDisableDeepCopy); meta.IsNoMatchError(err) {
		return types, nil
	} else if err != nil {
		return nil, err
	}
	return types, meta.EachListItem(list, func(obj runtime.Object) error {
		if extension, ok := obj.(extensionsv1alpha1.Object); ok && counts(extension) {
			types[extension.GetExtensionSpec().GetExtensionType()] = true
		}
		return nil
	})
}
