package controlplane

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
)

func TestNodeAgents(t *testing.T) {
	none := authorizerfactory.NewAlwaysDenyAuthorizer()
	a := withNodeAgents(none)
	read := func(group, verb, apiGroup, resource, sub, namespace, name string) authorizer.Attributes {
		return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "x", Groups: []string{group}}, Verb: verb, APIGroup: apiGroup,
			Resource: resource, Subresource: sub, Namespace: namespace, Name: name, ResourceRequest: true}
	}
	const bootstrappers, nodes, osc = "system:bootstrappers", "system:nodes", "gardener-node-agent-a"
	const kwok, crds = "kwok.x-k8s.io", "apiextensions.k8s.io"
	as := func(name, verb, apiGroup, resource, namespace, on string) authorizer.Attributes {
		u := &user.DefaultInfo{Name: name}
		if strings.HasPrefix(name, "system:node:") {
			u.Groups = []string{nodes}
		}
		return authorizer.AttributesRecord{User: u, Verb: verb, APIGroup: apiGroup, Resource: resource, Namespace: namespace, Name: on,
			ResourceRequest: true}
	}
	const agent, leases = "gardener.cloud:node-agent:machine:", "coordination.k8s.io"
	for _, row := range []struct {
		attributes authorizer.Attributes
		allowed    bool
	}{
		{read(bootstrappers, "get", "", "secrets", "", "kube-system", osc), true},
		{read(nodes, "get", "", "secrets", "", "kube-system", osc), true},
		{read(nodes, "watch", "", "secrets", "", "kube-system", osc), true},
		{read(nodes, "list", "", "secrets", "", "kube-system", osc), false},
		{read(nodes, "update", "", "secrets", "", "kube-system", osc), false},
		{read(nodes, "get", "", "secrets", "", "kube-system", "other"), false},
		{read(nodes, "watch", "", "secrets", "", "kube-system", ""), false},
		{read(nodes, "get", "", "secrets", "", "default", osc), false},
		{read(nodes, "get", "", "secrets", "status", "kube-system", osc), false},
		{read(nodes, "get", "example.com", "secrets", "", "kube-system", osc), false},
		{read("system:authenticated", "get", "", "secrets", "", "kube-system", osc), false},
		{read(nodes, "list", kwok, "stages", "", "", ""), true},
		{read(nodes, "create", kwok, "stages", "", "", ""), false},
		{read(bootstrappers, "list", kwok, "stages", "", "", ""), false},
		{read(nodes, "watch", crds, "customresourcedefinitions", "", "", "stages.kwok.x-k8s.io"), true},
		{read(nodes, "watch", crds, "customresourcedefinitions", "", "", ""), false},
		{as("system:node:a", "impersonate", "", "users", "", agent+"a"), true},
		{as("system:node:a", "impersonate", "", "users", "", agent+"b"), false},
		{as("system:node:a", "impersonate", "", "users", "", "admin"), false},
		{as("system:node:", "impersonate", "", "users", "", agent), false},
		{as("x:node:a", "impersonate", "", "users", "", agent+"a"), false},
		{as("system:node:a", "impersonate", "", "groups", "", "system:masters"), false},
		{as(agent+"a", "patch", leases, "leases", "kube-system", osc), true},
		{as(agent+"a", "create", leases, "leases", "kube-system", osc), true},
		{as(agent+"b", "patch", leases, "leases", "kube-system", osc), false},
		{as(agent+"a", "delete", leases, "leases", "kube-system", osc), false},
		{as(agent+"a", "patch", leases, "leases", "default", osc), false},
		{as(agent+"a", "get", "", "secrets", "kube-system", osc), false},
	} {
		decision, _, err := a.Authorize(t.Context(), row.attributes)
		if err != nil || (decision == authorizer.DecisionAllow) != row.allowed {
			t.Errorf("%+v: %v, %v", row.attributes, decision, err)
		}
	}
}
