package corevalidation

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/featuregate"
)

// The Gardener feature gates that the validation depends on.
const (
	// CloudProfileCapabilities allows machine capabilities in cloud profiles.
	CloudProfileCapabilities featuregate.Feature = "CloudProfileCapabilities"
	// VersionClassificationLifecycle allows lifecycles instead of a classification for the versions in cloud profiles.
	VersionClassificationLifecycle featuregate.Feature = "VersionClassificationLifecycle"
	// InPlaceNodeUpdates allows the in-place update strategies of worker pools.
	InPlaceNodeUpdates featuregate.Feature = "InPlaceNodeUpdates"
	// DisableNginxIngressInShoot refuses the nginx ingress add-on for new shoots.
	DisableNginxIngressInShoot featuregate.Feature = "DisableNginxIngressInShoot"
	// LiveControlPlaneMigration allows the operation of the same name.
	LiveControlPlaneMigration featuregate.Feature = "LiveControlPlaneMigration"
)

// FeatureGate contains these feature gates, with the defaults of Gardener v1.149.
var FeatureGate = func() featuregate.MutableFeatureGate {
	gate := featuregate.NewFeatureGate()
	utilruntime.Must(gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		CloudProfileCapabilities:       {Default: true, PreRelease: featuregate.Beta},
		VersionClassificationLifecycle: {Default: false, PreRelease: featuregate.Alpha},
		InPlaceNodeUpdates:             {Default: false, PreRelease: featuregate.Alpha},
		DisableNginxIngressInShoot:     {Default: false, PreRelease: featuregate.Alpha},
		LiveControlPlaneMigration:      {Default: false, PreRelease: featuregate.Alpha},
	}))
	return gate
}()
