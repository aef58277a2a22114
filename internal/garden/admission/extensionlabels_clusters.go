package admission

import (
	"context"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

func seedExtensionLabels(ctx context.Context, r plugin.Reader, seed *gardencore.Seed) (extensions, error) {
	enabled, err := enabledExtensions(ctx, r, gardencore.ClusterTypeSeed, seed.Spec.Extensions, false)
	if err != nil {
		return nil, err
	}
	var found extensions
	found.add(v1beta1constants.LabelExtensionExtensionTypePrefix, enabled...)
	found.add(v1beta1constants.LabelExtensionProviderTypePrefix, seed.Spec.Provider.Type)
	if seed.Spec.Backup != nil {
		found.add(v1beta1constants.LabelExtensionProviderTypePrefix, seed.Spec.Backup.Provider)
	}
	if seed.Spec.DNS.Provider != nil {
		found.add(v1beta1constants.LabelExtensionDNSRecordTypePrefix, seed.Spec.DNS.Provider.Type)
	}
	return found, nil
}

func shootExtensionLabels(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) (extensions, error) {
	enabled, err := enabledExtensions(ctx, r, gardencore.ClusterTypeShoot, shoot.Spec.Extensions, shootcommon.Workerless(shoot))
	if err != nil {
		return nil, err
	}
	var found extensions
	found.add(v1beta1constants.LabelExtensionExtensionTypePrefix, enabled...)
	found.add(v1beta1constants.LabelExtensionProviderTypePrefix, shoot.Spec.Provider.Type)
	for i := range shoot.Spec.Provider.Workers {
		found.addWorker(&shoot.Spec.Provider.Workers[i])
	}
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			if provider.Type != nil && *provider.Type != gardencore.DNSUnmanaged {
				found.add(v1beta1constants.LabelExtensionDNSRecordTypePrefix, *provider.Type)
			}
		}
	}
	if networking := shoot.Spec.Networking; networking != nil && networking.Type != nil {
		found.add(v1beta1constants.LabelExtensionNetworkingTypePrefix, *networking.Type)
	}
	return found, nil
}

func (e *extensions) addWorker(worker *gardencore.Worker) {
	if worker.CRI != nil {
		for _, runtime := range worker.CRI.ContainerRuntimes {
			e.add(v1beta1constants.LabelExtensionContainerRuntimeTypePrefix, runtime.Type)
		}
	}
	if worker.Machine.Image != nil {
		e.add(v1beta1constants.LabelExtensionOperatingSystemConfigTypePrefix, worker.Machine.Image.Name)
	}
	if worker.ControlPlane == nil || worker.ControlPlane.Exposure == nil {
		return
	}
	if exposure := worker.ControlPlane.Exposure.Extension; exposure != nil && exposure.Type != nil {
		e.add(v1beta1constants.LabelExtensionSelfHostedShootExposureTypePrefix, *exposure.Type)
	}
}

// enabledExtensions returns the types of the Extensions that a cluster lists and does not disable, and of those that
// are automatically enabled for this type of cluster, unless it disables them. The latter must support workerless
// clusters if the cluster is workerless.
func enabledExtensions(ctx context.Context, r plugin.Reader, cluster gardencore.ClusterType, listed []gardencore.Extension,
	workerless bool) ([]string, error) {
	enabled, disabled := sets.New[string](), sets.New[string]()
	for _, extension := range listed {
		if ptr.Deref(extension.Disabled, false) {
			disabled.Insert(extension.Type)
		} else {
			enabled.Insert(extension.Type)
		}
	}
	registered, err := shootcommon.RegisteredResources(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, resource := range registered {
		if resource.Kind == extensionsv1alpha1.ExtensionResource && slices.Contains(resource.AutoEnable, cluster) &&
			!disabled.Has(resource.Type) && (!workerless || ptr.Deref(resource.WorkerlessSupported, false)) {
			enabled.Insert(resource.Type)
		}
	}
	return enabled.UnsortedList(), nil
}
