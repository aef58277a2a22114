package authorizer

import (
	"math/rand/v2"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// resource is one that requests are about.
type resource struct {
	group, version, name, kind string
	namespaced                 bool
	subresources               []string // that there are
}

const (
	core       = "core.gardener.cloud"
	operations = "operations.gardener.cloud"
	security   = "security.gardener.cloud"
	management = "seedmanagement.gardener.cloud"
)

// resources are those that Gardener's SeedAuthorizer has rules for, and some others.
var resources = []resource{
	{core, "v1beta1", "backupbuckets", "BackupBucket", false, []string{"status", "finalizers"}},
	{core, "v1beta1", "backupentries", "BackupEntry", true, []string{"status", "finalizers"}},
	{operations, "v1alpha1", "bastions", "Bastion", true, []string{"status", "finalizers"}},
	{"certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", false, []string{"status", "approval", "seedclient"}},
	{core, "v1beta1", "cloudprofiles", "CloudProfile", false, []string{"status"}},
	{core, "v1beta1", "namespacedcloudprofiles", "NamespacedCloudProfile", true, []string{"status"}},
	{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false, nil},
	{"", "v1", "configmaps", "ConfigMap", true, nil},
	{core, "v1", "controllerdeployments", "ControllerDeployment", false, nil},
	{core, "v1beta1", "controllerinstallations", "ControllerInstallation", false, []string{"status", "finalizers"}},
	{core, "v1beta1", "controllerregistrations", "ControllerRegistration", false, nil},
	{security, "v1alpha1", "credentialsbindings", "CredentialsBinding", true, nil},
	{"", "v1", "events", "Event", true, nil},
	{"events.k8s.io", "v1", "events", "Event", true, nil},
	{core, "v1beta1", "exposureclasses", "ExposureClass", false, nil},
	{core, "v1beta1", "internalsecrets", "InternalSecret", true, nil},
	{"coordination.k8s.io", "v1", "leases", "Lease", true, nil},
	{management, "v1alpha1", "gardenlets", "Gardenlet", true, []string{"status", "finalizers"}},
	{management, "v1alpha1", "managedseeds", "ManagedSeed", true, []string{"status", "finalizers"}},
	{"", "v1", "namespaces", "Namespace", false, []string{"status", "finalize"}},
	{core, "v1beta1", "projects", "Project", false, []string{"status"}},
	{core, "v1beta1", "secretbindings", "SecretBinding", true, nil},
	{"", "v1", "secrets", "Secret", true, nil},
	{core, "v1beta1", "seeds", "Seed", false, []string{"status", "finalizers"}},
	{"", "v1", "serviceaccounts", "ServiceAccount", true, []string{"token"}},
	{core, "v1beta1", "shoots", "Shoot", true, []string{"status", "finalizers", "binding", "adminkubeconfig", "viewerkubeconfig"}},
	{core, "v1beta1", "shootstates", "ShootState", true, nil},
	{security, "v1alpha1", "workloadidentities", "WorkloadIdentity", true, []string{"status", "token"}},
	// Without rules of Gardener's.
	{core, "v1beta1", "quotas", "Quota", true, nil},
	{management, "v1alpha1", "managedseedsets", "ManagedSeedSet", true, []string{"status"}},
	{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false, nil},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", true, nil},
	{"", "v1", "pods", "Pod", true, []string{"exec", "log"}},
	{"apps", "v1", "deployments", "Deployment", true, []string{"scale"}},
	{"extensions", "v1beta1", "secrets", "Secret", true, nil},
	{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", false, nil},
}

var (
	verbs = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "*"}
	// further subresources, which few resources have.
	subresources = []string{"status", "finalizers", "token", "binding", "seedclient", "scale", "nonsense"}
	namespaces   = []string{"", "garden", project, "garden-dev", "kube-system", "default", "gardener-system-public",
		"gardener-system-seed-lease", "gardener-system-shoot-issuer", missing}
)

const (
	gardenlets = "gardener.cloud:system:seeds"
	selfHosted = "gardener.cloud:system:shoots"
	notEquals  = selection.NotEquals
)

func gardenletOf(seed string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: "gardener.cloud:system:seed:" + seed, Groups: []string{gardenlets, user.AllAuthenticated}}
}

