package corevalidation

import (
	"fmt"
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// shootOptions are exceptions from the rules for templates, and for shoots with fields that were set before they were
// forbidden.
type shootOptions struct {
	// inTemplate relaxes the rules for fields that are filled in or known only for a shoot itself.
	inTemplate bool
	// allowNginxIngress allows the add-on.
	allowNginxIngress bool
	// kubernetes are the exceptions for spec.kubernetes.
	kubernetes kubernetesOptions
}

// ---- objects and templates ----

// ValidateShoot checks a shoot without comparing it to an old one.
func ValidateShoot(shoot *gardencore.Shoot) field.ErrorList {
	return validateShoot(shoot, shootOptions{
		allowNginxIngress: mayEnableNginxIngress(nil),
		kubernetes:        newKubernetesOptions(&shoot.Spec, nil),
	})
}

func validateShoot(shoot *gardencore.Shoot, options shootOptions) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&shoot.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata")),
		validateNameConsecutiveHyphens(shoot.Name, field.NewPath("metadata", "name")),
		validateShootOperations(shoot, field.NewPath("metadata", "annotations")),
		validateShootSpec(shoot.Namespace, shoot.Annotations, &shoot.Spec, options, field.NewPath("spec")),
		SupportedIfSet(failureToleranceTypePath(), FailureToleranceType(&shoot.Spec),
			gardencore.FailureToleranceTypeNode, gardencore.FailureToleranceTypeZone),
	)
}

// ValidateShootUpdate checks a changed shoot. Some rules depend on its status, but the status itself is not checked.
func ValidateShootUpdate(newShoot, oldShoot *gardencore.Shoot) field.ErrorList {
	specPath := field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newShoot.ObjectMeta, &oldShoot.ObjectMeta, field.NewPath("metadata")),
		validateShootSpecUpdate(&newShoot.Spec, &oldShoot.Spec, newShoot.DeletionTimestamp != nil, specPath),
		validateEncryptionConfigUpdate(newShoot, oldShoot, specPath.Child("kubernetes", "kubeAPIServer", "encryptionConfig")),
		validateShoot(newShoot, shootOptions{
			allowNginxIngress: mayEnableNginxIngress(oldShoot.Spec.Addons),
			kubernetes:        newKubernetesOptions(&newShoot.Spec, &oldShoot.Spec),
		}),
		validateFailureToleranceUpdate(newShoot, oldShoot),
		validateHibernationUpdate(newShoot, oldShoot),
		ValidateForceDeletion(newShoot, oldShoot),
		validateNodeLocalDNSUpdate(&newShoot.Spec, &oldShoot.Spec, specPath),
		validateInPlaceUpdates(newShoot, oldShoot),
	)
}

// ValidateShootTemplate checks a template for shoots. It refuses the add-on nginx ingress, as Gardener does.
func ValidateShootTemplate(template *gardencore.ShootTemplate, path *field.Path) field.ErrorList {
	return validateShootTemplate(template, newKubernetesOptions(&template.Spec, nil), path)
}

// ValidateChangedShootTemplate is like ValidateShootTemplate, with exceptions for fields that the old template has
// already. Call it in addition to ValidateShootTemplateUpdate.
func ValidateChangedShootTemplate(newTemplate, oldTemplate *gardencore.ShootTemplate, path *field.Path) field.ErrorList {
	return validateShootTemplate(newTemplate, newKubernetesOptions(&newTemplate.Spec, &oldTemplate.Spec), path)
}

func validateShootTemplate(template *gardencore.ShootTemplate, options kubernetesOptions, path *field.Path) field.ErrorList {
	return slices.Concat(
		metav1validation.ValidateLabels(template.Labels, path.Child("metadata", "labels")),
		apivalidation.ValidateAnnotations(template.Annotations, path.Child("metadata", "annotations")),
		validateShootSpec(template.Namespace, template.Annotations, &template.Spec,
			shootOptions{inTemplate: true, kubernetes: options}, path.Child("spec")),
	)
}

