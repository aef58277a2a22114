package accesscheck

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// As is the identity of an attacker.
type As string

// The attackers: the gardenlet of the throwaway seed, an extension on it, and any stack.
const (
	Gardenlet As = "gardenlet"
	Extension As = "extension"
	Stack     As = "stack"
)

// need is a precondition of an attack.
type need struct {
	met     func(*world) bool
	without string
}

var (
	ownSeed = need{func(w *world) bool { return w.live },
		"needs a throwaway seed, which only a landscape of gardenlite gets"}
	victimShoot = need{func(w *world) bool { return w.shoot.name != "" && w.shootID != "" },
		"needs a Shoot on the seed that is attacked"}
	victimEntry = need{func(w *world) bool { return w.victimEntry.name != "" },
		"needs a BackupEntry of the seed that is attacked"}
	victimBucket = need{func(w *world) bool { return w.victimBucket != "" },
		"needs the BackupBucket of the seed that is attacked"}
	victimBackup = need{func(w *world) bool { return w.backup.name != "" },
		"needs a Secret with backup credentials of the seed that is attacked"}
	readsOfSeed = need{func(w *world) bool { return !w.allReads },
		"gardenlets and extensions may read these objects of all seeds here"}
	managedSeed = need{func(*world) bool { return false },
		"needs a ManagedSeed that shares credentials with another seed"}
)

// attack is a row of the catalogue: either one request that has to be refused, or a function that tries the attack.
type attack struct {
	kind int // number in docs/scoped-access.md; 0 for attacks of no particular kind
	name string
	as   As
	// says is a part of the message of a refusal for the right reason.
	says  string
	needs []need

	request func(*world) *request
	try     func(context.Context, *runner) (Result, error)
	// control marks a request that has to be allowed: if it is not, refusals prove nothing.
	control bool
}

const (
	noOpinion = " cannot "          // no authorizer allows it
	foreign   = "does not belong"   // SeedRestriction
	notNamed  = "not named for the" // SeedRestriction, of references
)

func needs(all ...need) []need { return all }

// catalogue returns the attacks in the order in which they are tried. The last one deletes the throwaway seed.
func catalogue() []attack {
	var all []attack
	for _, group := range [][]attack{basics, reads(), backups, references, identities, permissions, answers, deletions,
		tokens} {
		all = append(all, group...)
	}
	return all
}

func secret(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/secrets/" + name
}
func entry(p place) string {
	return core + "/namespaces/" + p.namespace + "/backupentries/" + p.name
}

var basics = []attack{
	{name: "list its Shoots (control: has to work)", as: Gardenlet, control: true,
		request: func(w *world) *request { return shootsOf(w.seed) }},
	{name: "list its Shoots (control: has to work)", as: Extension, control: true,
		request: func(w *world) *request { return shootsOf(w.seed) }},
	{name: "read its own credentials (control: has to work)", as: Gardenlet, control: true, needs: needs(ownSeed),
		request: func(w *world) *request { return get(secret(garden, w.seed)) }},
	{name: "list all Secrets", as: Gardenlet,
		says: noOpinion, request: func(*world) *request { return get("/api/v1/secrets?limit=1") }},
	{name: "list all Secrets", as: Extension,
		says: noOpinion, request: func(*world) *request { return get("/api/v1/secrets?limit=1") }},
	{name: "list the Secrets of another seed's namespace", as: Gardenlet, says: noOpinion,
		request: func(w *world) *request {
			return get("/api/v1/namespaces/" + w.victimNamespace() + "/secrets?limit=1")
		}},
	{name: "list the Secrets of another seed's namespace", as: Extension, says: noOpinion,
		request: func(w *world) *request {
			return get("/api/v1/namespaces/" + w.victimNamespace() + "/secrets?limit=1")
		}},
	{name: "read the SSH key of another seed's Shoot", as: Gardenlet, says: noOpinion, needs: needs(victimShoot),
		request: func(w *world) *request { return get(secret(w.shoot.namespace, w.shoot.name+".ssh-keypair")) }},
	{name: "take over another seed's Shoot", as: Gardenlet, says: noOpinion, needs: needs(victimShoot),
		request: func(w *world) *request {
			status := core + "/namespaces/" + w.shoot.namespace + "/shoots/" + w.shoot.name + "/status"
			return patch(status, object{"status": object{"seedName": w.seed}})
		}},
}