func accountOf(namespace, name string, more ...string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: "system:serviceaccount:" + namespace + ":" + name,
		Groups: append([]string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, user.AllAuthenticated}, more...)}
}

// users has a gardenlet and an extension of each seed, and others is the rest.
func users() (all, others []user.Info) {
	for _, seed := range seeds {
		all = append(all, gardenletOf(seed), accountOf("seed-"+seed, "extension-x"))
	}
	for _, other := range []*user.DefaultInfo{
		gardenletOf("<ambiguous>"), gardenletOf(""), gardenletOf("west:x"), gardenletOf("West"),
		{Name: "gardener.cloud:system:seed:west", Groups: []string{user.AllAuthenticated}},
		{Name: "west", Groups: []string{gardenlets}},
		{Name: "gardener.cloud:system:seed:west", Groups: []string{gardenlets, "system:serviceaccounts", "system:serviceaccounts:seed-east"}},
		accountOf("seed-west", "extension-x", gardenlets),
		accountOf("seed-west", "other"), accountOf("seed-west", "extension-"), accountOf("garden", "extension-x"), accountOf("seed-", "extension-x"),
		accountOf("seed-west", "extension-x", "system:serviceaccounts:seed-east"),
		{Name: "system:serviceaccount:seed-west:extension-x", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-east"}},
		{Name: "system:serviceaccount:seed-west:extension-x", Groups: []string{"system:serviceaccounts:seed-west"}},
		{Name: "extension-x", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-west"}},
		{Name: "gardener.cloud:system:shoot:" + project + ":west-one", Groups: []string{selfHosted, user.AllAuthenticated}},
		{Name: "gardener.cloud:gardenadm:shoot:" + project + ":west-one", Groups: []string{selfHosted, user.AllAuthenticated}},
		accountOf(project, "extension-shoot--west-one--x"),
		{Name: "alice", Groups: []string{"system:masters", user.AllAuthenticated}}, {Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}},
	} {
		others = append(others, other)
	}
	return all, others
}

// suffixes follow a Shoot's name in names of objects of its project.
var suffixes = []string{"", ".ca-cluster", ".ca-client", ".ca-kubelet", ".ssh-keypair", ".ssh-keypair.old", ".monitoring", ".kubeconfig"}

// requests returns different requests: one for each user with a role, rule, verb and object, and then random ones.
func (w *world) requests(random *rand.Rand, count int) []*authorizer.AttributesRecord {
	all, others := users()
	var requests []*authorizer.AttributesRecord
	for _, who := range all {
		for _, r := range resources {
			for _, verb := range verbs {
				for _, k := range append(w.names[r.groupResource()], key{}) {
					requests = append(requests, r.request(who, verb, k))
				}
			}
		}
	}
	names := w.candidates()
	for len(requests) < count {
		r, who := pick(random, resources), pick(random, all)
		if random.IntN(5) == 0 {
			who = pick(random, others)
		}
		request := r.request(who, pick(random, verbs), w.object(random, r, names))
		switch random.IntN(8) {
		case 0:
			request.Subresource = pick(random, subresources)
		case 1, 2:
			if len(r.subresources) > 0 {
				request.Subresource = pick(random, r.subresources)
			}
		}
		if request.Verb == "list" || request.Verb == "watch" {
			w.addSelectors(random, request)
		}
		requests = append(requests, request)
	}
	return requests[:count]
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.name}
}

func (r *resource) request(who user.Info, verb string, k key) *authorizer.AttributesRecord {
	if r.kind == "Namespace" {
		k.namespace = k.name
	}
	return &authorizer.AttributesRecord{User: who, Verb: verb, APIGroup: r.group, APIVersion: r.version, Resource: r.name,
		Namespace: k.namespace, Name: k.name, ResourceRequest: true}
}

