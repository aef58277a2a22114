package corevalidation

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/utils"
)

// ValidateControllerDeployment checks a new controller deployment: it describes
// either a Helm chart or, by type and providerConfig, a custom deployment.
func ValidateControllerDeployment(deployment *gardencore.ControllerDeployment) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&deployment.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	resourcesPath := field.NewPath("resources")
	errs = append(errs, ValidateResources(deployment.Resources, resourcesPath, false)...)
	errs = append(errs, ValidateAlphanumericResourceNames(deployment.Resources, resourcesPath)...)
	if deployment.Helm == nil {
		return append(errs, ForbiddenIf(deployment.Type == "", field.NewPath(""), "must have either helm or a type")...)
	}
	return slices.Concat(errs,
		ForbiddenIf(deployment.Type != "", field.NewPath("type"), "must not be set together with helm"),
		ForbiddenIf(deployment.ProviderConfig != nil, field.NewPath("providerConfig"), "must not be set together with helm"),
		validateHelmDeployment(deployment.Helm, deployment.Resources, field.NewPath("helm")),
	)
}

// ValidateControllerDeploymentUpdate checks a changed controller deployment. Everything in it may change.
func ValidateControllerDeploymentUpdate(newDeployment, _ *gardencore.ControllerDeployment) field.ErrorList {
	return ValidateControllerDeployment(newDeployment)
}

func validateHelmDeployment(helm *gardencore.HelmControllerDeployment, resources []gardencore.NamedResourceReference,
	path *field.Path) field.ErrorList {
	errs := slices.Concat(
		RequiredIf((len(helm.RawChart) == 0) == (helm.OCIRepository == nil), path, "must have either a rawChart or an ociRepository"),
		ValidateOCIRepository(helm.OCIRepository, path.Child("ociRepository")),
	)
	if helm.Values != nil {
		errs = append(errs, ValidateValuesTemplates(helm.Values.Raw, resources, path.Child("values"))...)
	}
	return errs
}

// ValidateOCIRepository checks that an artifact is identified either by a complete reference, or by a repository with
// a tag, a digest or both.
func ValidateOCIRepository(oci *gardencore.OCIRepository, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case oci == nil:
	case ptr.Deref(oci.Ref, "") == "" && ptr.Deref(oci.Repository, "") == "":
		errs = append(errs, field.Required(path, "must have either a ref or a repository"))
	case oci.Ref != nil:
		const alone = "must not be set together with ref"
		return slices.Concat(
			ForbiddenIf(ptr.Deref(oci.Repository, "") != "", path.Child("repository"), alone),
			ForbiddenIf(ptr.Deref(oci.Tag, "") != "", path.Child("tag"), alone),
			ForbiddenIf(ptr.Deref(oci.Digest, "") != "", path.Child("digest"), alone),
		)
	default:
		errs = append(errs, RequiredIf(ptr.Deref(oci.Tag, "") == "" && ptr.Deref(oci.Digest, "") == "", path, "must have a tag or a digest")...)
		if oci.Digest != nil && !strings.HasPrefix(*oci.Digest, "sha256:") {
			errs = append(errs, field.Invalid(path.Child("digest"), *oci.Digest, "must start with sha256:"))
		}
	}
	return errs
}

var templateExpression = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// ValidateValuesTemplates checks that chart values are JSON, and that the only template expressions in their strings
// are references to the data of the given resources.
func ValidateValuesTemplates(raw []byte, resources []gardencore.NamedResourceReference, path *field.Path) field.ErrorList {
	if len(raw) == 0 {
		return nil
	}
	var values any
	if err := json.Unmarshal(raw, &values); err != nil {
		return field.ErrorList{field.Invalid(path, string(raw), fmt.Sprintf("must be JSON: %v", err))}
	}
	names := sets.New[string]()
	for _, resource := range resources {
		names.Insert(resource.Name)
	}
	var errs field.ErrorList
	if _, err := utils.WalkStructure(values, func(text string) (any, error) {
		errs = append(errs, validateTemplates(text, names, path)...)
		return text, nil
	}); err != nil {
		errs = append(errs, field.Invalid(path, string(raw), err.Error()))
	}
	return errs
}

func validateTemplates(text string, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, expression := range templateExpression.FindAllString(text, -1) {
		reference := constants.ResourceReferenceRegexp.FindStringSubmatch(expression)
		if reference == nil || reference[0] != expression {
			errs = append(errs, field.Invalid(
				path, expression, "must look like {{ .resources.<name>.data.<key> }}, with letters and digits for name and key"))
			continue
		}
		if name := reference[constants.ResourceReferenceRegexp.SubexpIndex("name")]; !names.Has(name) {
			errs = append(errs, field.Invalid(path, expression, fmt.Sprintf("must refer to one of the resources, %q is not among them", name)))
		}
	}
	// The remaining braces belong to an incomplete or a nested expression.
	rest := templateExpression.ReplaceAllString(text, "")
	for _, brace := range []string{"{{", "}}"} {
		errs = append(errs, InvalidIf(strings.Contains(rest, brace), path, brace, "must be part of a template expression")...)
	}
	return errs
}
