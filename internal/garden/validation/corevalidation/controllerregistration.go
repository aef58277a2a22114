package corevalidation

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// ValidateControllerRegistration checks a new controller registration. An admission plugin checks that no other
// registration controls the same resources primarily.
func ValidateControllerRegistration(registration *gardencore.ControllerRegistration) field.ErrorList {
	spec, path := &registration.Spec, field.NewPath("spec")
	errs := slices.Concat(
		apivalidation.ValidateObjectMeta(&registration.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata")),
		validateControllerResources(spec.Resources, path.Child("resources")),
	)
	if spec.Deployment != nil {
		errs = append(errs, validateRegistrationDeployment(spec.Deployment, spec.Resources, path.Child("deployment"))...)
	}
	return errs
}

// ValidateControllerRegistrationUpdate checks a changed controller registration: the field primary of a resource must
// not change, and during deletion nothing in its specification.
func ValidateControllerRegistrationUpdate(newRegistration, oldRegistration *gardencore.ControllerRegistration) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newRegistration.ObjectMeta, &oldRegistration.ObjectMeta, field.NewPath("metadata")),
		validateControllerRegistrationSpecUpdate(newRegistration, oldRegistration, field.NewPath("spec")),
		ValidateControllerRegistration(newRegistration),
	)
}

func validateControllerRegistrationSpecUpdate(newRegistration, oldRegistration *gardencore.ControllerRegistration,
	path *field.Path) field.ErrorList {
	if newRegistration.DeletionTimestamp != nil && !apiequality.Semantic.DeepEqual(newRegistration.Spec, oldRegistration.Spec) {
		return forbiddenInDeletion(path)
	}
	type kindAndType struct{ kind, name string }
	primary := map[kindAndType]*bool{}
	for _, resource := range oldRegistration.Spec.Resources {
		primary[kindAndType{resource.Kind, resource.Type}] = resource.Primary
	}
	var errs field.ErrorList
	for i, resource := range newRegistration.Spec.Resources {
		if before, existed := primary[kindAndType{resource.Kind, resource.Type}]; existed {
			errs = append(errs, immutable(resource.Primary, before, path.Child("resources").Index(i).Child("primary"))...)
		}
	}
	return errs
}

func validateRegistrationDeployment(deployment *gardencore.ControllerRegistrationDeployment,
	resources []gardencore.ControllerResource, path *field.Path) field.ErrorList {
	errs := SupportedIfSet(path.Child("policy"), deployment.Policy,
		gardencore.ControllerDeploymentPolicyAlways, gardencore.ControllerDeploymentPolicyAlwaysExceptNoShoots,
		gardencore.ControllerDeploymentPolicyOnDemand)
	if deployment.SeedSelector != nil {
		selectorPath := path.Child("seedSelector")
		if slices.ContainsFunc(resources, func(r gardencore.ControllerResource) bool { return ptr.Deref(r.Primary, true) }) {
			errs = append(errs, field.Forbidden(
				selectorPath, "must not be set if a resource is controlled primarily: such resources may be on any seed"))
		}
		errs = append(errs, metav1validation.ValidateLabelSelector(
			deployment.SeedSelector, metav1validation.LabelSelectorValidationOptions{}, selectorPath)...)
	}
	refsPath := path.Child("deploymentRefs")
	errs = append(errs, ForbiddenIf(len(deployment.DeploymentRefs) > 1, refsPath, "must not have more than one entry")...)
	for i, ref := range deployment.DeploymentRefs {
		errs = append(errs, Required(refsPath.Index(i).Child("name"), ref.Name)...)
	}
	return errs
}

