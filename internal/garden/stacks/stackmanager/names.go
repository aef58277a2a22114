package stackmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
)

// checkNames refuses CRDs whose names hide resources that are served: kubectl takes a category or a short name for
// them, or a plural for that of Kubernetes and Gardener. Then "kubectl get pods" shows no Pods, to any user.
func (r *Reconciler) checkNames(crds []*apiextensionsv1.CustomResourceDefinition) error {
	_, lists, err := r.Discovery.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // a group that is not available hides nothing
		return fmt.Errorf("asking the garden what it serves: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, served := range list.APIResources {
			if strings.Contains(served.Name, "/") {
				continue
			}
			for _, crd := range crds {
				if what, name := hides(crd, version.Group, served); name != "" && version.Group != crd.Spec.Group {
					return refuse("the CRD %s has the %s %s, which hides the resource %s: give it another one",
						crd.Name, what, name, version.WithResource(served.Name).GroupResource())
				}
			}
		}
	}
	return nil
}

// hides returns the name of a CRD, and what kind of name it is, that is also a name of a served resource.
func hides(crd *apiextensionsv1.CustomResourceDefinition, group string, served metav1.APIResource) (what, name string) {
	names := crd.Spec.Names
	type candidate struct {
		what  string
		names []string
	}
	candidates := []candidate{{"category", names.Categories}, {"short name", names.ShortNames}}
	if stackpackage.IsReservedGroup(group) {
		singular := cmp.Or(names.Singular, strings.ToLower(names.Kind))
		candidates = append(candidates, candidate{"plural", []string{names.Plural}}, candidate{"singular",
			[]string{singular}})
	}
	of := append([]string{served.Name, served.SingularName, strings.ToLower(served.Kind)}, served.ShortNames...)
	for _, c := range candidates {
		i := slices.IndexFunc(c.names, func(name string) bool { return name != "" && slices.Contains(of, name) })
		if i >= 0 {
			return c.what, c.names[i]
		}
	}
	return "", ""
}
