package gardenapi

import (
	"slices"
	"strings"
)

// The rules of the document, written down a second time: nothing here is taken from the tested code. Which objects that belong to
// one seed are read is as in Gardener v1.150.

// documentRow is a row of "The rules". within has the verbs for objects in namespaces that lead to the seed.
type documentRow struct{ resources, free, graph, within, sub string }

// rulesOfDocument are the rules for gardenlets.
var rulesOfDocument = []documentRow{
	{"backupbuckets", "create get list watch", "update patch delete", "", "status finalizers"},
	{"backupentries", "get list watch", "update patch delete", "create", "status"},
	{"bastions", "", "get list watch update patch", "create", "status"},
	{"certificatesigningrequests", "create", "get list watch", "", "seedclient"},
	{"cloudprofiles namespacedcloudprofiles exposureclasses projects namespaces secretbindings credentialsbindings controllerdeployments",
		"", "get list watch", "", ""},
	{"clusterrolebindings", "create", "get update patch", "", ""},
	{"configmaps internalsecrets shootstates", "", "get list watch update patch delete", "create", ""},
	{"controllerinstallations", "", "get list watch update patch", "", "status"},
	{"controllerregistrations", "get list watch", "", "", ""},
	{"events events.events.k8s.io", "create patch", "", "", ""},
	{"gardenlets", "", "get list watch update patch", "", "status"},
	{"leases", "", "get list watch update patch", "create", ""},
	{"managedseeds", "", "get list watch update patch", "", "status"},
	{"secrets", "", "get update patch delete", "create", ""},
	{"seeds", "create", "get list watch update patch delete", "", "status"},
	{"serviceaccounts", "", "get update patch", "create", ""},
	{"shoots", "", "get list watch update patch", "", "status finalizers"},
	{"workloadidentities", "", "get list watch create patch", "", "token"},
}

// exceptionsForExtensions replace rows of rulesOfDocument for extensions.
var exceptionsForExtensions = []documentRow{
	{"certificatesigningrequests", "", "get list watch", "", ""},
	{"clusterrolebindings serviceaccounts", "", "get", "", ""},
	{"leases", "", "", "", ""},
	{"shoots", "", "get list watch", "", "status finalizers"},
	{"events events.events.k8s.io", "create patch", "", "", ""},
	{"workloadidentities", "", "get list watch create", "", "token"},
}

// accessKind is the kind of a user in the SeedAuthorizer.
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
	if kind == anExtension { // extensions may only read
		row.free, row.graph, row.within = reads(row.free), reads(row.graph), ""
	}
	return row
}

func reads(verbs string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(verbs), func(verb string) bool { return !hasWord("get list watch", verb) }), " ")
}

func hasWord(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

// besides reports whether a request is allowed by other rules than those of "Implemented Rules".
func besides(kind accessKind, seed string, landscape paths, r accessRequest) bool {
	bootstrapAccount := "gardenlet-bootstrap-" + seed
	inOwnNamespace := r.namespace == "seed-"+seed
	// What may be created in namespaces that every garden has.
	if kind == aGardenlet && r.verb == "create" && r.sub == "" && hasWord(map[string]string{
		"garden":      "secrets configmaps internalsecrets shootstates serviceaccounts backupentries bastions leases",
		"kube-system": "secrets", "gardener-system-shoot-issuer": "secrets", "gardener-system-seed-lease": "leases",
	}[r.namespace], r.resource) {
		return true
	}
	switch r.resource {
	case "gardenlets": // The Gardenlet of the seed is watched before there is one, and Gardenlets are created in `garden` only.
		if kind == aGardenlet && r.verb == "create" && r.namespace == "garden" && (r.sub == "" || r.sub == "status") {
			return true
		}
		return hasWord(" status", r.sub) && r.namespace == "garden" && r.name == seed && hasWord("list watch", r.verb)
	case "managedseeds": // A gardenlet looks whether its seed is a ManagedSeed.
		return (r.sub == "" || r.sub == "status") && r.namespace == "garden" && r.name == seed && hasWord("get list watch", r.verb)
	case "configmaps": // It is read by all users.
		return r.sub == "" && r.namespace == "gardener-system-public" && r.name == "gardener-info" && r.verb == "get"
	case "namespaces": // Namespace `garden`: `get` is free.
		return r.sub == "" && r.name == "garden" && r.verb == "get"
	case "secrets":
		// Secrets in `seed-<seed>`: get, list, watch free. A gardenlet may delete its bootstrap token.
		return r.sub == "" && (inOwnNamespace && hasWord("get list watch", r.verb) ||
			kind == aGardenlet && r.verb == "delete" && r.namespace == "kube-system" && r.name == bootstrapTokenOf("garden", seed))
	case "serviceaccounts":
		// ServiceAccounts in `seed-<seed>`: every verb is free for the gardenlet, and so are tokens. A token of a
		// bootstrap account is allowed as long as the graph has the account.
		if kind == aGardenlet && r.sub == "token" && r.verb == "create" && r.namespace == "garden" &&
			strings.HasPrefix(r.name, "gardenlet-bootstrap-") {
			return landscape.leads(r.resource, r.namespace, r.name, seed)
		}
		return kind == aGardenlet && (inOwnNamespace && hasWord("token", r.sub) || r.sub == "" && (inOwnNamespace ||
			r.verb == "delete" && r.namespace == "garden" && r.name == bootstrapAccount))
	case "clusterrolebindings":
		return kind == aGardenlet && r.sub == "" && r.verb == "delete" &&
			r.name == "gardener.cloud:system:seed-bootstrapper:garden:"+bootstrapAccount
	case "leases":
		if kind == anExtension { // Leases full access in `seed-<seed>`, and none elsewhere.
			return r.sub == "" && inOwnNamespace && hasWord("create get list watch update patch delete deletecollection", r.verb)
		}
		return r.sub == "" && r.name == "gardenlet-leader-election" && hasWord("create get list watch update", r.verb)
	}
	return false
}

// everybody reports whether RBAC allows a request to all authenticated users.
func everybody(r accessRequest) bool {
	reads := r.sub == "" && hasWord("get list watch", r.verb)
	return reads && (hasWord("cloudprofiles controllerregistrations exposureclasses seeds", r.resource) ||
		r.resource == "configmaps" && r.namespace == "kube-system" && r.name == "cluster-identity")
}

// paths is what the rules need to know of the landscape.
type paths interface {
	// leads reports whether there is a path from an object to a seed.
	leads(resource, namespace, name, seed string) bool
}

// documentSays reports whether the document allows a request.
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
		if hasWord(row.graph, r.verb) && r.name != "" && landscape.leads(r.resource, r.namespace, r.name, seed) {
			return true
		}
		if hasWord(row.within, r.verb) && r.namespace != "" && landscape.leads("namespaces", "", r.namespace, seed) {
			return true
		}
	}
	return besides(kind, seed, landscape, r)
}