// reads returns the attempts to read what belongs to other seeds.
func reads() (all []attack) {
	for _, as := range []As{Gardenlet, Extension} {
		add := func(name string, request func(*world) *request, besides ...need) {
			all = append(all, attack{kind: 13, name: name, as: as, says: noOpinion, needs: append(besides, readsOfSeed),
				request: request})
		}
		add("read another seed's Shoot", func(w *world) *request {
			return get(core + "/namespaces/" + w.shoot.namespace + "/shoots/" + w.shoot.name)
		}, victimShoot)
		// All users may read Seeds.
		for _, path := range []string{core + "/shoots", core + "/controllerinstallations", seedmgmt + "/managedseeds",
			seedmgmt + "/gardenlets", "/apis/operations.gardener.cloud/v1alpha1/bastions"} {
			resource := path[strings.LastIndexByte(path, '/')+1:]
			add("list all "+resource, func(*world) *request { return get(path + "?limit=1") })
		}
		// The selectors but the last are true for objects without the label of the own seed.
		for _, selector := range []string{"LABEL!=false", "LABEL notin (x)", "!x", "LABEL in (true,false)"} {
			add("list other seeds' Shoots with the selector "+selector, func(w *world) *request {
				selected := strings.ReplaceAll(selector, "LABEL", constants.LabelPrefixSeedName+w.seed)
				return get(core + "/shoots?limit=1&labelSelector=" + url.QueryEscape(selected))
			})
		}
		add("list the Shoots of another seed", func(w *world) *request { return shootsOf(w.victim) })
	}
	return all
}

// shootsOf lists Shoots by the label that the API server maintains for their seeds.
func shootsOf(seed string) *request {
	return get(core + "/shoots?limit=1&labelSelector=" + url.QueryEscape(constants.LabelPrefixSeedName+seed+"=true"))
}

