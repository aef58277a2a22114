package seedmanagementvalidation

import (
	"regexp"
	"slices"
	"strconv"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// shootTemplateRule checks the template for shoots, either as a new or as a changed one.
type shootTemplateRule func(*gardencore.ShootTemplate, *field.Path) field.ErrorList

// ---- the object ----

// ValidateManagedSeedSet checks a new set of managed seeds.
func ValidateManagedSeedSet(set *gardenseedmanagement.ManagedSeedSet) field.ErrorList {
	return validateManagedSeedSet(set, validation.ValidateShootTemplate)
}

// ValidateManagedSeedSetUpdate checks a changed set of managed seeds.
func ValidateManagedSeedSetUpdate(newSet, oldSet *gardenseedmanagement.ManagedSeedSet) field.ErrorList {
	newSpec, oldSpec, path := &newSet.Spec, &oldSet.Spec, field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newSet.ObjectMeta, &oldSet.ObjectMeta, field.NewPath("metadata")),
		apivalidation.ValidateImmutableField(newSpec.Selector, oldSpec.Selector, path.Child("selector")),
		apivalidation.ValidateImmutableField(newSpec.RevisionHistoryLimit, oldSpec.RevisionHistoryLimit, path.Child("revisionHistoryLimit")),
		validateManagedSeedSpecUpdate(&newSpec.Template.Spec, &oldSpec.Template.Spec, path.Child("template", "spec")),
		validation.ValidateShootTemplateUpdate(&newSpec.ShootTemplate, &oldSpec.ShootTemplate, path.Child("shootTemplate")),
		validateManagedSeedSet(newSet, func(template *gardencore.ShootTemplate, path *field.Path) field.ErrorList {
			return validation.ValidateChangedShootTemplate(template, &oldSpec.ShootTemplate, path)
		}),
	)
}

func validateManagedSeedSet(set *gardenseedmanagement.ManagedSeedSet, shootTemplate shootTemplateRule) field.ErrorList {
	metadata := field.NewPath("metadata")
	errs := append(
		apivalidation.ValidateObjectMeta(&set.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadata),
		validateManagedSeedSetSpec(&set.Spec, shootTemplate, field.NewPath("spec"))...,
	)
	return append(errs, validation.InvalidIf(set.Namespace != constants.GardenNamespace, metadata.Child("namespace"), set.Namespace,
		"must be "+constants.GardenNamespace)...)
}

// ---- specification ----

func validateManagedSeedSetSpec(spec *gardenseedmanagement.ManagedSeedSetSpec, shootTemplate shootTemplateRule,
	path *field.Path) field.ErrorList {
	selector, errs := validateSelector(&spec.Selector, path.Child("selector"))
	return slices.Concat(
		errs,
		validation.NotNegative(spec.Replicas, path.Child("replicas")),
		validation.NotNegative(spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit")),
		validateSeedTemplateOfSet(&spec.Template, selector, path.Child("template")),
		validateShootTemplateOfSet(&spec.ShootTemplate, selector, shootTemplate, path.Child("shootTemplate")),
		validation.Optional(spec.UpdateStrategy, path.Child("updateStrategy"), validateUpdateStrategy),
	)
}

// validateSelector refuses an empty selector, which would select everything. It returns the compiled selector, or nil
// if the selector is invalid.
func validateSelector(selector *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	if len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0 {
		return nil, field.ErrorList{field.Invalid(path, selector, "must not be empty")}
	}
	errs := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, append(errs, field.Invalid(path, selector, err.Error()))
	}
	return compiled, errs
}

// validateSelected checks that the selector of the set matches the labels.
func validateSelected(set map[string]string, selector labels.Selector, path *field.Path) field.ErrorList {
	if selector == nil || selector.Matches(labels.Set(set)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, set, "must match the selector "+selector.String())}
}

// validateSeedTemplateOfSet checks that the template has no shoot, which the set fills in, and that the selector
// matches the labels of the template and of its seed.
func validateSeedTemplateOfSet(template *gardenseedmanagement.ManagedSeedTemplate, selector labels.Selector,
	path *field.Path) field.ErrorList {
	errs := append(
		validateSelected(template.Labels, selector, path.Child("metadata", "labels")),
		validateManagedSeedTemplate(template, path)...,
	)
	errs = append(errs, validation.ForbiddenIf(template.Spec.Shoot != nil, path.Child("spec", "shoot"),
		"must not be set: each seed has a shoot made from shootTemplate")...)
	configPath := path.Child("spec", "gardenlet", "config")
	configuration, _ := asConfiguration(template.Spec.Gardenlet.Config, configPath) // validateManagedSeedTemplate reports the errors
	switch seedPath := configPath.Child("seedConfig"); {
	case configuration == nil:
	case configuration.SeedConfig == nil:
		errs = append(errs, field.Required(seedPath, "must be set"))
	default:
		errs = append(errs, validateSelected(configuration.SeedConfig.Labels, selector, seedPath.Child("metadata", "labels"))...)
	}
	return errs
}

