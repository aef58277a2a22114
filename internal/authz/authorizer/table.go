package authorizer

import (
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/operations"
	"github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	security "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	rbac "k8s.io/api/rbac/v1"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// row is one row of "Implemented Rules".
type row struct {
	resources string // one or several, separated by spaces
	// namespace and name restrict the objects of the row; it is for all objects if both are empty. They may end with a
	// placeholder: <seed> is the name of the user's seed, <token-id> the ID of its bootstrap token, <name> any text.
	namespace, name string

	both      grant // for gardenlets and extensions
	gardenlet grant // for gardenlets only
	extension grant // for extensions only
}

// grant has the verbs that a row grants: free ones, those that need a path in the graph from the object to the seed,
// those that need a path from the object's namespace, those that need the selector of the resource, those that are free
// with ReadsAll, and the subresources for which all verbs are granted besides the resource itself.
type grant struct{ free, graph, within, selected, all, sub string }

// extensionReads is the grant of extensions for objects that gardenlets write.
var extensionReads = grant{graph: read, selected: "list watch", all: read, sub: "status"}

const read = "get list watch"

// ruleTable has all rules (Gardener's "Scoped API access for gardenlets and extensions", "Implemented Rules", with the
// differences in docs/scoped-access.md). What no row grants is not allowed. Extensions may read; a row in which they
// may write has a comment with the reason.
var ruleTable = []row{
	{resources: "backupbuckets",
		gardenlet: grant{free: "create get list watch", graph: "update patch delete", sub: "status finalizers"},
		extension: grant{free: read, sub: "status finalizers"}},
	{resources: "backupentries",
		gardenlet: grant{free: read, graph: "update patch delete", within: "create", sub: "status"},
		extension: grant{free: read, sub: "status"}},
	{resources: "bastions",
		gardenlet: grant{graph: "get list watch update patch", selected: "list watch", all: read, within: "create", sub: "status"},
		extension: extensionReads},
	{resources: "certificatesigningrequests",
		gardenlet: grant{free: "create", graph: "get list watch", sub: "seedclient"},
		extension: grant{graph: "get list watch"}},
	{resources: "cloudprofiles namespacedcloudprofiles exposureclasses projects namespaces secretbindings " +
		"credentialsbindings controllerdeployments",
		both: grant{graph: "get list watch"}},
	{resources: "clusterrolebindings",
		gardenlet: grant{free: "create", graph: "get update patch"},
		extension: grant{graph: "get"}},
	{resources: "configmaps internalsecrets shootstates",
		gardenlet: grant{graph: "get list watch update patch delete", within: "create"},
		extension: grant{graph: "get list watch"}},
	{resources: "controllerinstallations",
		gardenlet: grant{graph: "get list watch update patch", selected: "list watch", all: read, sub: "status"},
		extension: extensionReads},
	{resources: "controllerregistrations", both: grant{free: "get list watch"}},
	{resources: "events events.events.k8s.io", both: grant{free: "create patch"}}, // extensions report what they do
	{resources: "gardenlets",
		gardenlet: grant{graph: "get list watch update patch", all: read, sub: "status"},
		extension: grant{graph: read, all: read, sub: "status"}},
	{resources: "gardenlets", namespace: "garden", gardenlet: grant{free: "create", sub: "status"}},
	{resources: "leases", gardenlet: grant{graph: "get list watch update patch", within: "create"}},
	{resources: "managedseeds",
		gardenlet: grant{graph: "get list watch update patch", selected: "list watch", all: read, sub: "status"},
		extension: extensionReads},
	{resources: "secrets",
		gardenlet: grant{graph: "get update patch delete", within: "create"},
		extension: grant{graph: "get"}},
	{resources: "seeds",
		gardenlet: grant{free: "create", graph: "get list watch update patch delete", selected: "list watch", all: read, sub: "status"},
		extension: extensionReads},
	{resources: "serviceaccounts",
		gardenlet: grant{graph: "get update patch", within: "create"},
		extension: grant{graph: "get"}},
	{resources: "shoots",
		gardenlet: grant{graph: "get list watch update patch", selected: "list watch", all: read, sub: "status finalizers"},
		extension: grant{graph: read, selected: "list watch", all: read, sub: "status finalizers"}},
	// Extensions use tokens of WorkloadIdentities to access the infrastructure.
	{resources: "workloadidentities",
		gardenlet: grant{graph: "create get list watch patch", sub: "token"},
		extension: grant{graph: "create get list watch", sub: "token"}},

	// Further rules.
	// A gardenlet waits for the Gardenlet of its name before there is one.
	{resources: "gardenlets", namespace: "garden", name: "<seed>", both: grant{free: "list watch", sub: "status"}},
	// A gardenlet looks whether its seed is a ManagedSeed. In Gardener it may if there is one, which has a path to its
	// Seed.
	{resources: "managedseeds", namespace: "garden", name: "<seed>", both: grant{free: read, sub: "status"}},
	// Every user may read it, by RBAC.
	{resources: "configmaps", namespace: "gardener-system-public", name: "gardener-info", both: grant{free: "get"}},
	{resources: "namespaces", name: "garden", both: grant{free: "get"}},
	// Every garden has these namespaces, so the answer does not reveal whether they exist.
	{resources: "secrets configmaps internalsecrets shootstates serviceaccounts backupentries bastions leases", namespace: "garden",
		gardenlet: grant{free: "create"}},
	{resources: "secrets", namespace: "kube-system", gardenlet: grant{free: "create"}},
	{resources: "secrets", namespace: "gardener-system-shoot-issuer", gardenlet: grant{free: "create"}},
	{resources: "leases", namespace: "gardener-system-seed-lease", gardenlet: grant{free: "create"}},
	{resources: "secrets", namespace: "seed-<seed>", both: grant{free: "get list watch"}},
	// The gardenlet creates the ServiceAccounts of the extensions on its seed, and their tokens.
	{resources: "serviceaccounts", namespace: "seed-<seed>", gardenlet: grant{free: every, sub: "token"}},
	{resources: "leases", name: "gardenlet-leader-election", gardenlet: grant{free: "create get list watch update"}},
	// Extensions use leases for leader election.
	{resources: "leases", namespace: "seed-<seed>",
		extension: grant{free: "create get list watch update patch delete deletecollection"}},
	// A gardenlet may delete the objects that bootstrapped it, although there is no Seed yet to which the graph could
	// lead.
	{resources: "secrets", namespace: "kube-system", name: "bootstrap-token-<token-id>", gardenlet: grant{free: "delete"}},
	{resources: "serviceaccounts", namespace: "garden", name: "gardenlet-bootstrap-<seed>", gardenlet: grant{free: "delete"}},
	{resources: "clusterrolebindings", name: "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-<seed>",
		gardenlet: grant{free: "delete"}},
	// A ManagedSeed that is bootstrapped with a ServiceAccount gets a token of it, as long as the graph has the
	// account.
	{resources: "serviceaccounts", namespace: "garden", name: "gardenlet-bootstrap-<name>", gardenlet: grant{graph: "create", sub: "token"}},
	// Kubernetes lets a user bind a role only if the user has all of its permissions, or the verb bind. SeedRestriction
	// ensures that the binding is for the bootstrapping of a ManagedSeed of the seed.
	{resources: "clusterroles", name: "gardener.cloud:system:seed-bootstrapper", gardenlet: grant{free: "bind"}},
}

// selectors has the resources of which all objects of a seed are listed and watched with a selector.
var selectors = map[string]Selector{
	"bastions":                {Field: operations.BastionSeedName},
	"controllerinstallations": {Field: gardencore.SeedRefName},
	"managedseeds":            {Label: constants.LabelPrefixSeedName},
	"seeds":                   {Label: constants.LabelPrefixSeedName},
	"shoots":                  {Label: constants.LabelPrefixSeedName},
}

type resource struct {
	group, name string
	kind        graph.Kind // 0 if no rule uses the graph
	namespaced  bool
}

const (
	cluster    = false
	namespaced = true
)

// resources has the resources of "Implemented Rules" by their names there. A resource of the same name in another API
// group is another resource.
var resources = map[string]resource{
	"backupbuckets":              {v1beta1.GroupName, "backupbuckets", graph.KindBackupBucket, cluster},
	"backupentries":              {v1beta1.GroupName, "backupentries", graph.KindBackupEntry, namespaced},
	"bastions":                   {v1alpha1.GroupName, "bastions", graph.KindBastion, namespaced},
	"certificatesigningrequests": {certificates.GroupName, "certificatesigningrequests", graph.KindCertificateSigningRequest, cluster},
	"cloudprofiles":              {v1beta1.GroupName, "cloudprofiles", graph.KindCloudProfile, cluster},
	"clusterrolebindings":        {rbac.GroupName, "clusterrolebindings", graph.KindClusterRoleBinding, cluster},
	"clusterroles":               {rbac.GroupName, "clusterroles", 0, cluster},
	"configmaps":                 {core.GroupName, "configmaps", graph.KindConfigMap, namespaced},
	"controllerdeployments":      {v1beta1.GroupName, "controllerdeployments", graph.KindControllerDeployment, cluster},
	"controllerinstallations":    {v1beta1.GroupName, "controllerinstallations", graph.KindControllerInstallation, cluster},
	"controllerregistrations":    {v1beta1.GroupName, "controllerregistrations", graph.KindControllerRegistration, cluster},
	"credentialsbindings":        {security.GroupName, "credentialsbindings", graph.KindCredentialsBinding, namespaced},
	"events":                     {core.GroupName, "events", 0, namespaced},
	"events.events.k8s.io":       {events.GroupName, "events", 0, namespaced},
	"exposureclasses":            {v1beta1.GroupName, "exposureclasses", graph.KindExposureClass, cluster},
	"gardenlets":                 {seedmanagement.GroupName, "gardenlets", graph.KindGardenlet, namespaced},
	"internalsecrets":            {v1beta1.GroupName, "internalsecrets", graph.KindInternalSecret, namespaced},
	"leases":                     {coordination.GroupName, "leases", graph.KindLease, namespaced},
	"managedseeds":               {seedmanagement.GroupName, "managedseeds", graph.KindManagedSeed, namespaced},
	"namespacedcloudprofiles":    {v1beta1.GroupName, "namespacedcloudprofiles", graph.KindNamespacedCloudProfile, namespaced},
	"namespaces":                 {core.GroupName, "namespaces", graph.KindNamespace, cluster},
	"projects":                   {v1beta1.GroupName, "projects", graph.KindProject, cluster},
	"secretbindings":             {v1beta1.GroupName, "secretbindings", graph.KindSecretBinding, namespaced},
	"secrets":                    {core.GroupName, "secrets", graph.KindSecret, namespaced},
	"seeds":                      {v1beta1.GroupName, "seeds", graph.KindSeed, cluster},
	"serviceaccounts":            {core.GroupName, "serviceaccounts", graph.KindServiceAccount, namespaced},
	"shoots":                     {v1beta1.GroupName, "shoots", graph.KindShoot, namespaced},
	"shootstates":                {v1beta1.GroupName, "shootstates", graph.KindShootState, namespaced},
	"workloadidentities":         {security.GroupName, "workloadidentities", graph.KindWorkloadIdentity, namespaced},
}
