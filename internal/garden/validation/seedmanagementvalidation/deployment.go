package seedmanagementvalidation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateDeployment checks the deployment of a gardenlet. The fields that are copied into the pod (resources,
// volumes, environment, tolerations) are validated only by the cluster in which the pod runs.
func validateDeployment(deployment gardenseedmanagement.GardenletDeployment, path *field.Path) field.ErrorList {
	return slices.Concat(
		validation.NotNegative(deployment.ReplicaCount, path.Child("replicaCount")),
		validation.NotNegative(deployment.RevisionHistoryLimit, path.Child("revisionHistoryLimit")),
		validation.Optional(deployment.ServiceAccountName, path.Child("serviceAccountName"), validateServiceAccountName),
		validation.Optional(deployment.Image, path.Child("image"), validateImage),
		metav1validation.ValidateLabels(deployment.PodLabels, path.Child("podLabels")),
		apivalidation.ValidateAnnotations(deployment.PodAnnotations, path.Child("podAnnotations")),
	)
}

func validateServiceAccountName(name string, path *field.Path) field.ErrorList {
	return validation.InvalidEach(path, name, apivalidation.ValidateServiceAccountName(name, false))
}

// validateImage checks that an image is identified either by a complete reference or by its parts.
func validateImage(image gardenseedmanagement.Image, path *field.Path) field.ErrorList {
	return slices.Concat(
		validation.Optional(image.Ref, path.Child("ref"), notEmpty),
		validation.Optional(image.Repository, path.Child("repository"), notEmpty),
		validation.Optional(image.Tag, path.Child("tag"), notEmpty),
		validation.ForbiddenIf(image.Ref != nil && (image.Repository != nil || image.Tag != nil), path,
			"must have either a ref or a repository and a tag, not both"),
		validation.SupportedIfSet(path.Child("pullPolicy"), image.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever),
	)
}

// notEmpty refuses an empty value. The error is Invalid instead of Required, because the field is optional.
func notEmpty(value string, path *field.Path) field.ErrorList {
	return validation.InvalidIf(value == "", path, value, "must not be empty if it is set")
}
