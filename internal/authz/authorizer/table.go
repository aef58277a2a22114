package authorizer

import (
	"github.com/gardener/gardener/pkg/apis/core/v1beta1"
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
	// Which objects, all where both are empty. They may end with a placeholder: <seed> is the name of the seed of who
	// is asking, <token-id> the ID of its bootstrap token, <name> any text.
	namespace, name string

	both      grant // what gardenlets and extensions may do,
	gardenlet grant // gardenlets alone,
	extension grant // extensions alone
}

// grant is what a row gives: verbs that are free, verbs that need a path in the graph from the object to the seed, verbs
// that need one from the object's namespace, and the subresources that all hold for beside the resource itself.
type grant struct{ free, graph, within, sub string }

// extensionReads is what extensions may do with what belongs to gardenlets.
var extensionReads = grant{free: "get list watch", sub: "status"}

// ruleTable is every rule (Gardener's "Scoped API access for gardenlets and extensions", "Implemented Rules", with the
// differences of docs/scoped-access.md). Who is in no row's column may do nothing. Extensions read; what they write has a
// reason beside it.
var ruleTable = []row{
	{resources: "backupbuckets",
		gardenlet: grant{free: "create get list watch", graph: "update patch delete", sub: "status"},
		extension: extensionReads},
	{resources: "backupentries",
		gardenlet: grant{free: "get list watch", graph: "update patch delete", within: "create", sub: "status"},
		extension: extensionReads},
	{resources: "bastions",
		gardenlet: grant{free: "get list watch", graph: "update patch", within: "create", sub: "status"},
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
		gardenlet: grant{free: "get list watch", graph: "update patch", sub: "status"},
		extension: extensionReads},
	{resources: "controllerregistrations", both: grant{free: "get list watch"}},
	{resources: "events events.events.k8s.io", both: grant{free: "create patch"}}, // what extensions do is to be seen
	{resources: "gardenlets",
		gardenlet: grant{free: "create get list watch", graph: "update patch", sub: "status"},
		extension: extensionReads},
	{resources: "leases", gardenlet: grant{graph: "get list watch update patch", within: "create"}},
	{resources: "managedseeds",
		gardenlet: grant{free: "get list watch", graph: "update patch", sub: "status"},
		extension: extensionReads},
	{resources: "secrets",
		gardenlet: grant{graph: "get update patch delete", within: "create"},
		extension: grant{graph: "get"}},
	{resources: "seeds",
		gardenlet: grant{free: "create get list watch", graph: "update patch delete", sub: "status"},
		extension: extensionReads},
	{resources: "serviceaccounts",
		gardenlet: grant{graph: "get update patch", within: "create"},
		extension: grant{graph: "get"}},
	{resources: "shoots",
		gardenlet: grant{free: "get list watch", graph: "update patch", sub: "status finalizers"},
		extension: extensionReads},
	// With their tokens extensions reach the infrastructure.
	{resources: "workloadidentities", both: grant{graph: "create get list watch", sub: "token"}},

	// Besides.
	{resources: "namespaces", name: "garden", both: grant{free: "get"}},
	// These namespaces are in every garden, so a request tells nothing that depends on whether they exist.
	{resources: "secrets configmaps internalsecrets shootstates serviceaccounts backupentries bastions leases", namespace: "garden",
		gardenlet: grant{free: "create"}},
	{resources: "secrets", namespace: "kube-system", gardenlet: grant{free: "create"}},
	{resources: "secrets", namespace: "gardener-system-shoot-issuer", gardenlet: grant{free: "create"}},
	{resources: "leases", namespace: "gardener-system-seed-lease", gardenlet: grant{free: "create"}},
	{resources: "secrets", namespace: "seed-<seed>", both: grant{free: "get list watch"}},
	// The gardenlet makes the ServiceAccounts of the extensions on its seed, and tokens for them.
	{resources: "serviceaccounts", namespace: "seed-<seed>", gardenlet: grant{free: every, sub: "token"}},
	{resources: "leases", name: "gardenlet-leader-election", gardenlet: grant{free: "create get list watch update"}},
	// By its leases an extension elects its leader.
	{resources: "leases", namespace: "seed-<seed>",
		extension: grant{free: "create get list watch update patch delete deletecollection"}},
	// What bootstrapped it, although there is no Seed yet that the graph could lead to.
	{resources: "secrets", namespace: "kube-system", name: "bootstrap-token-<token-id>", gardenlet: grant{free: "delete"}},
	{resources: "serviceaccounts", namespace: "garden", name: "gardenlet-bootstrap-<seed>", gardenlet: grant{free: "delete"}},
	{resources: "clusterrolebindings", name: "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-<seed>",
		gardenlet: grant{free: "delete"}},
	// A ManagedSeed that is bootstrapped by a ServiceAccount is given its token, while the graph has the account.
	{resources: "serviceaccounts", namespace: "garden", name: "gardenlet-bootstrap-<name>", gardenlet: grant{graph: "create", sub: "token"}},
	// Kubernetes lets a user bind a role only who has its permissions, or may do this. The restriction makes sure that the
	// binding is one for the bootstrapping of an own ManagedSeed.
	{resources: "clusterroles", name: "gardener.cloud:system:seed-bootstrapper", gardenlet: grant{free: "bind"}},
}

// resource is a resource that "Implemented Rules" names.
type resource struct {
	group, name string
	kind        graph.Kind // 0 and meaningless where no rule asks the graph
	namespaced  bool
}

const (
	cluster    = false
	namespaced = true
)

// resources are the resources of "Implemented Rules" by the word for them there. A resource of that name in another API
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