var backups = []attack{
	{kind: 1, name: "read another seed's backup credentials", as: Gardenlet,
		says: noOpinion, needs: needs(victimBackup),
		request: func(w *world) *request { return get(secret(w.backup.namespace, w.backup.name)) }},
	{kind: 1, name: "read another seed's backup credentials", as: Extension,
		says: noOpinion, needs: needs(victimBackup),
		request: func(w *world) *request { return get(secret(w.backup.namespace, w.backup.name)) }},
	{kind: 1, name: "change another seed's BackupBucket", as: Gardenlet,
		says: noOpinion, needs: needs(victimBucket),
		request: func(w *world) *request {
			return patch(core+"/backupbuckets/"+w.victimBucket, object{"metadata": object{"annotations": object{label: ""}}})
		}},
	{kind: 1, name: "create the BackupEntry of another seed's Shoot", as: Gardenlet,
		says: noOpinion, needs: needs(victimShoot),
		request: func(w *world) *request {
			return post(core+"/namespaces/"+w.shoot.namespace+"/backupentries", w.entryOfShoot())
		}},
	{kind: 1, name: "create a BackupEntry without a Shoot", as: Gardenlet,
		request: func(w *world) *request {
			name := "shoot--check--x--" + newUID()
			return post(core+"/namespaces/garden/backupentries", entryObject(garden, name, w.seed, w.bucket))
		}},
	{kind: 1, name: "report another seed's BackupEntry as its own", as: Gardenlet,
		says: noOpinion, needs: needs(victimEntry),
		request: func(w *world) *request {
			return patch(entry(w.victimEntry)+"/status", object{"status": object{"seedName": w.seed}})
		}},
	{kind: 1, name: "point its BackupEntry to another seed's bucket", as: Gardenlet,
		says: "BackupBucket", needs: needs(ownSeed, victimBucket),
		request: func(w *world) *request {
			return patch(entry(place{garden, w.seed}), object{"spec": object{"bucketName": w.victimBucket}})
		}},
	{kind: 8, name: "let the garbage collector delete its BackupEntry", as: Gardenlet,
		says: "to add as an owner of", needs: needs(ownSeed),
		request: func(w *world) *request {
			owner := object{"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "none"}
			return patch(entry(place{garden, w.seed}), object{"metadata": object{"ownerReferences": []any{owner}}})
		}},
	{kind: 8, name: "confirm the deletion of its Seed", as: Gardenlet, says: "to confirm", needs: needs(ownSeed),
		request: func(w *world) *request {
			return patch(w.seedPath(), object{"metadata": object{"annotations": object{constants.ConfirmationDeletion: "true"}}})
		}},
	{kind: 4, name: "create a BackupBucket with the name of another Seed's", as: Gardenlet,
		says: "named", needs: needs(ownSeed),
		request: func(w *world) *request { return post(core+"/backupbuckets", w.bucketObject(newUID())) }},
	{kind: 4, name: "create a BackupBucket with the name of another Seed's", as: Extension, says: noOpinion,
		request: func(w *world) *request { return post(core+"/backupbuckets", w.bucketObject(newUID())) }},
	{kind: 8, name: "change another seed's backup credentials", as: Gardenlet,
		says: noOpinion, needs: needs(victimBackup),
		request: func(w *world) *request {
			change := object{"metadata": object{"annotations": object{label: ""}}}
			return patch(secret(w.backup.namespace, w.backup.name), change)
		}},
	{kind: 8, name: "delete another seed's backup credentials", as: Gardenlet,
		says: noOpinion, needs: needs(victimBackup),
		request: func(w *world) *request { return remove(secret(w.backup.namespace, w.backup.name)) }},
	{kind: 8, name: "change shared credentials as the parent of a ManagedSeed", as: Gardenlet,
		needs: needs(managedSeed)},
}

// dns returns a patch of a Seed that refers to a Secret with credentials for DNS.
func (w *world) dns(secret string) object {
	provider := object{"type": w.provider.Type, "credentialsRef": secretRef(secret)}
	return object{"spec": object{"dns": object{"provider": provider}}}
}

func (w *world) seedPath() string { return core + "/seeds/" + w.seed }

const future = "future.ssh-keypair" // no such Secret exists in the namespace garden

var references = []attack{
	{kind: 2, name: "create a Gardenlet that refers to another seed's credentials", as: Gardenlet,
		says: notNamed, needs: needs(victimBackup),
		request: func(w *world) *request {
			return post(seedmgmt+"/namespaces/garden/gardenlets", w.gardenletObject(secretRef(w.backup.name)))
		}},
	{kind: 2, name: "create a Gardenlet that refers to a Secret to come", as: Gardenlet, says: notNamed,
		request: func(w *world) *request {
			return post(seedmgmt+"/namespaces/garden/gardenlets", w.gardenletObject(secretRef(future)))
		}},
	{kind: 2, name: "register a Seed that refers to another seed's credentials", as: Gardenlet,
		says: notNamed, needs: needs(victimBackup),
		request: func(w *world) *request {
			if w.live {
				return patch(w.seedPath(), w.dns(w.backup.name))
			}
			return post(core+"/seeds", w.seedObject(secretRef(w.backup.name), nil))
		}},
	{kind: 2, name: "let its Seed refer to a Secret to come", as: Gardenlet, says: notNamed, needs: needs(ownSeed),
		request: func(w *world) *request { return patch(w.seedPath(), w.dns(future)) }},
	{kind: 2, name: "let its BackupBucket refer to another seed's credentials", as: Gardenlet,
		says: notNamed, needs: needs(ownSeed, victimBackup),
		request: func(w *world) *request {
			return patch(core+"/backupbuckets/"+w.bucket, object{"spec": object{"credentialsRef": secretRef(w.backup.name)}})
		}},
	{kind: 2, name: "let its BackupBucket refer to another seed's credentials", as: Extension,
		says: noOpinion, needs: needs(ownSeed, victimBackup),
		request: func(w *world) *request {
			return patch(core+"/backupbuckets/"+w.bucket, object{"spec": object{"credentialsRef": secretRef(w.backup.name)}})
		}},
	{kind: 2, name: "name a Secret for itself by a label", as: Gardenlet,
		says: "name.seed.gardener.cloud", needs: needs(ownSeed),
		request: func(w *world) *request {
			labels := object{"name.seed.gardener.cloud/" + w.seed: "true"}
			return patch(secret(garden, w.seed), object{"metadata": object{"labels": labels}})
		}},
	{kind: 11, name: "let its Seed refer to 1000 Secrets", as: Gardenlet,
		says: "at most 50", needs: needs(ownSeed),
		request: func(w *world) *request {
			var defaults []any
			for i := range 1000 {
				defaults = append(defaults, object{"type": w.provider.Type, "domain": fmt.Sprintf("d%d.example.com", i),
					"credentialsRef": secretRef(fmt.Sprintf("many-%d", i))})
			}
			return patch(w.seedPath(), object{"spec": object{"dns": object{"defaults": defaults}}})
		}},
}

func renewing(w *world) *request {
	renews := annotated(w.gardenletObject(w.ref()), "gardener.cloud/operation", "renew-kubeconfig")
	return post(seedmgmt+"/namespaces/garden/gardenlets", renews)
}

func bootstrapToken(w *world) *request {
	return post("/api/v1/namespaces/kube-system/secrets", tokenObject(bootstraprules.TokenSecret(garden, w.seed), w.seed))
}

// certificateFor returns a request for the client certificate of a seed's gardenlet. The key is discarded.
func certificateFor(seed func(*world) string) func(*world) *request {
	return func(w *world) *request {
		o, _, err := csrObject(w.seed+"-attack", seed(w))
		if err != nil {
			return nil
		}
		return post(csrs, o)
	}
}

var identities = []attack{
	{kind: 3, name: "ask for the certificate of its seed's gardenlet", as: Extension, says: noOpinion,
		request: certificateFor(func(w *world) string { return w.seed })},
	{kind: 3, name: "ask for the certificate of another seed's gardenlet", as: Gardenlet, says: foreign,
		request: certificateFor(func(w *world) string { return w.victim })},
	{kind: 3, name: "create a Gardenlet that asks for a new kubeconfig", as: Gardenlet,
		says: "renew-kubeconfig", request: renewing},
	{kind: 3, name: "create a Gardenlet that asks for a new kubeconfig", as: Extension,
		says: noOpinion, request: renewing},
	{kind: 3, name: "let the certificate in its Seed's status expire", as: Extension, says: noOpinion,
		request: func(w *world) *request {
			expired := object{"clientCertificateExpirationTimestamp": "2020-01-01T00:00:00Z"}
			return patch(w.seedPath()+"/status", object{"status": expired})
		}},
	{kind: 3, name: "create a bootstrap token for its seed", as: Gardenlet, request: bootstrapToken},
	{kind: 3, name: "create a bootstrap token for its seed", as: Extension,
		says: noOpinion, request: bootstrapToken},
	{kind: 9, name: "create a ServiceAccount with labels of its choice", as: Gardenlet,
		says: "selected", needs: needs(ownSeed),
		request: func(w *world) *request {
			return post("/api/v1/namespaces/"+w.namespace()+"/serviceaccounts", w.accountObject())
		}},
	{kind: 9, name: "create a ServiceAccount", as: Extension, says: noOpinion, needs: needs(ownSeed),
		request: func(w *world) *request {
			return post("/api/v1/namespaces/"+w.namespace()+"/serviceaccounts", w.accountObject())
		}},
	{kind: 9, name: "ask for a token of another seed's ServiceAccount", as: Gardenlet, says: noOpinion,
		request: func(w *world) *request {
			return post("/api/v1/namespaces/"+w.victimNamespace()+"/serviceaccounts/default/token",
				meta("authentication.k8s.io/v1", "TokenRequest", w.victimNamespace(), "default", object{"spec": object{}}))
		}},
}

// answers are attacks that compare the answers for an existing object and for one that does not exist.
var answers = []attack{
	{kind: 5, name: "learn by reading whether a Secret exists", as: Gardenlet,
		needs: needs(victimBackup), try: tells(Gardenlet, func(w *world) (string, string, pair) {
			return w.backup.name, "absent", func(name string) *request { return get(secret(garden, name)) }
		})},
	{kind: 5, name: "learn by reading whether a Secret exists", as: Extension,
		needs: needs(victimBackup), try: tells(Extension, func(w *world) (string, string, pair) {
			return w.backup.name, "absent", func(name string) *request { return get(secret(garden, name)) }
		})},
	{kind: 5, name: "learn by changing whether a Secret exists", as: Gardenlet,
		needs: needs(victimBackup), try: tells(Gardenlet, func(w *world) (string, string, pair) {
			return w.backup.name, "absent", func(name string) *request { return patch(secret(garden, name), object{}) }
		})},
	{kind: 5, name: "learn by deleting whether a Secret exists", as: Gardenlet,
		needs: needs(victimBackup), try: tells(Gardenlet, func(w *world) (string, string, pair) {
			return w.backup.name, "absent", func(name string) *request { return remove(secret(garden, name)) }
		})},
	{kind: 5, name: "learn by watching whether a ConfigMap exists", as: Gardenlet,
		try: tells(Gardenlet, func(*world) (string, string, pair) {
			return "extension-apiserver-authentication", "absent", func(name string) *request {
				return get(named("/api/v1/namespaces/kube-system/configmaps", name) + "&watch=true&timeoutSeconds=1")
			}
		})},
	{kind: 5, name: "learn by creating whether a Secret exists", as: Gardenlet,
		needs: needs(victimBackup), try: tells(Gardenlet, func(w *world) (string, string, pair) {
			return w.backup.name, "absent", func(name string) *request {
				return post(inGarden+"/secrets", meta("v1", "Secret", garden, name, nil))
			}
		})},
	{kind: 5, name: "learn by an access review whether a Secret exists", as: Gardenlet,
		needs: needs(victimBackup), try: tells(Gardenlet, func(w *world) (string, string, pair) {
			return w.backup.name, "absent", func(name string) *request {
				return review("delete", "", "secrets", "", garden, name)
			}
		})},
	{kind: 5, name: "learn by creating whether a ConfigMap exists", as: Gardenlet,
		try: tells(Gardenlet, func(*world) (string, string, pair) {
			return "extension-apiserver-authentication", "absent", func(name string) *request {
				return post("/api/v1/namespaces/kube-system/configmaps", meta("v1", "ConfigMap", "kube-system", name, nil))
			}
		})},
	{kind: 5, name: "learn by creating whether a namespace exists", as: Gardenlet,
		try: tells(Gardenlet, func(w *world) (string, string, pair) {
			return w.victimNamespace(), "seed-absent", func(namespace string) *request {
				return post("/api/v1/namespaces/"+namespace+"/configmaps", meta("v1", "ConfigMap", namespace, "x", nil))
			}
		})},
}

var deletions = []attack{
	{kind: 6, name: "delete another seed's BackupEntry", as: Gardenlet, says: noOpinion, needs: needs(victimEntry),
		request: func(w *world) *request { return remove(entry(w.victimEntry)) }},
	{kind: 6, name: "delete a BackupEntry that the graph does not have", as: Gardenlet, says: noOpinion,
		request: func(w *world) *request { return remove(entry(place{garden, "absent-" + w.seed})) }},
	{kind: 6, name: "delete a BackupEntry of its seed", as: Extension, says: noOpinion, needs: needs(ownSeed),
		request: func(w *world) *request { return remove(entry(place{garden, w.seed})) }},
	{kind: 6, name: "delete another seed's BackupBucket", as: Gardenlet,
		says: noOpinion, needs: needs(victimBucket),
		request: func(w *world) *request { return remove(core + "/backupbuckets/" + w.victimBucket) }},
	{kind: 6, name: "delete another Seed", as: Gardenlet, says: noOpinion,
		request: func(w *world) *request { return remove(core + "/seeds/" + w.victim) }},
}

var tokens = []attack{
	{kind: 10, name: "get a token of its WorkloadIdentity for another Seed", as: Gardenlet,
		says: foreign, needs: needs(ownSeed),
		request: func(w *world) *request { return w.identityToken("Seed", place{"", w.victim}, "1") }},
	{kind: 10, name: "get a token of its WorkloadIdentity for another seed's Shoot", as: Gardenlet,
		says: foreign, needs: needs(ownSeed, victimShoot),
		request: func(w *world) *request { return w.identityToken("Shoot", w.shoot, w.shootUID) }},
	{kind: 10, name: "get a token of its WorkloadIdentity for another Seed", as: Extension,
		says: foreign, needs: needs(ownSeed),
		request: func(w *world) *request { return w.identityToken("Seed", place{"", w.victim}, "1") }},
	{kind: 7, name: "watch the CA key of another seed's Shoot", as: Gardenlet,
		says: noOpinion, needs: needs(victimShoot),
		request: func(w *world) *request {
			all := core + "/namespaces/" + w.shoot.namespace + "/internalsecrets"
			return get(named(all, w.shoot.name+".ca-client") + "&watch=true&timeoutSeconds=1")
		}},
	{kind: 7, name: "keep a watch open that its seed has no path to any more", as: Gardenlet,
		needs: needs(ownSeed), try: keepWatch},
	{kind: 12, name: "use its certificate after its Seed is deleted", as: Gardenlet,
		needs: needs(ownSeed), try: outliveSeed},
}

// identity returns the user and the groups of an attacker.
func (w *world) identity(as As) (user string, groups []string) {
	if as == Extension {
		account := "system:serviceaccount:" + w.namespace() + ":" + extension
		return account, []string{"system:serviceaccounts", "system:serviceaccounts:" + w.namespace()}
	}
	return constants.SeedUserNamePrefix + w.seed, []string{constants.SeedsGroup}
}
