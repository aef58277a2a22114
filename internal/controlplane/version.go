package controlplane

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
)

// KubernetesVersion is the version of the Kubernetes code in this binary; a test compares it with go.mod.
const KubernetesVersion = "v1.36.4"

// effectiveVersion reports the given version in /version. component-base takes its own from linker flags, and without
// them has a placeholder that clients cannot parse.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
	version string
}

func (e effectiveVersion) Info() *apimachineryversion.Info {
	info := *e.EffectiveVersion.Info()
	info.GitVersion = e.version
	if v, err := version.ParseSemantic(e.version); err == nil && e.version != KubernetesVersion {
		info.Major, info.Minor = strconv.Itoa(int(v.Major())), strconv.Itoa(int(v.Minor()))
		info.EmulationMajor, info.EmulationMinor = info.Major, info.Minor
		info.MinCompatibilityMajor, info.MinCompatibilityMinor = info.Major, strconv.Itoa(int(v.Minor())-1)
	}
	info.GitCommit = ""
	info.GitTreeState = "archive"
	info.BuildDate = ""
	return &info
}
