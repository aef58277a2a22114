package corevalidation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// validateShootProvider checks spec.provider. It also checks that the range of a node has enough addresses for the
// largest maxPods of all worker pools.
func validateShootProvider(namespace string, spec *gardencore.ShootSpec, inTemplate bool, path *field.Path) field.ErrorList {
	provider := &spec.Provider
	var errs field.ErrorList
	if provider.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must name the provider"))
	} else {
		errs = append(errs, validateDNSLabel(provider.Type, path.Child("type"))...)
	}
	if len(provider.Workers) == 0 {
		errs = append(errs, validateWorkerlessProvider(provider, path)...)
	} else {
		pool := poolContext{
			kubernetes: &spec.Kubernetes, namespace: namespace, provider: provider.Type,
			inTemplate: inTemplate,
		}
		for i := range provider.Workers {
			errs = append(errs, validateWorker(&provider.Workers[i], pool, path.Child("workers").Index(i))...)
		}
		errs = append(errs, validateWorkers(provider.Workers, path.Child("workers"))...)
		errs = append(errs, validateSystemComponentPools(provider.Workers, path.Child("workers"))...)
	}
	if manager := spec.Kubernetes.KubeControllerManager; manager != nil && manager.NodeCIDRMaskSize != nil && spec.Networking != nil {
		errs = append(errs, validatePodsFitNodes(maxPods(spec), *manager.NodeCIDRMaskSize, spec.Networking.IPFamilies)...)
	}
	return errs
}

func validateWorkerlessProvider(provider *gardencore.Provider, path *field.Path) field.ErrorList {
	return slices.Concat(
		ForbiddenIf(provider.InfrastructureConfig != nil, path.Child("infrastructureConfig"), notForWorkerlessShoots),
		ForbiddenIf(provider.ControlPlaneConfig != nil, path.Child("controlPlaneConfig"), notForWorkerlessShoots),
		ForbiddenIf(provider.WorkersSettings != nil, path.Child("workersSettings"), notForWorkerlessShoots),
	)
}

// maxPods returns the largest number of pods that a node may run.
func maxPods(spec *gardencore.ShootSpec) int32 {
	const kubeletDefault = 110
	var most int32
	if len(spec.Provider.Workers) > 0 && spec.Kubernetes.Kubelet != nil {
		most = ptr.Deref(spec.Kubernetes.Kubelet.MaxPods, 0)
	}
	for _, worker := range spec.Provider.Workers {
		if kubelet := workerKubelet(worker, nil); kubelet != nil {
			most = max(most, ptr.Deref(kubelet.MaxPods, 0))
		}
	}
	if most == 0 {
		return kubeletDefault
	}
	return most
}

// validatePodsFitNodes checks that the range of a node has an address for every pod. Two addresses are reserved.
func validatePodsFitNodes(maxPods, maskSize int32, families []gardencore.IPFamily) field.ErrorList {
	bits := int64(32)
	if gardencore.IsIPv6SingleStack(families) {
		bits = 128
	}
	bits -= int64(maskSize)
	addresses := int64(1)<<min(max(bits, 0), 40) - 2 // 40 bits are more than any int32 needs
	path := field.NewPath("spec", "kubernetes", "kubeControllerManager", "nodeCIDRMaskSize")
	return InvalidIf(addresses < int64(maxPods), path, maskSize,
		fmt.Sprintf("leaves %d addresses for the up to %d pods of a node; choose a smaller mask size, or a smaller maxPods of the kubelets",
			max(addresses, 0), maxPods))
}

// ---- worker pools among themselves ----

// validateWorkers checks that the worker pools have distinct names, and at most one is for the control plane.
func validateWorkers(workers []gardencore.Worker, path *field.Path) field.ErrorList {
	var (
		errs  field.ErrorList
		names = sets.New[string]()
		first = controlPlanePool(workers)
	)
	for i, worker := range workers {
		errs = append(errs, Distinct(path.Index(i).Child("name"), names, worker.Name)...)
		errs = append(errs, InvalidIf(worker.ControlPlane != nil && i > first, path.Index(i).Child("controlPlane"),
			worker.Name, "must not be set for more than one worker pool")...)
	}
	return errs
}

// validateSystemComponentPools checks that there is a worker pool with machines for the system components, and for
// each set of zones of such pools, one with at least as many machines as zones.
func validateSystemComponentPools(workers []gardencore.Worker, path *field.Path) field.ErrorList {
	var (
		errs       field.ErrorList
		active     bool
		sufficient = sets.New[string]()
		tooSmall   = map[string]int{} // the last pool with these zones that is too small
	)
	for i, worker := range workers {
		if !systemComponentsAllowed(worker) || worker.Maximum == 0 {
			continue
		}
		active = true
		zones := strings.Join(sets.List(sets.New(worker.Zones...)), "--")
		if int(worker.Maximum) >= len(worker.Zones) {
			sufficient.Insert(zones)
		} else {
			tooSmall[zones] = i
		}
	}
	for _, zones := range slices.Sorted(maps.Keys(tooSmall)) {
		if !sufficient.Has(zones) {
			errs = append(errs, field.Forbidden(path.Index(tooSmall[zones]).Child("maximum"), "must not be less than the number of zones"))
		}
	}
	errs = append(errs, ForbiddenIf(!active, path, "at least one worker pool must have a maximum above 0 and allow system components")...)
	if i := controlPlanePool(workers); i >= 0 {
		errs = append(errs, validateSelfHostedSystemComponents(workers, path)...)
	}
	return errs
}

// validateSelfHostedSystemComponents refuses worker pools that allow system components outside of the control plane's
// zones.
func validateSelfHostedSystemComponents(workers []gardencore.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	zones := sets.New[string]()
	for _, worker := range workers {
		if worker.ControlPlane != nil {
			zones.Insert(worker.Zones...)
		}
	}
	for i, worker := range workers {
		outside := worker.ControlPlane == nil && systemComponentsAllowed(worker) && !zones.HasAll(worker.Zones...)
		errs = append(errs, InvalidIf(outside, path.Index(i).Child("systemComponents"), worker.Zones,
			"must not allow system components outside of the control plane's zones")...)
	}
	return errs
}
