package controllerinstallation

import (
	"strconv"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// ProviderDeployment is the name of the ControllerDeployment of the landscape's own provider.
	ProviderDeployment = "provider-local"
	// AnnotationSimulated makes any other ControllerDeployment one that this process serves, if it is "true".
	AnnotationSimulated = "gardenlite.dev/simulated"
)

// Simulated says whether what is deployed is served by this process: there is no chart that would have to be right.
func Simulated(deployment *gardencorev1.ControllerDeployment) bool {
	simulated, _ := strconv.ParseBool(deployment.Annotations[AnnotationSimulated])
	return simulated || deployment.Name == ProviderDeployment
}

// AsksForGarden says whether a ControllerDeployment asks for access to the garden for its workloads. The landscape's own
// provider has it unless it says that it needs none.
func AsksForGarden(deployment *gardencorev1.ControllerDeployment) bool {
	return ptr.Deref(deployment.InjectGardenKubeconfig, Simulated(deployment))
}

// responsible says whether the gardenlet deploys this. It leaves alone deployments of other types than helm.
func responsible(deployment *gardencorev1.ControllerDeployment) bool {
	return deployment.Helm != nil || Simulated(deployment)
}
