package stackmanager

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

// listingRole allows the Stack Manager to list the instances of the CRDs of stacks, which it does before an
// uninstallation. It has no other access to instances. manifests/garden binds the role.
const listingRole = User + ":instances"

// ensureListing adds CRDs to the listing role.
func (r *Reconciler) ensureListing(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if len(crds) == 0 {
		return nil
	}
	return r.changeListing(ctx, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		for _, crd := range crds {
			if stackpackage.IsReservedGroup(crd.Spec.Group) { // the policies refuse it
				continue
			}
			if rule := listingRule(crd.Spec.Group, crd.Spec.Names.Plural); !slices.ContainsFunc(rules, same(rule)) {
				rules = append(rules, rule)
			}
		}
		return rules
	})
}

// endListing removes those CRDs of a stack from the listing role that do not exist any more.
func (r *Reconciler) endListing(ctx context.Context, stack *v1alpha1.Stack) error {
	var gone []rbacv1.PolicyRule
	for _, owned := range stack.Spec.CustomResourceDefinitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := r.Live.Get(ctx, client.ObjectKey{Name: owned.Name}, crd)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if apierrors.IsNotFound(err) {
			plural, group, _ := strings.Cut(owned.Name, ".")
			gone = append(gone, listingRule(group, plural))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return r.changeListing(ctx, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return slices.DeleteFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.ContainsFunc(gone, same(rule)) })
	})
}

// changeListing updates the listing role. It returns an error in case of a conflict, so that the reconciliation is
// retried.
func (r *Reconciler) changeListing(ctx context.Context, change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) error {
	role := &rbacv1.ClusterRole{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: listingRole}, role); err != nil {
		return err
	}
	rules := slices.DeleteFunc(change(slices.Clone(role.Rules)), func(rule rbacv1.PolicyRule) bool { // of earlier versions
		return slices.ContainsFunc(rule.APIGroups, stackpackage.IsReservedGroup)
	})
	if slices.EqualFunc(rules, role.Rules, func(a, b rbacv1.PolicyRule) bool { return same(a)(b) }) {
		return nil
	}
	role.Rules = rules
	return r.Update(ctx, role)
}

func listingRule(group, plural string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{plural}, Verbs: []string{"list"}}
}

func same(a rbacv1.PolicyRule) func(rbacv1.PolicyRule) bool {
	return func(b rbacv1.PolicyRule) bool {
		return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) && slices.Equal(a.Verbs, b.Verbs)
	}
}
