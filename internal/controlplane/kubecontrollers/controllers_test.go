package kubecontrollers

import (
	"slices"
	"testing"
)

func TestSelected(t *testing.T) {
	for _, test := range []struct {
		selection []string
		name      string
		want      bool
	}{
		{nil, "namespace-controller", true},
		{[]string{"*"}, "namespace-controller", true},
		{[]string{"*", "-namespace-controller"}, "namespace-controller", false},
		{[]string{"-namespace-controller", "*"}, "namespace-controller", false},
		{[]string{"*", "-namespace-controller"}, "token-cleaner-controller", true},
		{[]string{"token-cleaner-controller"}, "namespace-controller", false},
		{[]string{"token-cleaner-controller"}, "token-cleaner-controller", true},
		{[]string{"-token-cleaner-controller"}, "namespace-controller", false},
	} {
		if got := Selected(test.selection, test.name); got != test.want {
			t.Errorf("%v selects %s: %t", test.selection, test.name, got)
		}
	}
}

func TestValidateSelect(t *testing.T) {
	if err := ValidateSelect([]string{"*", "-bastion", "namespace-controller"}, "bastion"); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"namespaces", "-namespaces", "", "-"} {
		if ValidateSelect([]string{wrong}) == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
	if names := Names(); len(names) < 11 || !slices.Contains(names, "garbage-collector-controller") {
		t.Errorf("controllers are %v", names)
	}
}
