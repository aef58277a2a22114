package seedmanagementvalidation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// ValidateGardenlet checks a gardenlet without comparing it to an old one. A gardenlet must be in the namespace garden.
func ValidateGardenlet(gardenlet *gardenseedmanagement.Gardenlet) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&gardenlet.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata")),
		validation.ValidateOperation(gardenlet.Annotations, constants.GardenerOperationReconcile, constants.GardenerOperationRenewKubeconfig,
			constants.OperationForceRedeploy),
		validateGardenletSpec(&gardenlet.Spec, field.NewPath("spec")),
		validation.ForbiddenIf(gardenlet.Namespace != constants.GardenNamespace, field.NewPath("metadata", "namespace"),
			"must be "+constants.GardenNamespace),
	)
}

// ValidateGardenletUpdate checks a changed gardenlet.
func ValidateGardenletUpdate(newGardenlet, oldGardenlet *gardenseedmanagement.Gardenlet) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newGardenlet.ObjectMeta, &oldGardenlet.ObjectMeta, field.NewPath("metadata")),
		validation.ValidateOperationUpdate(newGardenlet.Annotations, oldGardenlet.Annotations),
		validateConfigurationUpdate(newGardenlet.Spec.Config, oldGardenlet.Spec.Config, field.NewPath("spec", "config")),
		ValidateGardenlet(newGardenlet),
	)
}

// ValidateGardenletStatusUpdate checks a changed status.
func ValidateGardenletStatusUpdate(newGardenlet, oldGardenlet *gardenseedmanagement.Gardenlet) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newGardenlet.ObjectMeta, &oldGardenlet.ObjectMeta, field.NewPath("metadata")),
		validation.NotNegative(&newGardenlet.Status.ObservedGeneration, field.NewPath("status", "observedGeneration")),
	)
}

func validateGardenletSpec(spec *gardenseedmanagement.GardenletSpec, path *field.Path) field.ErrorList {
	deploymentPath := path.Child("deployment")
	return slices.Concat(
		validateDeployment(spec.Deployment.GardenletDeployment, deploymentPath),
		validation.ValidateOCIRepository(&spec.Deployment.Helm.OCIRepository, deploymentPath.Child("helm", "ociRepository")),
		validateConfiguration(spec.Config, connectionRules{bootstrap: gardenseedmanagement.BootstrapToken}, path.Child("config")),
	)
}