// validateControllerResources checks that the resources have a known kind and a type, and are not repeated. As in
// Gardener, a repetition is detected only if there is no other type of the kind in between.
func validateControllerResources(resources []gardencore.ControllerResource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	lastType := map[string]string{}
	for i, resource := range resources {
		idxPath := path.Index(i)
		errs = append(errs, Required(idxPath.Child("kind"), resource.Kind)...)
		errs = append(errs, Supported(idxPath.Child("kind"), resource.Kind, sets.List(extensionsv1alpha1.AllExtensionKinds)...)...)
		errs = append(errs, Required(idxPath.Child("type"), resource.Type)...)
		if last, seen := lastType[resource.Kind]; seen && last == resource.Type {
			errs = append(errs, field.Duplicate(idxPath, resource.Kind+"/"+resource.Type))
		}
		lastType[resource.Kind] = resource.Type
		errs = append(errs, validateKindSpecificFields(resource, idxPath)...)
	}
	return errs
}

// validateKindSpecificFields checks fields that are allowed only for one kind.
func validateKindSpecificFields(resource gardencore.ControllerResource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name, kind string
		set        bool
	}{
		{"continuousEndpointUpdate", extensionsv1alpha1.SelfHostedShootExposureResource, resource.ContinuousEndpointUpdate != nil},
		{"autoEnable", extensionsv1alpha1.ExtensionResource, len(resource.AutoEnable) > 0},
		{"clusterCompatibility", extensionsv1alpha1.ExtensionResource, len(resource.ClusterCompatibility) > 0},
		{"reconcileTimeout", extensionsv1alpha1.ExtensionResource, resource.ReconcileTimeout != nil},
		{"lifecycle", extensionsv1alpha1.ExtensionResource, resource.Lifecycle != nil},
	} {
		errs = append(errs, ForbiddenIf(f.set && resource.Kind != f.kind, path.Child(f.name),
			fmt.Sprintf("must not be set for another kind than %s", f.kind))...)
	}
	if resource.Kind != extensionsv1alpha1.ExtensionResource {
		return errs
	}
	errs = append(errs, validateClusterTypes(resource, path)...)
	return append(errs, Optional(resource.Lifecycle, path.Child("lifecycle"), validateExtensionLifecycle)...)
}

// validateClusterTypes checks that the cluster types are known and distinct, and that the extension is enabled
// automatically only for cluster types with which it is compatible.
func validateClusterTypes(resource gardencore.ControllerResource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(seen sets.Set[gardencore.ClusterType], clusterType gardencore.ClusterType, path *field.Path) {
		errs = append(errs, Supported(path, clusterType, gardencore.ClusterTypeSeed, gardencore.ClusterTypeShoot)...)
		errs = append(errs, Distinct(path, seen, clusterType)...)
	}
	compatible, enabled := sets.New[gardencore.ClusterType](), sets.New[gardencore.ClusterType]()
	for i, clusterType := range resource.ClusterCompatibility {
		check(compatible, clusterType, path.Child("clusterCompatibility").Index(i))
	}
	for i, clusterType := range resource.AutoEnable {
		idxPath := path.Child("autoEnable").Index(i)
		check(enabled, clusterType, idxPath)
		errs = append(errs, ForbiddenIf(!compatible.Has(clusterType), idxPath,
			fmt.Sprintf("must be among the clusterCompatibility: %v", sets.List(compatible)))...)
	}
	return errs
}

// validateExtensionLifecycle allows any strategy for the reconciliation. The strategies for deletion and migration
// must be relative to the kube-apiserver, because there may be no workers any more.
func validateExtensionLifecycle(lifecycle gardencore.ControllerResourceLifecycle, path *field.Path) field.ErrorList {
	aroundAPIServer := []gardencore.ControllerResourceLifecycleStrategy{gardencore.AfterKubeAPIServer, gardencore.BeforeKubeAPIServer}
	anyTime := append(slices.Clone(aroundAPIServer), gardencore.AfterWorker)
	return slices.Concat(
		SupportedIfSet(path.Child("reconcile"), lifecycle.Reconcile, anyTime...),
		SupportedIfSet(path.Child("delete"), lifecycle.Delete, aroundAPIServer...),
		SupportedIfSet(path.Child("migrate"), lifecycle.Migrate, aroundAPIServer...),
	)
}