// ValidateShootTemplateUpdate refuses changes of fields that must not change in a template.
func ValidateShootTemplateUpdate(newTemplate, oldTemplate *gardencore.ShootTemplate, path *field.Path) field.ErrorList {
	specPath := path.Child("spec")
	errs := validateShootSpecUpdate(&newTemplate.Spec, &oldTemplate.Spec, newTemplate.DeletionTimestamp != nil, specPath)
	if old := oldTemplate.Spec.Networking; old != nil && old.Nodes != nil {
		var nodes *string
		if newTemplate.Spec.Networking != nil {
			nodes = newTemplate.Spec.Networking.Nodes
		}
		errs = append(errs, immutable(nodes, old.Nodes, specPath.Child("networking", "nodes"))...)
	}
	return errs
}

// ---- what only a new shoot must not have ----

// ValidateFinalizersOnCreation refuses the finalizers that Gardener itself sets later.
func ValidateFinalizersOnCreation(finalizers []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, finalizer := range finalizers {
		if finalizer == gardencorev1beta1.GardenerName || finalizer == constants.ReferenceProtectionFinalizerName {
			errs = append(errs, field.Forbidden(path.Index(i), fmt.Sprintf("finalizer %q must not be set on creation", finalizer)))
		}
	}
	return errs
}

// ValidateInPlaceUpdateStrategyOnCreation refuses worker pools that are updated in
// place unless the feature gate allows them.
func ValidateInPlaceUpdateStrategyOnCreation(shoot *gardencore.Shoot) field.ErrorList {
	var errs field.ErrorList
	for i, worker := range shoot.Spec.Provider.Workers {
		errs = append(errs, validateInPlaceUpdatesEnabled(worker, field.NewPath("spec", "provider", "workers").Index(i))...)
	}
	return errs
}

func validateInPlaceUpdatesEnabled(worker gardencore.Worker, path *field.Path) field.ErrorList {
	if !UpdatesInPlace(worker.UpdateStrategy) || FeatureGate.Enabled(InPlaceNodeUpdates) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("updateStrategy"), *worker.UpdateStrategy,
		fmt.Sprintf("updates in place require the feature gate %s", InPlaceNodeUpdates))}
}

// ---- deletion by force ----

var errorCodesForForceDeletion = sets.New(
	gardencore.ErrorInfraUnauthenticated,
	gardencore.ErrorInfraUnauthorized,
	gardencore.ErrorInfraDependencies,
	gardencore.ErrorCleanupClusterResources,
	gardencore.ErrorConfigurationProblem,
)

// ValidateForceDeletion checks the annotation for the forced deletion. It may be set only on a shoot whose deletion
// fails with an error for which the user is responsible, and must not be removed. oldShoot is nil for a new shoot.
func ValidateForceDeletion(newShoot, oldShoot *gardencore.Shoot) field.ErrorList {
	path := field.NewPath("metadata", "annotations").Key(constants.AnnotationConfirmationForceDeletion)
	switch before, after := WantsForceDeletion(oldShoot), WantsForceDeletion(newShoot); {
	case before && !after:
		return field.ErrorList{field.Forbidden(path, "must not be removed once it is set")}
	case before || !after:
		return nil
	}
	errs := ForbiddenIf(newShoot.DeletionTimestamp == nil, path, "must not be set before the Shoot is deleted")
	if !slices.ContainsFunc(newShoot.Status.LastErrors, func(last gardencore.LastError) bool {
		return errorCodesForForceDeletion.HasAny(last.Codes...)
	}) {
		errs = append(errs, field.Forbidden(path,
			fmt.Sprintf("must not be set unless status.lastErrors has one of the codes %v", sets.List(errorCodesForForceDeletion))))
	}
	return errs
}

// WantsForceDeletion reports whether an annotation requests the forced deletion of a shoot, which may be nil.
func WantsForceDeletion(shoot *gardencore.Shoot) bool {
	if shoot == nil {
		return false
	}
	force, _ := strconv.ParseBool(shoot.Annotations[constants.AnnotationConfirmationForceDeletion])
	return force
}

// ---- equality ----

// sameValue compares API values as Kubernetes does: nil and empty lists are equal.
func sameValue(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }
