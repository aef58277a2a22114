package corevalidation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ---- ranges of versions ----

// versionRange is the range of minor versions of Kubernetes that support a name: from added, if it is set, until
// before removed.
type versionRange struct{ added, removed string }

// featureGateRange is the range of a feature gate. From the version lockedIn on, it is locked to lockedValue.
type featureGateRange struct {
	versionRange
	lockedIn    string
	lockedValue bool
}

// contains returns an error if the version is invalid.
func (r versionRange) contains(version string) (bool, error) {
	added, err := CompareVersions(version, ">=", cmp.Or(r.added, "0"))
	if err != nil || !added || r.removed == "" {
		return added, err
	}
	return CompareVersions(version, "<", r.removed)
}

// ---- where Gardener differs ----

// The generated tables contain the names in Kubernetes' sources of the supported minor versions. Gardener also knows
// names that were removed in older versions, and differs for a few names. The tables below add these, and take
// precedence.
var (
	gardenerFeatureGates = mergeMaps(removedFeatureGates, map[string]featureGateRange{
		"PreferAlignCpusByUncoreCache": {versionRange: versionRange{added: "1.32"}},
		"SELinuxMountReadWriteOncePod": {lockedIn: "1.29", lockedValue: true},
	})
	featureGatesUnknownToGardener = sets.New("StatefulSetSemanticRevisionComparison")

	removedFeatureGates = removedEach(func(r versionRange) featureGateRange { return featureGateRange{versionRange: r} }, map[string][]string{
		"1.31": {
			"APIPriorityAndFairness", "CSIMigrationRBD", "CSINodeExpandSecret", "ConsistentHTTPGetHandlers",
			"CustomResourceValidationExpressions", "DefaultHostNetworkHostPortsInPodTemplates",
			"InTreePluginAWSUnregister", "InTreePluginAzureDiskUnregister", "InTreePluginAzureFileUnregister",
			"InTreePluginGCEUnregister", "InTreePluginOpenStackUnregister", "InTreePluginRBDUnregister",
			"InTreePluginvSphereUnregister", "JobReadyPods", "ReadWriteOncePod", "ServiceNodePortStaticSubrange",
			"SkipReadOnlyValidationGCE",
		},
		"1.32": {
			"CloudDualStackNodeIPs", "DRAControlPlaneController", "HPAContainerMetrics", "KMSv2", "KMSv2KDF",
			"LegacyServiceAccountTokenCleanUp", "MinDomainsInPodTopologySpread", "NewVolumeManagerReconstruction",
			"NodeOutOfServiceVolumeDetach", "PodHostIPs", "ServerSideApply", "ServerSideFieldValidation",
			"StableLoadBalancerNodeSet", "ValidatingAdmissionPolicy", "ZeroLimitedNominalConcurrencyShares",
		},
	})

	gardenerAPIs = removedEach(asIs, map[string][]string{
		"1.31": {
			"networking.k8s.io/v1beta1/ipaddresses", "networking.k8s.io/v1beta1/servicecidrs",
			"resource.k8s.io/v1alpha2", "resource.k8s.io/v1alpha2/podschedulingcontexts",
			"resource.k8s.io/v1alpha2/resourceclaimparameters", "resource.k8s.io/v1alpha2/resourceclaims",
			"resource.k8s.io/v1alpha2/resourceclaimtemplates", "resource.k8s.io/v1alpha2/resourceclasses",
			"resource.k8s.io/v1alpha2/resourceclassparameters", "resource.k8s.io/v1alpha2/resourceslices",
		},
		"1.32": {
			"coordination.k8s.io/v1alpha1", "coordination.k8s.io/v1alpha1/leasecandidates",
			"resource.k8s.io/v1alpha3/podschedulingcontexts",
		},
	})

	gardenerAdmissionPlugins = removedEach(asIs, map[string][]string{"1.31": {"PersistentVolumeLabel"}})
)

func asIs(r versionRange) versionRange { return r }

// removedEach returns a table of names. They are listed by the version that removed them.
func removedEach[R any](wrap func(versionRange) R, namesByVersion map[string][]string) map[string]R {
	table := map[string]R{}
	for version, names := range namesByVersion {
		for _, name := range names {
			table[name] = wrap(versionRange{removed: version})
		}
	}
	return table
}

