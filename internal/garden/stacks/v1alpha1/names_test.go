package v1alpha1

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/manifests"
)

func TestCheckPlace(t *testing.T) {
	for _, test := range []struct{ namespace, name, says string }{
		{"dev", "wordpress", ""},
		{"garden-dev", "extensions", ""}, // a Project's namespace
		{"gardening", "gardening", ""},
		{"garden", "a", "namespace garden"},
		{"gardener-system-public", "a", "namespace gardener-system-public"},
		{"kube-system", "a", "namespace kube-system"},
		{"kube-anything", "a", "namespace kube-anything"},
		{"seed-local", "extension-x", "namespace seed-local"},
		{"seed-local", "a", "namespace seed-local"},
		{"dev", "default", "a meaning of their own"},
		{"dev", "extension-x", "a meaning of their own"},
		{"dev", "gardenlet", "a meaning of their own"},
		{"dev", "gardenlet-bootstrap-a", "a meaning of their own"},
		{"dev", "system-x", "a meaning of their own"},
		{"dev", "a.b", "cannot be that of a stack"},
		{"dev", "", "has no name"},
	} {
		err := CheckPlace(test.namespace, test.name)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s/%s: %v; it should say %q", test.namespace, test.name, err, test.says)
		}
	}
}

// TestPoliciesHaveThePlaces checks that the policies of the Stack Manager have the same patterns: for Roles, ClusterRoles
// (whose names contain the namespace), RoleBindings, ClusterRoleBindings, ServiceAccounts and controllers; and for what
// stacks write themselves.
func TestPoliciesHaveThePlaces(t *testing.T) {
	policies, err := fs.ReadFile(manifests.FS, "garden/stacks-policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]int{reservedNamespaces.String(): 5, reservedNames.String(): 1} {
		if n := strings.Count(string(policies), `matches("`+pattern+`")`); n != want {
			t.Errorf("the pattern %s is there %d times, not %d", pattern, n, want)
		}
	}
}
