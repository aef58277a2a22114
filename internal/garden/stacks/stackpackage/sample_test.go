package stackpackage

import (
	"io"
	"path/filepath"
	"slices"
	"testing"
)

// TestSamples builds the sample packages.
func TestSamples(t *testing.T) {
	mysql := []string{"mysqlinstanceclasses.database.example.org", "mysqlinstances.database.example.org", "mysqlservers.database.example.org"}
	for name, want := range map[string]struct {
		version         string
		scope           Scope
		crds, dependsOn []string
		image           string
	}{
		"mysql": {"0.1", ClusterScope, mysql, nil, "example.org/stacks/mysql:0.1"},
		"wordpress-0.1": {"0.1", NamespaceScope, []string{"wordpressinstances.wordpress.example.org"}, mysql[1:2],
			"example.org/stacks/wordpress:0.1"},
		"wordpress-0.2": {"0.2", NamespaceScope, []string{"wordpressinstances.wordpress.example.org"}, mysql[1:2],
			"example.org/stacks/wordpress:0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Build(filepath.Join("..", "..", "..", "..", "manifests", "stacks", name), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			var crds []string
			for _, crd := range p.CRDs {
				crds = append(crds, crd.Name)
				for _, key := range []string{"stack-title", "icon-data-uri", "group-title", "resource-title"} {
					if crd.Annotations[annotation+key] == "" {
						t.Errorf("%s has no %s", crd.Name, key)
					}
				}
			}
			if p.App.Version != want.version || p.App.PermissionScope != want.scope || !slices.Equal(crds, want.crds) ||
				!slices.Equal(p.DependsOn, want.dependsOn) || len(p.Warnings) > 0 {
				t.Errorf("%+v, %q, %q, %q", p.App, crds, p.DependsOn, p.Warnings)
			}
			if p.Deployment == nil || p.Deployment.Spec.Template.Spec.Containers[0].Image != want.image {
				t.Errorf("%+v", p.Deployment)
			}
		})
	}
}
