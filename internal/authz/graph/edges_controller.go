package graph

import (
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

func controllerInstallationEdges(installation *gardencorev1beta1.ControllerInstallation) *edgeBuilder {
	b := edgesFor(KindControllerInstallation, "", installation.Name)
	b.from(KindControllerRegistration, "", installation.Spec.RegistrationRef.Name)
	if installation.Spec.DeploymentRef != nil {
		b.from(KindControllerDeployment, "", installation.Spec.DeploymentRef.Name)
	}
	if installation.Spec.SeedRef != nil {
		b.to(KindSeed, "", installation.Spec.SeedRef.Name)
	}
	return b
}

// controllerDeploymentEdges adds edges from the objects to which a ControllerDeployment refers, in the garden
// namespace.
func controllerDeploymentEdges(deployment *gardencorev1.ControllerDeployment) *edgeBuilder {
	b := edgesFor(KindControllerDeployment, "", deployment.Name)
	if deployment.Helm != nil && deployment.Helm.OCIRepository != nil {
		if ref := deployment.Helm.OCIRepository.PullSecretRef; ref != nil {
			b.from(KindSecret, v1beta1constants.GardenNamespace, ref.Name)
		}
		if ref := deployment.Helm.OCIRepository.CABundleSecretRef; ref != nil {
			b.from(KindSecret, v1beta1constants.GardenNamespace, ref.Name)
		}
	}
	for _, resource := range deployment.Resources {
		b.fromResource(v1beta1constants.GardenNamespace, resource.ResourceRef, KindSecret, KindConfigMap)
	}
	return b
}
