package stackmanager

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

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
		merged.Annotations = labels.Merge(merged.Annotations, wanted.Annotations)
	}
	return merged, nil
}

// stackVersionAnnotation has the version of the stack that a CRD's definition is from.
const stackVersionAnnotation = "stacks.crossplane.io/stack-version"

// extends returns an error if the version wider does not accept everything that the version old accepts.
func extends(old, wider *apiextensionsv1.CustomResourceDefinitionVersion) error {
	switch {
	case hasStatus(*old) != hasStatus(*wider):
		return fmt.Errorf("one of them has the subresource status")
	case hasScale(*old) && (!hasScale(*wider) || !apiequality.Semantic.DeepEqual(old.Subresources.Scale, wider.Subresources.Scale)):
		return fmt.Errorf("the subresource scale differs")
	case old.Served && !wider.Served:
		return fmt.Errorf("it is no longer served")
	}
	return extendsSchema("", old.Schema.OpenAPIV3Schema, wider.Schema.OpenAPIV3Schema)
}

func hasStatus(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Subresources != nil && v.Subresources.Status != nil
}

func hasScale(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Subresources != nil && v.Subresources.Scale != nil
}

type jsonSchema = apiextensionsv1.JSONSchemaProps

// extendsSchema returns an error if the schema wider does not accept everything that old accepts, or drops a field of
// it. It allows only changes that are certainly compatible: added fields, and restrictions that are removed or
// loosened.
func extendsSchema(path string, old, wider *jsonSchema) error {
	switch {
	case old == nil && wider == nil:
		return nil
	case old == nil || wider == nil:
		return fmt.Errorf("%s has a schema in one of them only", field(path))
	}
	if err := extendsValue(path, old, wider); err != nil {
		return err
	}
	keeps := isTrue(wider.XPreserveUnknownFields)
	for name, property := range old.Properties {
		there, ok := wider.Properties[name]
		if !ok && keeps {
			continue
		}
		if !ok {
			return fmt.Errorf("the field %s is missing", field(path+"."+name))
		}
		if err := extendsSchema(path+"."+name, &property, &there); err != nil {
			return err
		}
	}
	// If unknown fields were preserved, stored objects may already have a field for which wider adds a schema.
	if isTrue(old.XPreserveUnknownFields) {
		for name := range wider.Properties {
			if _, ok := old.Properties[name]; !ok {
				return fmt.Errorf("the field %s was free, and has a schema", field(path+"."+name))
			}
		}
	}
	for _, name := range wider.Required {
		if !slices.Contains(old.Required, name) {
			return fmt.Errorf("the field %s is required", field(path+"."+name))
		}
	}
	if err := extendsItems(path, old, wider); err != nil {
		return err
	}
	return extendsAdditional(path, old.AdditionalProperties, wider.AdditionalProperties, keeps)
}

func extendsItems(path string, old, wider *jsonSchema) error {
	if old.Items == nil && wider.Items == nil {
		return nil
	}
	if old.Items == nil || wider.Items == nil || old.Items.Schema == nil || wider.Items.Schema == nil {
		return fmt.Errorf("the items of %s have a schema in one of them only", field(path))
	}
	return extendsSchema(path+"[]", old.Items.Schema, wider.Items.Schema)
}

func extendsAdditional(path string, old, wider *apiextensionsv1.JSONSchemaPropsOrBool, keeps bool) error {
	switch {
	case old == nil && wider == nil, old == nil && !keeps && wider.Schema == nil && wider.Allows, keeps && wider == nil:
		return nil
	case old == nil || wider == nil || old.Allows && !wider.Allows:
		return fmt.Errorf("%s has additional properties in one of them only", field(path))
	case old.Schema == nil && wider.Schema == nil:
		return nil
	}
	return extendsSchema(path+".*", old.Schema, wider.Schema)
}

