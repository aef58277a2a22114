package controlplane

import (
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
)

// KubernetesVersion is the version of the Kubernetes code in this binary; a test holds it to go.mod.
const KubernetesVersion = "v1.36.3"

// effectiveVersion answers /version with the real version. component-base takes its own from linker flags, and without
// them has a placeholder that clients cannot parse.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
}

// Info implements EffectiveVersion.
func (e effectiveVersion) Info() *apimachineryversion.Info {
	info := *e.EffectiveVersion.Info()
	info.GitVersion = KubernetesVersion
	info.GitCommit = ""
	info.GitTreeState = "archive"
	info.BuildDate = ""
	return &info
}
