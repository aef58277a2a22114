package authorizer

import (
	"testing"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

const (
	sa    = "serviceaccounts"
	crb   = "clusterrolebindings.rbac.authorization.k8s.io"
	roles = "clusterroles.rbac.authorization.k8s.io"
	lease = "leases.coordination.k8s.io"
	csr   = "certificatesigningrequests.certificates.k8s.io"

	binding = "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-"
	// The first six digits of the SHA-256 of garden--a and of garden--b.
	tokenOfA = "kube-system/bootstrap-token-4c40cb"
	tokenOfB = "kube-system/bootstrap-token-293bff"
)

// besidesGraph has the bootstrapping objects, which lead to the parent's seed, not to a. It has other objects only
// where a test needs them, and no seed a.
var besidesGraph = fakeGraph{
	{Kind: graph.KindNamespace, Name: "garden"}:                                                   {"b"},
	{Kind: graph.KindNamespace, Name: "seed-a"}:                                                   {"b"},
	{Kind: graph.KindSecret, Namespace: "kube-system", Name: "bootstrap-token-4c40cb"}:            {"b"},
	{Kind: graph.KindSecret, Namespace: "kube-system", Name: "bootstrap-token-293bff"}:            {"b"},
	{Kind: graph.KindSecret, Namespace: "garden", Name: "bootstrap-token-4c40cb"}:                 {"b"},
	{Kind: graph.KindSecret, Namespace: "seed-a", Name: "x"}:                                      {"b"},
	{Kind: graph.KindSecret, Namespace: "seed-b", Name: "x"}:                                      {"b"},
	{Kind: graph.KindServiceAccount, Namespace: "garden", Name: "gardenlet-bootstrap-a"}:          {"b"},
	{Kind: graph.KindClusterRoleBinding, Name: binding + "a"}:                                     {"b"},
	{Kind: graph.KindServiceAccount, Namespace: "seed-a", Name: "in-graph"}:                       {"a"},
	{Kind: graph.KindLease, Namespace: "gardener-system-seed-lease", Name: "a"}:                   {"a"},
	{Kind: graph.KindLease, Namespace: "gardener-system-seed-lease", Name: "b"}:                   {"b"},
	{Kind: graph.KindCertificateSigningRequest, Name: "mine"}:                                     {"a"},
	{Kind: graph.KindClusterRoleBinding, Name: "mine"}:                                            {"a"},
	{Kind: graph.KindServiceAccount, Namespace: "garden", Name: "gardenlet-bootstrap-child-of-a"}: {"a"},
	{Kind: graph.KindSecret, Namespace: "kube-system", Name: "bootstrap-token-" + "child0"}:       {"a"},
	{Kind: graph.KindConfigMap, Namespace: "kube-system", Name: "cluster-identity"}:               {"a", "b"},
}

// besidesCase is a request for a rule besides the main table, by the gardenlet and the extension of seed a.
type besidesCase struct {
	verb, resource, of   string
	gardenlet, extension bool
}

func checkBesides(t *testing.T, cases []besidesCase) {
	t.Helper()
	a := New(besidesGraph, ReadsSeed)
	for _, c := range cases {
		for user, want := range map[string]bool{"gardenlet": c.gardenlet, "extension": c.extension} {
			attrs := request(users[user], c.verb, c.resource, c.of)
			if got, reason := allowed(t, a, attrs); got != want {
				t.Errorf("%s: allowed %v (%s)", show(attrs), got, reason)
			}
		}
	}
}

func TestBesidesInSeedNamespace(t *testing.T) {
	checkBesides(t, []besidesCase{
		// Namespace garden: get is free.
		{"get", "namespaces", "garden", true, true},
		{"get", "namespaces", "garden/garden", true, true}, // as the API server asks
		{"list", "namespaces", "garden", false, false},
		{"watch", "namespaces", "garden", false, false},
		{"update", "namespaces", "garden", false, false},
		{"delete", "namespaces", "garden", false, false},
		{"get", "namespaces/status", "garden", false, false},
		{"get", "namespaces", "garden-x", false, false},
		{"get", "namespaces", "seed-a", false, false}, // the namespace leads to seed b here
		{"get", "namespaces", "garden/", false, false},
		{"get", "namespaces", "garden/kube-system", false, false},

		// Gardenlets are created in garden only.
		{"create", "gardenlets.seedmanagement.gardener.cloud", "garden/", true, false},
		{"create", "gardenlets.seedmanagement.gardener.cloud", "garden-x/", false, false},
		{"create", "gardenlets.seedmanagement.gardener.cloud", "", false, false},

		// The ManagedSeed of the seed: get, list, watch free.
		{"get", "managedseeds.seedmanagement.gardener.cloud", "garden/a", true, true},
		{"watch", "managedseeds.seedmanagement.gardener.cloud", "garden/a", true, true},
		{"watch", "managedseeds.seedmanagement.gardener.cloud", "garden/b", false, false},
		{"watch", "managedseeds.seedmanagement.gardener.cloud", "garden-x/a", false, false},
		{"patch", "managedseeds.seedmanagement.gardener.cloud", "garden/a", false, false},

		// ConfigMap gardener-info: get free.
		{"get", "configmaps", "gardener-system-public/gardener-info", true, true},
		{"get", "configmaps", "gardener-system-public/other", false, false},
		{"list", "configmaps", "gardener-system-public/gardener-info", false, false},

		// Secrets in seed-<seed>: get, list, watch free.
		{"get", "secrets", "seed-a/x", true, true},
		{"list", "secrets", "seed-a/x", true, true},
		{"list", "secrets", "seed-a/", true, true},
		{"watch", "secrets", "seed-a/", true, true},
		{"update", "secrets", "seed-a/x", false, false},
		{"delete", "secrets", "seed-a/x", false, false},
		{"deletecollection", "secrets", "seed-a/", false, false},
		{"get", "secrets/status", "seed-a/x", false, false},
		{"get", "secrets", "seed-b/x", false, false},
		{"list", "secrets", "seed-b/", false, false},
		{"list", "secrets", "seed-aa/", false, false},
		{"list", "secrets", "seed-/", false, false},
		{"list", "secrets", "seed/", false, false},
		{"list", "secrets", "a/", false, false},
		{"list", "secrets", "", false, false},
		{"list", "secrets", "garden/", false, false},
		{"list", "configmaps", "seed-a/", false, false},

		// ServiceAccounts in seed-<seed>: every verb free for the gardenlet, graph get for the extension.
		{"create", sa, "seed-a/", true, false},
		{"get", sa, "seed-a/x", true, false},
		{"list", sa, "seed-a/", true, false},
		{"watch", sa, "seed-a/", true, false},
		{"update", sa, "seed-a/x", true, false},
		{"patch", sa, "seed-a/x", true, false},
		{"delete", sa, "seed-a/x", true, false},
		{"deletecollection", sa, "seed-a/", true, false},
		{"impersonate", sa, "seed-a/x", true, false},
		{"*", sa, "seed-a/", true, false},
		{"", sa, "seed-a/x", false, false},
		{"GET", sa, "seed-a/x", false, false},
		{"get list", sa, "seed-a/x", false, false},
		{"**", sa, "seed-a/x", false, false},
		{"create", sa + "/token", "seed-a/extension-x", true, false},
		{"get", sa, "seed-a/in-graph", true, true},
		{"update", sa, "seed-a/in-graph", true, false},
		{"create", sa + "/token", "seed-a/in-graph", true, false},
		{"create", sa + "/token", "seed-b/x", false, false},
		{"create", sa + "/token", "garden/gardenlet-bootstrap-child-of-a", true, false},
		{"create", sa, "seed-b/", false, false},
		{"update", sa + "/status", "seed-a/x", false, false},
		{"delete", sa, "seed-b/x", false, false},
		{"delete", sa, "seed-aa/x", false, false},
		{"deletecollection", sa, "seed-b/", false, false},
		{"deletecollection", sa, "", false, false},
		{"impersonate", sa, "garden/gardenlet-bootstrap-child-of-a", false, false},
	})
}

func TestBesidesLeases(t *testing.T) {
	checkBesides(t, []besidesCase{
		// Lease gardenlet-leader-election: create, get, list, watch, update free for the gardenlet.
		{"create", lease, "garden/gardenlet-leader-election", true, false},
		{"get", lease, "garden/gardenlet-leader-election", true, false},
		{"list", lease, "garden/gardenlet-leader-election", true, false},
		{"watch", lease, "garden/gardenlet-leader-election", true, false},
		{"update", lease, "garden/gardenlet-leader-election", true, false},
		{"patch", lease, "garden/gardenlet-leader-election", false, false},
		{"delete", lease, "garden/gardenlet-leader-election", false, false},
		{"deletecollection", lease, "garden/gardenlet-leader-election", false, false},
		{"update", lease, "garden/gardenlet-leader-election-2", false, false},
		{"update", lease, "garden/not-gardenlet-leader-election", false, false},
		{"update", lease + "/status", "garden/gardenlet-leader-election", false, false},

		// Leases: the seed's own by the graph for the gardenlet, every one in seed-<seed> for the extension.
		{"update", lease, "gardener-system-seed-lease/a", true, false},
		{"update", lease, "gardener-system-seed-lease/b", false, false},
		{"delete", lease, "gardener-system-seed-lease/a", false, false},
		{"create", lease, "garden/", true, false},
		{"create", lease, "seed-a/", false, true}, // the namespace leads to seed b here
		{"get", lease, "seed-a/x", false, true},
		{"list", lease, "seed-a/", false, true},
		{"watch", lease, "seed-a/", false, true},
		{"update", lease, "seed-a/x", false, true},
		{"patch", lease, "seed-a/x", false, true},
		{"delete", lease, "seed-a/x", false, true},
		{"deletecollection", lease, "seed-a/", false, true},
		{"impersonate", lease, "seed-a/x", false, false},
		{"get", lease + "/status", "seed-a/x", false, false},
		{"get", lease, "seed-b/x", false, false},
		{"list", lease, "seed-b/", false, false},
		{"list", lease, "", false, false},
		{"delete", lease, "seed-aa/x", false, false},
	})
}

func TestBesidesBootstrapping(t *testing.T) {
	checkBesides(t, []besidesCase{
		// A gardenlet may delete the objects that bootstrapped it.
		{"delete", "secrets", tokenOfA, true, false},
		{"delete", "secrets", tokenOfB, false, false},
		{"delete", "secrets", "garden/bootstrap-token-4c40cb", false, false},
		{"get", "secrets", tokenOfA, false, false},
		{"update", "secrets", tokenOfA, false, false},
		{"deletecollection", "secrets", tokenOfA, false, false},
		{"delete", sa, "garden/gardenlet-bootstrap-a", true, false},
		{"delete", sa, "garden/gardenlet-bootstrap-b", false, false},
		{"delete", sa, "garden/gardenlet-bootstrap-aa", false, false},
		{"delete", sa, "garden/gardenlet-bootstrap-", false, false},
		{"delete", sa, "kube-system/gardenlet-bootstrap-a", false, false},
		{"delete", sa + "/token", "garden/gardenlet-bootstrap-a", false, false},
		{"get", sa, "garden/gardenlet-bootstrap-a", false, false},
		{"delete", crb, binding + "a", true, false},
		{"delete", crb, binding + "b", false, false},
		{"delete", crb, binding, false, false},
		{"delete", crb, "gardener.cloud:system:seed-bootstrapper:other:gardenlet-bootstrap-a", false, false},
		{"delete", crb, "gardener.cloud:system:seed-bootstrapper", false, false},

		// ClusterRole gardener.cloud:system:seed-bootstrapper: bind free for the gardenlet.
		{"bind", roles, "gardener.cloud:system:seed-bootstrapper", true, false},
		{"bind", roles, "cluster-admin", false, false},
		{"bind", roles, "gardener.cloud:system:seed-bootstrapper:x", false, false},
		{"bind", roles, "", false, false},
		{"escalate", roles, "gardener.cloud:system:seed-bootstrapper", false, false},
		{"get", roles, "gardener.cloud:system:seed-bootstrapper", false, false},
		{"bind", "roles.rbac.authorization.k8s.io", "garden/gardener.cloud:system:seed-bootstrapper", false, false},
		{"bind", crb, "gardener.cloud:system:seed-bootstrapper", false, false},

		{"get", crb, binding + "a", false, false},
		{"update", crb, binding + "a", false, false},
		// Objects with which the gardenlet bootstraps another one: it may delete tokens by the graph, accounts and
		// bindings not at all.
		{"delete", "secrets", "kube-system/bootstrap-token-child0", true, false},
		{"delete", sa, "garden/gardenlet-bootstrap-child-of-a", false, false},
		{"delete", crb, "mine", false, false},
	})
}

func TestBesidesExtensions(t *testing.T) {
	checkBesides(t, []besidesCase{
		// Extensions: CertificateSigningRequests graph get, list, watch; bindings and accounts graph get.
		{"create", csr, "", true, false},
		{"create", csr + "/seedclient", "", true, false},
		{"get", csr, "mine", true, true},
		{"list", csr, "mine", true, true},
		{"watch", csr, "mine", true, true},
		{"get", csr + "/seedclient", "mine", true, false},
		{"get", crb, "mine", true, true},
		{"update", crb, "mine", true, false},
		{"patch", crb, "mine", true, false},
		{"create", crb, "", true, false},
		{"get", sa, "garden/gardenlet-bootstrap-child-of-a", true, true},
		{"update", sa, "garden/gardenlet-bootstrap-child-of-a", true, false},
		{"create", sa, "garden/", true, false},

		// An object that leads to both seeds is allowed for both.
		{"get", "configmaps", "kube-system/cluster-identity", true, true},
	})
}

// TestDelete checks that an object that does not lead to the seed cannot be deleted, whether or not it exists, so that
// the answer does not reveal its existence.
func TestDelete(t *testing.T) {
	a := New(landscape(), ReadsSeed)
	for _, resource := range []string{"backupbuckets.core.gardener.cloud", "backupentries.core.gardener.cloud", "configmaps",
		"internalsecrets.core.gardener.cloud", "secrets", "seeds.core.gardener.cloud", "shootstates.core.gardener.cloud"} {
		for of, want := range map[object]bool{own: true, foreign: false, absent: false} {
			for name, user := range users {
				attrs := request(user, "delete", resource, of.namespace+"/"+of.name)
				if got, reason := allowed(t, a, attrs); got != (want && name == "gardenlet") {
					t.Errorf("%s: allowed %v (%s)", show(attrs), got, reason)
				}
			}
		}
	}
	// A gardenlet may delete its bootstrap token even if the graph does not have the token.
	attrs := request(gardenletA, "delete", "secrets", "kube-system/bootstrap-token-4c40cb")
	if got, reason := allowed(t, a, attrs); !got {
		t.Errorf("%s: %s", show(attrs), reason)
	}
}
