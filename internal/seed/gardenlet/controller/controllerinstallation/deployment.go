package controllerinstallation

import (
	"strconv"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// ProviderDeployment is the name of the ControllerDeployment of the landscape's own provider.
	ProviderDeployment = "provider-local"
	// AnnotationSimulated, with the value "true", marks any other ControllerDeployment whose extension this process
	// serves.
	AnnotationSimulated = "gardenlite.dev/simulated"
)

// Simulated reports whether this process serves the extension of a ControllerDeployment. Its chart, if any, is ignored.
func Simulated(deployment *gardencorev1.ControllerDeployment) bool {
	simulated, _ := strconv.ParseBool(deployment.Annotations[AnnotationSimulated])
	return simulated || deployment.Name == ProviderDeployment
}

// AsksForGarden reports whether a ControllerDeployment requests access to the garden for its workloads. Simulated
// extensions have access unless their deployment opts out.
func AsksForGarden(deployment *gardencorev1.ControllerDeployment) bool {
	return ptr.Deref(deployment.InjectGardenKubeconfig, Simulated(deployment))
}

// responsible reports whether the gardenlet installs a ControllerDeployment. It ignores deployments of other types than
// helm.
func responsible(deployment *gardencorev1.ControllerDeployment) bool {
	return deployment.Helm != nil || Simulated(deployment)
}
