package stackmanager

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
)

// mergeCRD returns a definition that serves the users of the current one as well as the package. Definitions are never
// narrowed: versions are kept, and of a version that both have the wider one is taken. It returns an error if neither
// is wider (Stacks security and isolation, "Multiple Versions").
func mergeCRD(current, wanted *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	if current.Labels[stackpackage.ManagedByLabel] != stackpackage.ManagedBy {
		return nil, fmt.Errorf("the CRD %s exists already, and is not one of a stack", wanted.Name)
	}
	merged := current.DeepCopy()
	if current.Spec.Names.Kind != wanted.Spec.Names.Kind || current.Spec.Names.Plural != wanted.Spec.Names.Plural {
		return nil, fmt.Errorf("the CRD %s exists already with the kind %s, not %s", wanted.Name, current.Spec.Names.Kind, wanted.Spec.Names.Kind)
	}
	wider := false
	for _, version := range wanted.Spec.Versions {
		i := slices.IndexFunc(merged.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		if i < 0 {
			version.Storage = false // the storage version is kept, so that stored objects keep all fields
			merged.Spec.Versions = append(merged.Spec.Versions, version)
			wider = true
			continue
		}
		there := &merged.Spec.Versions[i]
		back := extends(&version, there)
		forth := extends(there, &version)
		switch {
		case forth == nil && back != nil:
			version.Storage, version.Served = there.Storage, there.Served || version.Served
			*there, wider = version, true
		case forth != nil && back != nil:
			return nil, fmt.Errorf("version %s of the CRD %s is not compatible with the one that version %q of the stack has installed: %w; "+
				"a changed schema needs a new version of the CRD", version.Name, wanted.Name, current.Annotations[stackVersionAnnotation], forth)
		case forth == nil && current.Annotations[stackVersionAnnotation] == wanted.Annotations[stackVersionAnnotation]:
			version.Storage, version.Served = there.Storage, there.Served || version.Served
			*there = version // updates descriptions and printer columns
		}
	}
	if _, ok := current.Annotations[stackVersionAnnotation]; wider || !ok {
		if merged.Annotations == nil {
			merged.Annotations = map[string]string{}
		}
		maps.Copy(merged.Annotations, wanted.Annotations)
	}
	return merged, nil
}

// stackVersionAnnotation has the version of the stack that a CRD's definition is from.
const stackVersionAnnotation = "stacks.crossplane.io/stack-version"

// extends returns an error if the version wider does not accept everything that the version old accepts.
func extends(old, wider *apiextensionsv1.CustomResourceDefinitionVersion) error {
	has := func(v *apiextensionsv1.CustomResourceDefinitionVersion, what func(*apiextensionsv1.CustomResourceSubresources) bool) bool {
		return v.Subresources != nil && what(v.Subresources)
	}
	status := func(s *apiextensionsv1.CustomResourceSubresources) bool { return s.Status != nil }
	scale := func(s *apiextensionsv1.CustomResourceSubresources) bool { return s.Scale != nil }
	switch {
	case has(old, status) != has(wider, status):
		return fmt.Errorf("one of them has the subresource status")
	case has(old, scale) && (!has(wider, scale) || !apiequality.Semantic.DeepEqual(old.Subresources.Scale, wider.Subresources.Scale)):
		return fmt.Errorf("the subresource scale differs")
	case old.Served && !wider.Served:
		return fmt.Errorf("it is no longer served")
	}
	return extendsSchema("", old.Schema.OpenAPIV3Schema, wider.Schema.OpenAPIV3Schema)
}
