package corevalidation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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

// FeatureGate contains these feature gates, with the defaults of Gardener v1.150.
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

var (
	gatesMutex sync.Mutex
	gatesUsers int
	gatesSet   map[string]bool
)

// CheckFeatureGates returns an error if there are no such feature gates.
func CheckFeatureGates(gates map[string]bool) error {
	var errs []error
	known := FeatureGate.DeepCopy().GetAll()
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if _, ok := known[featuregate.Feature(name)]; !ok {
			var names []string
			for feature := range known {
				if !strings.HasPrefix(string(feature), "All") {
					names = append(names, string(feature))
				}
			}
			slices.Sort(names)
			errs = append(errs, fmt.Errorf("there is no feature gate %q: there are %s", name, strings.Join(names, ", ")))
		}
	}
	return errors.Join(errs...)
}

// UseFeatureGates sets feature gates until the returned function is called. They hold for the whole process: while they are in
// use, others are refused.
func UseFeatureGates(gates map[string]bool) (release func(), err error) {
	gatesMutex.Lock()
	defer gatesMutex.Unlock()
	if gatesUsers > 0 {
		if !maps.Equal(gates, gatesSet) {
			return nil, fmt.Errorf("another landscape in this process has the feature gates %v: they are the same for all in a process", gatesSet)
		}
	} else if err := setFeatureGates(gates); err != nil {
		return nil, err
	}
	gatesUsers++
	return sync.OnceFunc(func() {
		gatesMutex.Lock()
		defer gatesMutex.Unlock()
		if gatesUsers--; gatesUsers == 0 {
			_ = setFeatureGates(nil) // the defaults can be set
		}
	}), nil
}

// setFeatureGates sets the given feature gates, and all others to their defaults.
func setFeatureGates(gates map[string]bool) error {
	all := map[string]bool{}
	for feature, spec := range FeatureGate.GetAll() {
		if !strings.HasPrefix(string(feature), "All") {
			all[string(feature)] = spec.Default
		}
	}
	maps.Copy(all, gates)
	gatesSet = maps.Clone(gates)
	return FeatureGate.SetFromMap(all)
}