func mergeMaps[V any](tables ...map[string]V) map[string]V {
	merged := map[string]V{}
	for _, table := range tables {
		maps.Copy(merged, table)
	}
	return merged
}

// lookUp finds a name in Gardener's table, or else in the generated one.
func lookUp[R any](name string, gardener, generated map[string]R) (R, bool) {
	if r, ok := gardener[name]; ok {
		return r, true
	}
	r, ok := generated[name]
	return r, ok
}

// ---- feature gates ----

// validateFeatureGates refuses feature gates that the version of Kubernetes does not support, or has locked to
// another value.
func validateFeatureGates(gates map[string]bool, version string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if err := validateFeatureGate(name, gates[name], version, path.Child(name)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func validateFeatureGate(name string, value bool, version string, path *field.Path) *field.Error {
	gate, known := lookUp(name, gardenerFeatureGates, knownFeatureGates)
	if !known || featureGatesUnknownToGardener.Has(name) {
		return field.Invalid(path, name, "is not a feature gate of Kubernetes")
	}
	if err := unsupportedIn(gate.versionRange, version, path, name); err != nil {
		return err
	}
	if gate.lockedIn == "" || value == gate.lockedValue {
		return nil
	}
	if locked, _ := CompareVersions(version, ">=", gate.lockedIn); locked {
		return field.Forbidden(path, fmt.Sprintf("is locked to %t since Kubernetes %s", gate.lockedValue, gate.lockedIn))
	}
	return nil
}

// unsupportedIn returns an error if the version of Kubernetes does not support name.
func unsupportedIn(r versionRange, version string, path *field.Path, name string) *field.Error {
	switch known, err := r.contains(version); {
	case err != nil:
		return field.Invalid(path, name, err.Error())
	case !known:
		return field.Forbidden(path, fmt.Sprintf("Kubernetes %s does not have %s", version, name))
	}
	return nil
}

// ---- APIs ----

// The group versions and resources that Gardener's own components in a shoot need: apisForWorkers if the shoot has
// workers, apisForAll in any case.
var (
	apisForWorkers = sets.New(
		"admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
		"admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "apps/v1",
		"autoscaling/v2/horizontalpodautoscalers", "certificates.k8s.io/v1/certificatesigningrequests",
		"coordination.k8s.io/v1/leases", "node.k8s.io/v1/runtimeclasses", "policy/v1/poddisruptionbudgets",
		"scheduling.k8s.io/v1/priorityclasses", "storage.k8s.io/v1",
	).Union(apisForAll)
	apisForAll = sets.New(
		"discovery.k8s.io/v1/endpointslices", "events.k8s.io/v1/events", "networking.k8s.io/v1",
		"rbac.authorization.k8s.io/v1", "v1",
	)
)

// validateRuntimeConfig refuses APIs that the version of Kubernetes does not support. It also refuses to switch off
// an API that Gardener needs, wholly or in part.
func validateRuntimeConfig(config map[string]bool, version string, workerless bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	needed := apisForWorkers
	if workerless {
		needed = apisForAll
	}
	for _, api := range slices.Sorted(maps.Keys(config)) {
		apiPath := path.Key(api)
		r, known := lookUp(api, gardenerAPIs, knownAPIs)
		if !known {
			errs = append(errs, field.Invalid(
				apiPath, api, "must be a group version like batch/v1 or a resource like batch/v1/jobs that Kubernetes has"))
		} else if err := unsupportedIn(r, version, apiPath, api); err != nil {
			errs = append(errs, err)
		} else if !config[api] {
			errs = append(errs, ForbiddenIf(isNeeded(api, needed), apiPath, "must not be switched off: Gardener needs it in the Shoot")...)
		}
	}
	return errs
}

func isNeeded(api string, needed sets.Set[string]) bool {
	for name := range needed {
		if name == api || strings.HasPrefix(name, api+"/") || strings.HasPrefix(api, name+"/") {
			return true
		}
	}
	return false
}
