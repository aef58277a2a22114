package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// served is a resource, or a subresource, that the garden serves, in its preferred version.
type served struct {
	schema.GroupVersionResource
	Subresource string
	Kind        string
	Namespaced  bool
	Verbs       []string
	names       []string // further names, in lower case
}

// String returns the resource as users can enter it: with its group, if it has one.
func (s served) String() string {
	return resourceName(s.GroupVersionResource.GroupResource(), s.Subresource)
}

func resourceName(r schema.GroupResource, subresource string) string {
	if subresource == "" {
		return r.String()
	}
	return r.String() + "/" + subresource
}

// served returns all resources that the garden serves, the core group first, each group in its preferred version.
func (i *Inspector) served() ([]served, error) {
	groups, lists, err := i.kube.Discovery().ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the garden what it serves: %w", err)
	}
	preferred := map[string]bool{}
	for _, group := range groups {
		preferred[group.PreferredVersion.GroupVersion] = true
	}
	rank := func(list *metav1.APIResourceList) int {
		if preferred[list.GroupVersion] {
			return 0
		}
		return 1 // for resources that only this version has
	}
	slices.SortStableFunc(lists, func(a, b *metav1.APIResourceList) int { return rank(a) - rank(b) })
	var all []served
	seen := map[string]bool{}
	add := func(s served) {
		if !seen[s.String()] {
			seen[s.String()] = true
			all = append(all, s)
		}
	}
	for _, list := range lists {
		if version, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
			for _, r := range list.APIResources {
				add(servedAs(version, r))
			}
		}
	}
	// Some subresources are only in rules: they are in access reviews by the approver of certificate signing requests,
	// and by admission for finalizers.
	for _, rule := range authorizer.Rules(authorizer.ReadsSeed) {
		n := slices.IndexFunc(all, func(s served) bool {
			return s.Subresource == "" && s.Group == rule.Group && s.Resource == rule.Resource
		})
		for _, subresource := range slices.Concat(rule.Gardenlet.Subresources, rule.Extension.Subresources) {
			if n >= 0 {
				s := all[n]
				s.Subresource = subresource
				add(s)
			}
		}
	}
	return all, nil
}

func servedAs(version schema.GroupVersion, r metav1.APIResource) served {
	resource, subresource, _ := strings.Cut(r.Name, "/")
	s := served{GroupVersionResource: version.WithResource(resource), Subresource: subresource, Kind: r.Kind,
		Namespaced: r.Namespaced, Verbs: r.Verbs}
	for _, name := range append([]string{r.SingularName, r.Kind}, r.ShortNames...) {
		if name != "" {
			s.names = append(s.names, strings.ToLower(name))
		}
	}
	return s
}

// resolve returns the resource that a user has entered: a plural, singular or short name or a kind, with or without
// group and version, and with or without a subresource.
func resolve(all []served, typed string) (served, error) {
	typed, subresource, _ := strings.Cut(typed, "/")
	name, suffix, _ := strings.Cut(strings.ToLower(typed), ".")
	var found *served
	for i := range all {
		s := &all[i]
		if s.Subresource == "" && s.isIn(suffix) && (s.Resource == name || found == nil && slices.Contains(s.names, name)) {
			found = s
			if s.Resource == name {
				break // a plural name takes precedence over another resource's short name
			}
		}
	}
	if found == nil {
		return served{}, usage.Errorf("the garden has no resource %q%s", typed, didYouMean(all, name))
	}
	if subresource == "" {
		return *found, nil
	}
	var others []string
	for _, s := range all {
		if s.GroupResource() == found.GroupResource() && s.Subresource != "" {
			if s.Subresource == subresource {
				s.Namespaced, s.Kind = found.Namespaced, found.Kind
				return s, nil
			}
			others = append(others, s.Subresource)
		}
	}
	return served{}, usage.Errorf("%s has no subresource %q: it has %s", found, subresource, cmp.Or(strings.Join(others, ", "), "none"))
}

func (s *served) isIn(suffix string) bool {
	return suffix == "" || suffix == s.Group || suffix == s.Version+"."+s.Group
}

// mostTypos is the maximum number of characters by which a name may differ from the intended one.
const mostTypos = 2

// didYouMean suggests resources with names similar to the one that was entered.
func didYouMean(all []served, name string) string {
	var near []string
	for _, s := range all {
		if s.Subresource == "" && slices.ContainsFunc(append(s.names, s.Resource), func(other string) bool {
			return len(other) > mostTypos+1 && isNear(name, other, mostTypos)
		}) {
			near = append(near, s.String())
		}
	}
	if len(near) == 0 {
		return `: "kubectl api-resources" lists those it has`
	}
	return ": did you mean " + strings.Join(near[:min(3, len(near))], ", ") + "?"
}

// isNear reports whether at most the given number of insertions, deletions and replacements of characters turn a into
// b.
func isNear(a, b string, typos int) bool {
	switch {
	case a == "" || b == "" || typos < 0:
		return len(a)+len(b) <= typos
	case a[0] == b[0]:
		return isNear(a[1:], b[1:], typos)
	}
	return isNear(a[1:], b, typos-1) || isNear(a, b[1:], typos-1) || isNear(a[1:], b[1:], typos-1)
}

var stacksResource = schema.GroupVersionResource{Group: "stacks.crossplane.io", Version: "v1alpha1", Resource: "stacks"}

// Names has the names in a landscape, for completion.
type Names struct {
	Seeds      []string `json:"seeds"`
	Extensions []string `json:"extensions"`
	Stacks     []string `json:"stacks"`
	Resources  []string `json:"resources"`
}

func (i *Inspector) names(ctx context.Context) (*Names, error) {
	all, err := i.served()
	if err != nil {
		return nil, err
	}
	n := &Names{Seeds: []string{}, Extensions: []string{}, Stacks: []string{}, Resources: []string{}}
	for _, s := range all {
		n.Resources = append(n.Resources, s.String())
	}
	for _, v := range i.graph.Snapshot().Vertices {
		switch {
		case v.Exists && v.Kind == graph.KindSeed:
			n.Seeds = append(n.Seeds, v.Name)
		case v.Exists && v.Kind == graph.KindServiceAccount && strings.HasPrefix(v.Namespace, seedidentity.NamespacePrefix) &&
			strings.HasPrefix(v.Name, constants.ExtensionGardenServiceAccountPrefix):
			n.Extensions = append(n.Extensions, v.Namespace+"/"+v.Name)
		}
	}
	slices.Sort(n.Resources)
	stacks, err := i.metadata.Resource(stacksResource).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // Gardener's gardens have no stacks
		return nil, fmt.Errorf("listing Stacks: %w", err)
	}
	if err != nil {
		return n, nil
	}
	for _, stack := range stacks.Items {
		n.Stacks = append(n.Stacks, stack.Namespace+"/"+stack.Name)
	}
	return n, nil
}
