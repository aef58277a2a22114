package stackmanager

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
)

func schemaOf(t *testing.T, text string) *jsonSchema {
	t.Helper()
	s := &jsonSchema{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExtendsSchema checks pairs of schemas: the wide one accepts everything that the narrow one accepts, but not the
// other way round.
func TestExtendsSchema(t *testing.T) {
	for name, test := range map[string]struct{ narrow, wide, back string }{
		"a field": {"{type: object}", "{type: object, properties: {a: {type: string}}}", "the field a is missing"},
		"a field below": {"{type: object, properties: {a: {type: object}}}",
			"{type: object, properties: {a: {type: object, properties: {b: {type: integer}}}}}", "a.b is missing"},
		"required no more": {"{type: object, required: [a], properties: {a: {type: string}}}",
			"{type: object, properties: {a: {type: string}}}", "the field a is required"},
		"values of an enum": {"{type: string, enum: [a]}", "{type: string, enum: [b, a]}", "enum"},
		"no enum":           {"{type: string, enum: [a]}", "{type: string}", "enum"},
		"a lower minimum":   {"{type: integer, minimum: 2}", "{type: integer, minimum: 1}", "the minimum of the object is higher"},
		"no maximum":        {"{type: integer, maximum: 2}", "{type: integer}", "the maximum of the object is lower"},
		"an open maximum": {"{type: integer, maximum: 2, exclusiveMaximum: true}", "{type: integer, maximum: 2}",
			"the maximum of the object is lower"},
		"a longer text":  {"{type: string, maxLength: 2}", "{type: string, maxLength: 3}", "the maximal size"},
		"fewer items":    {"{type: array, minItems: 2, items: {type: string}}", "{type: array, items: {type: string}}", "the minimal size"},
		"no pattern":     {"{type: string, pattern: a}", "{type: string}", "the pattern of the object is a, and was "},
		"no format":      {"{type: string, format: date}", "{type: string}", "the format"},
		"null":           {"{type: string}", "{type: string, nullable: true}", "takes fewer values"},
		"unknown fields": {"{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "takes fewer values"},
		"any of an object": {"{type: object, properties: {a: {type: string}}}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true}", "takes fewer values"},
		"a default": {"{type: string}", "{type: string, default: x}", "the default"},
		"a field of items": {"{type: array, items: {type: object}}",
			"{type: array, items: {type: object, properties: {a: {type: string}}}}", "[].a is missing"},
		"a field of a map": {"{type: object, additionalProperties: {type: object}}",
			"{type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}", "*.a is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			narrow, wide := schemaOf(t, test.narrow), schemaOf(t, test.wide)
			if err := extendsSchema("", narrow, wide); err != nil {
				t.Errorf("the wide one does not take everything: %v", err)
			}
			if err := extendsSchema("", wide, narrow); err == nil || !strings.Contains(err.Error(), test.back) {
				t.Errorf("the narrow one takes everything: %v; want %q", err, test.back)
			}
			for _, same := range []*jsonSchema{narrow, wide} {
				if err := extendsSchema("", same, same.DeepCopy()); err != nil {
					t.Errorf("a schema does not take what it takes itself: %v", err)
				}
			}
		})
	}
	for name, test := range map[string][2]string{
		"another type":    {"{type: string}", "{type: integer}"},
		"another pattern": {"{type: string, pattern: a}", "{type: string, pattern: b}"},
		"another default": {"{type: string, default: a}", "{type: string, default: b}"},
		"other values":    {"{type: string, enum: [a]}", "{type: string, enum: [b]}"},
		"a rule":          {"{type: string}", "{type: string, x-kubernetes-validations: [{rule: 'self != \"\"'}]}"},
		"a free field": {"{type: object, x-kubernetes-preserve-unknown-fields: true}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}"},
		"both have more":      {"{type: object, properties: {a: {type: string}}}", "{type: object, properties: {b: {type: string}}}"},
		"a map and an object": {"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: string}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := extendsSchema("", schemaOf(t, test[0]), schemaOf(t, test[1])); err == nil {
				t.Error("it is said to be compatible")
			}
		})
	}
}

// definition returns a CRD of a version of the stack, whose schema has one property.
func definition(stackVersion, version, property string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "buckets.example.org", Labels: map[string]string{stackpackage.ManagedByLabel: stackpackage.ManagedBy},
			Annotations: map[string]string{stackVersionAnnotation: stackVersion}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Bucket", Plural: "buckets"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &jsonSchema{Type: "object", Properties: map[string]jsonSchema{property: {Type: "string"}}}}}},
		},
	}
}

// TestMergeCRD checks that definitions become wider and never narrower ("Multiple Versions").
func TestMergeCRD(t *testing.T) {
	current := definition("1.0", "v1", "a")
	wider := definition("1.1", "v1", "a")
	wider.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["b"] = jsonSchema{Type: "string"}
	raised := definition("2.0", "v2", "other")
	foreign := definition("1.0", "v1", "a")
	foreign.Labels = nil
	another := definition("1.0", "v1", "a")
	another.Spec.Names.Kind = "Pail"
	for name, test := range map[string]struct {
		current, wanted *apiextensionsv1.CustomResourceDefinition
		says            string
		version         string // expected version of the stack whose definition is used
		fields          int
		versions        int
	}{
		"the same":       {current, current.DeepCopy(), "", "1.0", 1, 1},
		"a wider one":    {current, wider, "", "1.1", 2, 1},
		"a narrower one": {wider, current, "", "1.1", 2, 1},
		"a new version":  {current, raised, "", "2.0", 1, 2},
		"incompatible":   {current, definition("1.2", "v1", "b"), "not compatible", "", 0, 0},
		"not of a stack": {foreign, current, "is not one of a stack", "", 0, 0},
		"another kind":   {another, current, "with the kind Pail, not Bucket", "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.current.DeepCopy()
			merged, err := mergeCRD(test.current, test.wanted)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v; it should say %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if merged.Annotations[stackVersionAnnotation] != test.version || len(merged.Spec.Versions) != test.versions ||
				len(merged.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties) != test.fields {
				t.Errorf("it is %+v of version %s", merged.Spec.Versions, merged.Annotations[stackVersionAnnotation])
			}
			if stored := storageVersion(merged); stored != "v1" {
				t.Errorf("objects are stored in %s", stored)
			}
			if before.String() != test.current.String() {
				t.Error("the current definition is changed in place")
			}
		})
	}
}

func TestByDigest(t *testing.T) {
	for reference, want := range map[string]string{
		"example.org/stack":               "example.org/stack@sha256:1",
		"example.org/stack:v1":            "example.org/stack@sha256:1",
		"localhost:5000/stack":            "localhost:5000/stack@sha256:1",
		"localhost:5000/stack:v1":         "localhost:5000/stack@sha256:1",
		"localhost:5000/stack@sha256:abc": "localhost:5000/stack@sha256:1",
	} {
		if got := byDigest(reference, "sha256:1"); got != want {
			t.Errorf("%s becomes %s, not %s", reference, got, want)
		}
	}
}
