package corevalidation

// SupportsFeatureGate says whether a version of Kubernetes has a feature gate that a Shoot may name.
func SupportsFeatureGate(name, version string) bool {
	gate, known := lookUp(name, gardenerFeatureGates, knownFeatureGates)
	return known && !featureGatesUnknownToGardener.Has(name) && has(gate.versionRange, version)
}

// SupportsAdmissionPlugin says whether a version of Kubernetes has an admission plugin that a Shoot may name.
func SupportsAdmissionPlugin(name, version string) bool {
	plugin, known := lookUp(name, gardenerAdmissionPlugins, knownAdmissionPlugins)
	return known && has(plugin, version)
}

func has(r versionRange, version string) bool {
	known, err := r.contains(version)
	return err == nil && known
}