// extendsValue compares the restrictions of the value itself.
func extendsValue(path string, old, wider *jsonSchema) error {
	differs := func(what string, old, wider any) error {
		return fmt.Errorf("%s of %s is %v, and was %v", what, field(path), wider, old)
	}
	switch {
	case old.Type != wider.Type:
		return differs("the type", old.Type, wider.Type)
	case old.Format != wider.Format && wider.Format != "":
		return differs("the format", old.Format, wider.Format)
	case old.Pattern != wider.Pattern && wider.Pattern != "":
		return differs("the pattern", old.Pattern, wider.Pattern)
	case old.XIntOrString != wider.XIntOrString, old.Nullable && !wider.Nullable, old.XEmbeddedResource != wider.XEmbeddedResource,
		isTrue(old.XPreserveUnknownFields) && !isTrue(wider.XPreserveUnknownFields), !old.UniqueItems && wider.UniqueItems:
		return fmt.Errorf("%s takes fewer values", field(path))
	case !loosened(old.Minimum, wider.Minimum, -1) || !old.ExclusiveMinimum && wider.ExclusiveMinimum:
		return fmt.Errorf("the minimum of %s is higher", field(path))
	case !loosened(old.Maximum, wider.Maximum, 1) || !old.ExclusiveMaximum && wider.ExclusiveMaximum:
		return fmt.Errorf("the maximum of %s is lower", field(path))
	case !loosened(old.MinLength, wider.MinLength, -1), !loosened(old.MinItems, wider.MinItems, -1),
		!loosened(old.MinProperties, wider.MinProperties, -1):
		return fmt.Errorf("the minimal size of %s is higher", field(path))
	case !loosened(old.MaxLength, wider.MaxLength, 1), !loosened(old.MaxItems, wider.MaxItems, 1),
		!loosened(old.MaxProperties, wider.MaxProperties, 1):
		return fmt.Errorf("the maximal size of %s is lower", field(path))
	case len(wider.Enum) > 0 && (len(old.Enum) == 0 || slices.ContainsFunc(old.Enum, func(v apiextensionsv1.JSON) bool {
		return !slices.ContainsFunc(wider.Enum, func(w apiextensionsv1.JSON) bool { return sameJSON(&v, &w) })
	})):
		return fmt.Errorf("%s takes fewer of the values of its enum", field(path))
	case old.Default != nil && (wider.Default == nil || !sameJSON(old.Default, wider.Default)):
		return fmt.Errorf("the default of %s differs", field(path))
	}
	// These restrictions must be equal, because it is not determined which of two different ones is wider.
	for what, pair := range map[string][2]any{
		"allOf": {old.AllOf, wider.AllOf}, "anyOf": {old.AnyOf, wider.AnyOf}, "oneOf": {old.OneOf, wider.OneOf}, "not": {old.Not, wider.Not},
		"multipleOf": {old.MultipleOf, wider.MultipleOf}, "x-kubernetes-validations": {old.XValidations, wider.XValidations},
		"x-kubernetes-list-type": {old.XListType, wider.XListType}, "x-kubernetes-list-map-keys": {old.XListMapKeys, wider.XListMapKeys},
		"x-kubernetes-map-type": {old.XMapType, wider.XMapType},
	} {
		if !apiequality.Semantic.DeepEqual(pair[0], pair[1]) {
			return fmt.Errorf("%s of %s differs", what, field(path))
		}
	}
	return nil
}

// loosened reports whether a limit is unchanged or loosened: removed, or moved in the direction (1: up, -1: down).
func loosened[T int64 | float64](old, wider *T, direction T) bool {
	if wider == nil {
		return true
	}
	return old != nil && (*wider-*old)*direction >= 0
}

// sameJSON compares two values regardless of their formatting.
func sameJSON(a, b *apiextensionsv1.JSON) bool {
	var x, y any
	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && apiequality.Semantic.DeepEqual(x, y)
}

func isTrue(b *bool) bool { return b != nil && *b }

// field returns a path as it is shown in messages.
func field(path string) string {
	if path == "" {
		return "the object"
	}
	return strings.TrimPrefix(path, ".")
}