// object returns an object of the resource, one that could be, or none.
func (w *world) object(random *rand.Rand, r resource, names []key) (k key) {
	if existing := w.names[r.groupResource()]; len(existing) > 0 && random.IntN(3) > 0 {
		k = pick(random, existing)
	} else {
		k = pick(random, names)
	}
	switch random.IntN(12) {
	case 0:
		k.name = ""
	case 1:
		k.name = missing
	}
	switch {
	case !r.namespaced && random.IntN(20) > 0:
		k.namespace = ""
	case random.IntN(8) == 0:
		k.namespace = pick(random, namespaces)
	case random.IntN(12) == 0:
		k.namespace = "seed-" + pick(random, seeds)
	}
	return k
}

// candidates returns names that objects have, could have, or that rules or the graph know.
func (w *world) candidates() (all []key) {
	for _, r := range resources {
		all = append(all, w.names[r.groupResource()]...)
	}
	for _, shoot := range w.names[schema.GroupResource{Group: core, Resource: "shoots"}] {
		for _, suffix := range suffixes {
			all = append(all, key{shoot.namespace, shoot.name + suffix})
		}
	}
	for _, seed := range seeds {
		for _, suffix := range []string{"", "-token", "-account", "-alone"} {
			name := seed + suffix
			account := "gardenlet-bootstrap-" + name
			all = append(all, key{"garden", name}, key{"garden", account}, key{"seed-" + seed, "any"}, key{"gardener-system-seed-lease", name},
				key{"", "gardener.cloud:system:seed-bootstrapper:garden:" + account},
				key{"", "gardener.cloud:system:seed-bootstrapper:" + project + ":" + account},
				key{"kube-system", "bootstrap-token-" + tokenID(name)})
		}
		for _, prefix := range referred {
			all = append(all, key{"garden", prefix + seed}, key{project, prefix + seed})
		}
	}
	return append(all, key{"kube-system", "cluster-identity"}, key{"gardener-system-public", "gardener-info"},
		key{"garden", "gardenlet-leader-election"}, key{"", "gardener.cloud:system:seed-bootstrapper"}, key{"garden", missing})
}

// referred begin the names to which objects of seed.yaml refer.
var referred = []string{"backup-", "dns-", "internal-", "default-", "resource-", "chart-pull-", "chart-ca-", "chart-resource-", "bound-",
	"credentials-", "audit-", "authentication-", "authorization-", "bucket-", "generated-bucket-", "managed-backup-", "managed-dns-",
	"managed-resource-", "account-", "extension-", "ordinary-", "gardenlet-pull-", "gardenlet-ca-", "gardenlet-backup-", "gardenlet-dns-"}

var labelOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.In: metav1.LabelSelectorOpIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// addSelectors adds up to two requirements of each kind. The API server takes the name of a request from its field selector.
func (w *world) addSelectors(random *rand.Rand, r *authorizer.AttributesRecord) {
	for range random.IntN(3) {
		field := fields.Requirement{Field: pick(random, []string{"metadata.name", "metadata.name", "spec.seedName", "spec.seedRef.name", "status.seedName"}),
			Operator: selection.Equals, Value: pick(random, seeds)}
		if random.IntN(6) == 0 {
			field.Operator = notEquals
		}
		if field.Field == "metadata.name" {
			if random.IntN(3) > 0 && r.Name != "" {
				field.Value = r.Name
			}
			if field.Operator == selection.Equals {
				r.Name = pick(random, []string{field.Value, field.Value, field.Value, field.Value, "", r.Name})
			}
		}
		r.FieldSelectorRequirements = append(r.FieldSelectorRequirements, field)
	}
	for range random.IntN(3) {
		operator := pick(random, []selection.Operator{selection.In, selection.In, selection.In, selection.NotIn, selection.Exists, selection.DoesNotExist})
		var values []string
		if operator == selection.In || operator == selection.NotIn {
			values = pick(random, [][]string{{"true"}, {"true"}, {"true"}, {"false"}, {"true", "false"}})
		}
		name := pick(random, []string{"name.seed.gardener.cloud/", "seed.gardener.cloud/"}) + pick(random, seeds)
		if requirement, err := labels.NewRequirement(name, operator, slices.Clone(values)); err == nil {
			r.LabelSelectorRequirements = append(r.LabelSelectorRequirements, *requirement)
		}
	}
}