func validateShootTemplateOfSet(template *gardencore.ShootTemplate, selector labels.Selector, rule shootTemplateRule,
	path *field.Path) field.ErrorList {
	errs := append(
		validateSelected(template.Labels, selector, path.Child("metadata", "labels")),
		rule(template, path)...,
	)
	workers := template.Spec.Provider.Workers
	return append(errs, validation.InvalidIf(len(workers) == 0, path.Child("spec", "provider", "workers"), workers,
		"must not be empty: a seed needs nodes")...)
}

func validateUpdateStrategy(strategy gardenseedmanagement.UpdateStrategy, path *field.Path) field.ErrorList {
	if strategy.Type == nil {
		return nil
	}
	switch typePath := path.Child("type"); *strategy.Type {
	case "":
		return field.ErrorList{field.Required(typePath, "must be "+string(gardenseedmanagement.RollingUpdateStrategyType))}
	case gardenseedmanagement.RollingUpdateStrategyType:
		if strategy.RollingUpdate == nil {
			return nil
		}
		return validation.NotNegative(strategy.RollingUpdate.Partition, path.Child("rollingUpdate", "partition"))
	default:
		return validation.Supported(typePath, *strategy.Type, gardenseedmanagement.RollingUpdateStrategyType)
	}
}

// ---- status ----

// ValidateManagedSeedSetStatusUpdate checks a changed status. The counters from which names are generated must not
// decrease.
func ValidateManagedSeedSetStatusUpdate(newSet, oldSet *gardenseedmanagement.ManagedSeedSet) field.ErrorList {
	newStatus, oldStatus, path := &newSet.Status, &oldSet.Status, field.NewPath("status")
	errs := append(
		apivalidation.ValidateObjectMetaUpdate(&newSet.ObjectMeta, &oldSet.ObjectMeta, field.NewPath("metadata")),
		validateManagedSeedSetStatus(newStatus, newSet.Name, path)...,
	)
	errs = append(errs, validation.InvalidIf(newStatus.NextReplicaNumber < oldStatus.NextReplicaNumber,
		path.Child("nextReplicaNumber"), newStatus.NextReplicaNumber, "must not decrease")...)
	if before, now := oldStatus.CollisionCount, newStatus.CollisionCount; before != nil && (now == nil || *now < *before) {
		errs = append(errs, field.Invalid(path.Child("collisionCount"), ptr.Deref(now, 0), "must not decrease"))
	}
	return errs
}

func validateManagedSeedSetStatus(status *gardenseedmanagement.ManagedSeedSetStatus, name string, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validation.NotNegative(&status.ObservedGeneration, path.Child("observedGeneration")),
		validation.NotNegative(&status.Replicas, path.Child("replicas")),
		validation.NotNegative(&status.NextReplicaNumber, path.Child("nextReplicaNumber")),
		validation.NotNegative(status.CollisionCount, path.Child("collisionCount")),
	)
	for _, part := range []struct {
		name     string
		replicas int32
	}{{"readyReplicas", status.ReadyReplicas}, {"currentReplicas", status.CurrentReplicas}, {"updatedReplicas", status.UpdatedReplicas}} {
		errs = append(errs, validation.NotNegative(&part.replicas, path.Child(part.name))...)
		errs = append(errs, validation.InvalidIf(part.replicas > status.Replicas, path.Child(part.name), part.replicas,
			"must not be more than status.replicas")...)
	}
	if pending := status.PendingReplica; pending != nil {
		errs = append(errs, validatePendingReplica(pending, name, path.Child("pendingReplica"))...)
	}
	return errs
}

func validatePendingReplica(pending *gardenseedmanagement.PendingReplica, set string, path *field.Path) field.ErrorList {
	errs := append(
		validation.Supported(path.Child("reason"), pending.Reason,
			gardenseedmanagement.ShootReconcilingReason, gardenseedmanagement.ShootDeletingReason,
			gardenseedmanagement.ShootReconcileFailedReason, gardenseedmanagement.ShootDeleteFailedReason,
			gardenseedmanagement.ManagedSeedPreparingReason, gardenseedmanagement.ManagedSeedDeletingReason,
			gardenseedmanagement.SeedNotReadyReason, gardenseedmanagement.ShootNotHealthyReason),
		validation.NotNegative(pending.Retries, path.Child("retries"))...,
	)
	return append(errs, validation.InvalidIf(!isReplicaOf(pending.Name, set), path.Child("name"), pending.Name,
		"must be the name of the set, a hyphen and a number")...)
}

var replicaName = regexp.MustCompile(`(.*)-([0-9]+)$`)

// isReplicaOf reports whether name is the name of a replica of the set: the set's name, a hyphen and an ordinal of 32
// bits.
func isReplicaOf(name, set string) bool {
	parts := replicaName.FindStringSubmatch(name)
	if parts == nil || parts[1] != set {
		return false
	}
	_, err := strconv.ParseInt(parts[2], 10, 32)
	return err == nil
}
