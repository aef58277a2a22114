package extensionvalidator

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

func shootNeeds(shoot *gardencore.Shoot) *needs {
	spec, path := &shoot.Spec, field.NewPath("spec")
	needed := &needs{cluster: gardencore.ClusterTypeShoot, workerless: shootcommon.Workerless(shoot)}
	if !needed.workerless {
		for _, kind := range []string{extensionsv1alpha1.ControlPlaneResource, extensionsv1alpha1.InfrastructureResource,
			extensionsv1alpha1.WorkerResource} {
			needed.add(kind, spec.Provider.Type, path.Child("provider", "type"))
		}
		if spec.Networking != nil && spec.Networking.Type != nil {
			needed.add(extensionsv1alpha1.NetworkResource, *spec.Networking.Type, path.Child("networking", "type"))
		}
	}
	if spec.DNS != nil {
		needed.addDNSProviders(spec.DNS.Providers, path.Child("dns", "providers"))
	}
	needed.addExtensions(spec.Extensions, path.Child("extensions"))
	for i := range spec.Provider.Workers {
		needed.addWorker(&spec.Provider.Workers[i], path.Child("provider", "workers").Index(i))
	}
	return needed
}

// addDNSProviders adds only primary providers: the others are for extensions that create records within the Shoot.
func (n *needs) addDNSProviders(providers []gardencore.DNSProvider, path *field.Path) {
	for i, provider := range providers {
		if t := ptr.Deref(provider.Type, gardencore.DNSUnmanaged); t != gardencore.DNSUnmanaged && ptr.Deref(provider.Primary, false) {
			n.add(extensionsv1alpha1.DNSRecordResource, t, path.Index(i).Child("type"))
		}
	}
}

// addWorker, as in Gardener, does not check the exposure of a control plane in a pool without a machine image.
func (n *needs) addWorker(worker *gardencore.Worker, path *field.Path) {
	if worker.CRI != nil {
		for i, runtime := range worker.CRI.ContainerRuntimes {
			n.add(extensionsv1alpha1.ContainerRuntimeResource, runtime.Type, path.Child("cri", "containerRuntimes").Index(i).Child("type"))
		}
	}
	if worker.Machine.Image == nil {
		return
	}
	n.add(extensionsv1alpha1.OperatingSystemConfigResource, worker.Machine.Image.Name, path.Child("machine", "image", "name"))
	if worker.ControlPlane == nil || worker.ControlPlane.Exposure == nil {
		return
	}
	if exposure := worker.ControlPlane.Exposure.Extension; exposure != nil {
		n.add(extensionsv1alpha1.SelfHostedShootExposureResource, ptr.Deref(exposure.Type, ""), path.Child("controlPlane", "exposure", "type"))
	}
}
