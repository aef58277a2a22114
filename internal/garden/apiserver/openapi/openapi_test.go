package openapi

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestDefinitions checks that the definitions are complete: "kubectl explain" and server-side apply need each of
// them.
func TestDefinitions(t *testing.T) {
	all := GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/definitions/" + path) })
	for name, definition := range all {
		for _, dependency := range definition.Dependencies {
			if _, ok := all[dependency]; !ok {
				t.Errorf("%s refers to %s, which is not defined", name, dependency)
			}
		}
	}
	for _, name := range []string{"core.v1beta1.Shoot", "core.v1.ControllerDeployment", "operations.v1alpha1.Bastion",
		"security.v1alpha1.TokenRequest",
		"seedmanagement.v1alpha1.Gardenlet", "authentication.v1alpha1.AdminKubeconfigRequest"} {
		if _, ok := all["com.github.gardener.gardener.pkg.apis."+name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}
