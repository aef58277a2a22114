package defaultobjects

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/gardenlite/gardenlite/internal/manifest"
)

// otherPermissions are the permissions that roles have here and not in Gardener (+), or in Gardener and not here (-).
var otherPermissions = map[string][]string{
	// There are no self-hosted Shoots.
	"ClusterRole gardener.cloud:system:seed-bootstrapper": {"-create certificatesigningrequests/shootclient.certificates.k8s.io"},
}

// TestRolesOfGardener compares the roles and bindings with Gardener's. bench/gardenerroles writes the file.
func TestRolesOfGardener(t *testing.T) {
	theirs, err := manifest.LoadFS(os.DirFS("."), "testdata")
	if err != nil {
		t.Fatal(err)
	}
	ours := loadPolicy(t)
	for _, obj := range theirs {
		title := obj.GetKind() + " " + obj.GetName()
		switch obj.GetKind() {
		case "ClusterRole":
			want := convert[rbacv1.ClusterRole](t, obj)
			got, found := ours.clusterRoles[want.Name]
			if !found || !reflect.DeepEqual(got.Labels, want.Labels) || !reflect.DeepEqual(got.AggregationRule, want.AggregationRule) {
				t.Errorf("%s: found %t, labels %v, aggregates %v; Gardener's: %v, %v", title, found, got.Labels, got.AggregationRule,
					want.Labels, want.AggregationRule)
			}
			comparePermissions(t, title, got.Rules, want.Rules)
		case "Role":
			want := convert[rbacv1.Role](t, obj)
			comparePermissions(t, title, ours.roles[want.Namespace+"/"+want.Name].Rules, want.Rules)
		case "ClusterRoleBinding":
			want := convert[rbacv1.ClusterRoleBinding](t, obj)
			if !slices.ContainsFunc(ours.bindings, func(b rbacv1.ClusterRoleBinding) bool {
				return b.Name == want.Name && b.RoleRef == want.RoleRef && reflect.DeepEqual(b.Subjects, want.Subjects)
			}) && title != "ClusterRoleBinding gardener.cloud:admin" { // for the aggregator, which is the same API server here
				t.Errorf("%s is missing, or is another one: %v, %v", title, want.RoleRef, want.Subjects)
			}
		case "RoleBinding":
			want := convert[rbacv1.RoleBinding](t, obj)
			if !slices.ContainsFunc(ours.roleBindings, func(b rbacv1.RoleBinding) bool {
				return b.Namespace == want.Namespace && b.Name == want.Name && b.RoleRef == want.RoleRef && reflect.DeepEqual(b.Subjects, want.Subjects)
			}) {
				t.Errorf("%s is missing, or is another one: %v, %v", title, want.RoleRef, want.Subjects)
			}
		}
	}
}

func comparePermissions(t *testing.T, title string, got, want []rbacv1.PolicyRule) {
	t.Helper()
	ours, theirs := permissionsOf(got), permissionsOf(want)
	var differences []string
	for p := range ours {
		if !theirs[p] {
			differences = append(differences, "+"+p)
		}
	}
	for p := range theirs {
		if !ours[p] {
			differences = append(differences, "-"+p)
		}
	}
	slices.Sort(differences)
	if !slices.Equal(differences, otherPermissions[title]) {
		t.Errorf("%s: differs from Gardener's in\n%s", title, strings.Join(differences, "\n"))
	}
}

func permissionsOf(rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range append(slices.Clone(rule.ResourceNames), "")[:max(1, len(rule.ResourceNames))] {
						all[strings.TrimSpace(strings.TrimSuffix(verb+" "+resource+"."+group, ".")+" "+name)] = true
					}
				}
			}
		}
	}
	return all
}
