package stackmanager

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestNamesThatHide checks that no CRD has a name for which kubectl would not find a resource of others.
func TestNamesThatHide(t *testing.T) {
	type names = apiextensionsv1.CustomResourceDefinitionNames
	for name, test := range map[string]struct {
		names names
		says  string // empty if they are accepted
	}{
		"names of its own": {names{Plural: "pails", Singular: "pail", ShortNames: []string{"pa"}, Categories: []string{"all",
			"gardens"}}, ""},
		"plural of another stack": {names{Plural: "buckets", Kind: "Bucket"}, ""},
		"category": {names{Plural: "pails", Categories: []string{"all", "pods"}},
			"the category pods, which hides the resource pods"},
		"category in the singular":    {names{Plural: "pails", Categories: []string{"shoot"}}, "hides the resource shoots.core.gardener.cloud"},
		"category of another stack's": {names{Plural: "pails", Categories: []string{"buckets"}}, "hides the resource buckets.other.example.com"},
		"short name":                  {names{Plural: "pails", ShortNames: []string{"po"}}, "the short name po, which hides the resource pods"},
		"short name like a plural":    {names{Plural: "pails", ShortNames: []string{"shoots"}}, "hides the resource shoots"},
		"short name of another stack": {names{Plural: "pails", ShortNames: []string{"bu"}}, "hides the resource buckets"},
		"plural":                      {names{Plural: "pods"}, "the plural pods, which hides the resource pods"},
		"plural like a short name":    {names{Plural: "po"}, "the plural po, which"},
		"singular":                    {names{Plural: "x", Singular: "shoot"}, "the singular shoot, which"},
		"kind":                        {names{Plural: "x", Kind: "Pod"}, "the singular pod, which"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Name, crd.Spec.Group, crd.Spec.Names = test.names.Plural+".example.org", "example.org", test.names
			err := (&Reconciler{Discovery: served}).checkNames([]*apiextensionsv1.CustomResourceDefinition{crd})
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; it should say %q", err, test.says)
			}
			crd.Spec.Group = "other.example.com"
			if err := (&Reconciler{Discovery: served}).checkNames([]*apiextensionsv1.CustomResourceDefinition{crd}); err != nil &&
				strings.Contains(err.Error(), "buckets.other.example.com") {
				t.Errorf("in the same group: %v", err)
			}
		})
	}
}
