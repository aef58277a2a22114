package garden

import (
	"slices"
	"strings"
)

// The document's rules, written down a second time: nothing here is taken from the code that it tests.

// documentRow is a row of "The rules".
type documentRow struct{ resources, free, graph, sub string }

// rulesOfDocument are those for gardenlets.
var rulesOfDocument = []documentRow{
	{"backupbuckets backupentries", "create get list watch", "update patch delete", "status"},
	{"bastions", "create get list watch", "update patch", "status"},
	{"certificatesigningrequests", "create", "get list watch", "seedclient"},
	{"cloudprofiles namespacedcloudprofiles exposureclasses projects namespaces secretbindings credentialsbindings controllerdeployments", "", "get list watch", ""},
	{"clusterrolebindings", "create", "get update patch", ""},
	{"configmaps", "create", "get list watch update patch delete", ""},
	{"controllerinstallations", "get list watch", "update patch", "status"},
	{"controllerregistrations", "get list watch", "", ""},
	{"events events.events.k8s.io", "create patch", "", ""},
	{"gardenlets", "create get list watch", "update patch", "status"},
	{"internalsecrets", "create", "get list watch update patch delete", ""},
	{"leases", "create", "get list watch update patch", ""},
	{"managedseeds", "get list watch", "update patch", "status"},
	{"secrets", "create", "get update patch delete", ""},
	{"seeds", "create get list watch", "update patch delete", "status"},
	{"serviceaccounts", "create", "get update patch", ""},
	{"shoots", "get list watch", "update patch", "status finalizers"},
	{"shootstates", "create", "get list watch update patch delete", ""},
	{"workloadidentities", "", "get list watch create", "token"},
}

// exceptionsForExtensions replace rows for extensions.
var exceptionsForExtensions = []documentRow{
	{"certificatesigningrequests", "", "get list watch", ""},
	{"clusterrolebindings serviceaccounts", "", "get", ""},
	{"leases", "", "", ""},
}

// accessKind is what a user is to the SeedAuthorizer.
type accessKind int

const (
	neither accessKind = iota
	aGardenlet
	anExtension
)

func rowFor(kind accessKind, resource string) documentRow {
	find := func(rows []documentRow) (documentRow, bool) {
		i := slices.IndexFunc(rows, func(row documentRow) bool { return hasWord(row.resources, resource) })
		if i < 0 {
			return documentRow{}, false
		}
		return rows[i], true
	}
	if kind == anExtension {
		if row, found := find(exceptionsForExtensions); found {
			return row
		}
	}
	row, _ := find(rulesOfDocument)
	return row
}

func hasWord(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

// besides is "Besides" of the document.
func besides(kind accessKind, seed string, landscape paths, r accessRequest) bool {
	bootstrapAccount := "gardenlet-bootstrap-" + seed
	inOwnNamespace := r.namespace == "seed-"+seed
	switch r.resource {
	case "namespaces": // Namespace `garden`: `get` is free.
		return r.sub == "" && r.name == "garden" && r.verb == "get"
	case "secrets":
		// Secrets in `seed-<seed>`: get, list, watch free. A gardenlet may delete its bootstrap token.
		return r.sub == "" && (inOwnNamespace && hasWord("get list watch", r.verb) ||
			r.verb == "delete" && r.namespace == "kube-system" && r.name == bootstrapTokenOf("garden", seed))
	case "serviceaccounts":
		// ServiceAccounts in `seed-<seed>`: every verb free (gardenlet), tokens are what they are for.
		// A bootstrap account's token as long as the graph has the account.
		if kind == aGardenlet && r.sub == "token" && r.verb == "create" && r.namespace == "garden" && strings.HasPrefix(r.name, "gardenlet-bootstrap-") {
			return landscape.leads(r.resource, r.namespace, r.name, seed)
		}
		return kind == aGardenlet && (inOwnNamespace && hasWord("token", r.sub) || r.sub == "" && (inOwnNamespace ||
			r.verb == "delete" && r.namespace == "garden" && r.name == bootstrapAccount))
	case "clusterrolebindings":
		return kind == aGardenlet && r.sub == "" && r.verb == "delete" && r.name == "gardener.cloud:system:seed-bootstrapper:garden:"+bootstrapAccount
	case "leases":
		if kind == anExtension { // Leases full access in `seed-<seed>`, and none elsewhere.
			return r.sub == "" && inOwnNamespace && hasWord("create get list watch update patch delete deletecollection", r.verb)
		}
		return r.sub == "" && r.name == "gardenlet-leader-election" && hasWord("create get list watch update", r.verb)
	}
	return false
}

// everybody says what RBAC gives to all who are authenticated.
func everybody(r accessRequest) bool {
	reads := r.sub == "" && hasWord("get list watch", r.verb)
	return reads && (hasWord("cloudprofiles controllerregistrations exposureclasses seeds", r.resource) ||
		r.resource == "configmaps" && r.namespace == "kube-system" && r.name == "cluster-identity")
}

// paths is what the document's rules need to know of the landscape.
type paths interface {
	// leads says whether there is a path from an object to a seed, known whether the graph has a vertex for it.
	leads(resource, namespace, name, seed string) bool
	known(resource, namespace, name string) bool
}

// documentSays decides on a request.
func documentSays(kind accessKind, seed string, landscape paths, r accessRequest) bool {
	if everybody(r) {
		return true
	}
	if kind == neither {
		return false
	}
	if !accessResources[r.resource].Namespaced && r.resource != "namespaces" {
		r.namespace = ""
	}
	row := rowFor(kind, r.resource)
	if r.sub == "" || hasWord(row.sub, r.sub) {
		if hasWord(row.free, r.verb) {
			return true
		}
		if hasWord(row.graph, r.verb) && r.name != "" &&
			(landscape.leads(r.resource, r.namespace, r.name, seed) || r.verb == "delete" && !landscape.known(r.resource, r.namespace, r.name)) {
			return true
		}
	}
	return besides(kind, seed, landscape, r)
}
