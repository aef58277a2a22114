package authorizer

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// fakeGraph maps a vertex to the seeds to which it leads. A vertex without seeds exists, and leads nowhere.
type fakeGraph map[graph.Vertex][]string

func (g fakeGraph) Has(v graph.Vertex) bool { _, has := g[v]; return has }

func (g fakeGraph) HasPath(from graph.Vertex, seed string) bool {
	for _, s := range g[from] {
		if s == seed {
			return true
		}
	}
	return false
}

func (g fakeGraph) Path(from graph.Vertex, seed string) []graph.Vertex {
	if !g.HasPath(from, seed) {
		return nil
	}
	return []graph.Vertex{from, {Kind: graph.KindSeed, Name: seed}}
}

func (g fakeGraph) Snapshot() (s graph.Snapshot) {
	for v := range g {
		s.Vertices = append(s.Vertices, graph.SnapshotVertex{Vertex: v, Exists: true})
	}
	slices.SortFunc(s.Vertices, func(a, b graph.SnapshotVertex) int { return strings.Compare(a.String(), b.String()) })
	return s
}

// The three objects that are tried for every resource. For cluster-scoped resources the namespace is ignored.
var (
	own     = object{"garden-a", "own"}     // leads to seed a
	foreign = object{"garden-b", "foreign"} // leads to seed b
	absent  = object{"garden-b", "absent"}  // is not in the graph
)

type object struct{ namespace, name string }

// The resources are repeated here independently of the table, so that a mistake in the table is found.
var (
	clusterKinds = map[string]graph.Kind{
		"backupbuckets.core.gardener.cloud":              graph.KindBackupBucket,
		"certificatesigningrequests.certificates.k8s.io": graph.KindCertificateSigningRequest,
		"cloudprofiles.core.gardener.cloud":              graph.KindCloudProfile,
		"clusterrolebindings.rbac.authorization.k8s.io":  graph.KindClusterRoleBinding,
		"clusterroles.rbac.authorization.k8s.io":         0, // not in the graph
		"controllerdeployments.core.gardener.cloud":      graph.KindControllerDeployment,
		"controllerinstallations.core.gardener.cloud":    graph.KindControllerInstallation,
		"controllerregistrations.core.gardener.cloud":    graph.KindControllerRegistration,
		"exposureclasses.core.gardener.cloud":            graph.KindExposureClass,
		"namespaces":                                     graph.KindNamespace,
		"projects.core.gardener.cloud":                   graph.KindProject,
		"seeds.core.gardener.cloud":                      graph.KindSeed,
	}
	namespacedKinds = map[string]graph.Kind{
		"backupentries.core.gardener.cloud":           graph.KindBackupEntry,
		"bastions.operations.gardener.cloud":          graph.KindBastion,
		"configmaps":                                  graph.KindConfigMap,
		"credentialsbindings.security.gardener.cloud": graph.KindCredentialsBinding,
		"events":               0,
		"events.events.k8s.io": 0,
		"gardenlets.seedmanagement.gardener.cloud":    graph.KindGardenlet,
		"internalsecrets.core.gardener.cloud":         graph.KindInternalSecret,
		"leases.coordination.k8s.io":                  graph.KindLease,
		"managedseeds.seedmanagement.gardener.cloud":  graph.KindManagedSeed,
		"namespacedcloudprofiles.core.gardener.cloud": graph.KindNamespacedCloudProfile,
		"secretbindings.core.gardener.cloud":          graph.KindSecretBinding,
		"secrets":                                     graph.KindSecret,
		"serviceaccounts":                             graph.KindServiceAccount,
		"shoots.core.gardener.cloud":                  graph.KindShoot,
		"shootstates.core.gardener.cloud":             graph.KindShootState,
		"workloadidentities.security.gardener.cloud":  graph.KindWorkloadIdentity,
	}
)

// landscape returns a graph with the own and the foreign object of every kind, and the seeds a and b.
func landscape() fakeGraph {
	g := fakeGraph{
		{Kind: graph.KindSeed, Name: "a"}: {"a"},
		{Kind: graph.KindSeed, Name: "b"}: {"b"},
	}
	g[graph.Vertex{Kind: graph.KindNamespace, Name: own.namespace}] = []string{"a"}
	g[graph.Vertex{Kind: graph.KindNamespace, Name: foreign.namespace}] = []string{"b"}
	for _, kind := range clusterKinds {
		g[graph.Vertex{Kind: kind, Name: own.name}] = []string{"a"}
		g[graph.Vertex{Kind: kind, Name: foreign.name}] = []string{"b"}
	}
	for _, kind := range namespacedKinds {
		g[graph.Vertex{Kind: kind, Namespace: own.namespace, Name: own.name}] = []string{"a"}
		g[graph.Vertex{Kind: kind, Namespace: foreign.namespace, Name: foreign.name}] = []string{"b"}
	}
	return g
}

var (
	gardenletA = &user.DefaultInfo{Name: "gardener.cloud:system:seed:a",
		Groups: []string{"gardener.cloud:system:seeds", "system:authenticated"}}
	extensionA = &user.DefaultInfo{Name: "system:serviceaccount:seed-a:extension-x",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-a", "system:authenticated"}}
	users = map[string]user.Info{"gardenlet": gardenletA, "extension": extensionA}
)

// request returns the attributes of a request: the resource as in "shoots.core.gardener.cloud/status", the object as
// "namespace/name", "namespace/" or "name".
func request(who user.Info, verb, resource, of string) authorizer.AttributesRecord {
	resource, sub, _ := strings.Cut(resource, "/")
	resource, group, _ := strings.Cut(resource, ".")
	namespace, name, found := strings.Cut(of, "/")
	if !found {
		namespace, name = "", of
	}
	return authorizer.AttributesRecord{User: who, ResourceRequest: true, Verb: verb, APIGroup: group, APIVersion: "v1",
		Resource: resource, Subresource: sub, Namespace: namespace, Name: name}
}

// allowed asks the authorizer, and fails the test if the answer breaks the guarantees of the package.
func allowed(t *testing.T, a *Authorizer, attrs authorizer.AttributesRecord) (bool, string) {
	t.Helper()
	decision, reason, err := a.Authorize(t.Context(), attrs)
	if err != nil || decision == authorizer.DecisionDeny {
		t.Errorf("%s: decision %v, error %v: only allow and no opinion are promised", show(attrs), decision, err)
	}
	if reason == "" || strings.ContainsAny(reason, "\n\r") {
		t.Errorf("%s: the reason is not one line: %q", show(attrs), reason)
	}
	if explained := a.Explain(attrs); explained.Allowed != (decision == authorizer.DecisionAllow) {
		t.Errorf("%s: explained as allowed: %t, decided %v", show(attrs), explained.Allowed, decision)
	}
	return decision == authorizer.DecisionAllow, reason
}

func show(r authorizer.AttributesRecord) string {
	s := r.User.GetName() + ": " + r.Verb + " " + r.Resource
	if r.APIGroup != "" {
		s += "." + r.APIGroup
	}
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	s += " " + r.Namespace + "/" + r.Name
	if len(r.FieldSelectorRequirements) > 0 {
		s += " where " + r.FieldSelectorRequirements[0].Field
	}
	return s
}

func equals(field, value string) fields.Requirement {
	return fields.Requirement{Field: field, Operator: selection.Equals, Value: value}
}
