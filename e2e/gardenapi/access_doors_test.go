package gardenapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAccessClosedDoors makes the requests of "Where it differs from Gardener" in docs/scoped-access.md, as TestAccessAttacks
// does for those that Gardener refuses too.
func TestAccessClosedDoors(t *testing.T) {
	w := newAccessWorld(t, "cd", suite.DataDir(), config)
	w.settle(t)
	for _, attack := range slices.Concat(doorsOfBackups(w), doorsOfReferences(w), doorsOfIdentities(w), doorsOfShared(w)) {
		t.Run(strings.ReplaceAll(attack.name, " ", "-"), func(t *testing.T) { w.attack(t, attack) })
	}
}

// noOpinion is part of the message for a request that no authorizer allows.
const noOpinion = " cannot "

// doorsOfBackups returns attacks on another seed's bucket, and on its backups there.
func doorsOfBackups(w *accessWorld) []accessAttack {
	a, b, p := w.a.name, w.b.name, w.project()
	backup := reading("secrets", "garden", b+"-backup")
	return []accessAttack{
		{
			name:  "BackupEntry of a shoot of another seed",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				name := w.entryName(t, b+"-2")
				return []attackStep{
					step(creating(ownedByShoot(entryObject(p, name, a, w.a.uid), b+"-2")), denied, foreignObject),
					step(creating(ownedByShoot(entryObject(p, name, a, w.a.uid), a+"-2")), denied, "named"),
					step(creating(entryObject(p, name, a, w.a.uid)), denied, "shoots"),
					step(creating(ownedByShoot(entryObject(p, name, a, w.a.uid), a+"-2")), denied, noOpinion).of(w.extensionA),
				}
			},
		},
		{
			name:  "BackupEntry that its seed never leaves",
			prize: backup,
			given: func(t *testing.T, w *accessWorld) {
				w.create(t, &unstructured.Unstructured{Object: entryObject(p, "cd-left", b, w.b.uid)}, b)
				w.patchStatus(t, "backupentries", p, "cd-left", fmt.Sprintf(`{"status":{"seedName":%q}}`, a))
			},
			steps: func(*testing.T) []attackStep {
				return []attackStep{
					step(patching("backupentries", "status", p, "cd-left", `{"status":{"seedName":%q}}`, a), done, ""),
					step(reading("backupbuckets", "", w.b.uid), done, ""), // all may be read
					step(patching("backupbuckets", "", "", w.b.uid, `{"metadata":{"annotations":{"x":"y"}}}`), denied, noOpinion),
					step(backup, denied, noOpinion),
				}
			},
		},
		{
			name: "BackupBucket named after another Seed",
			given: func(t *testing.T, w *accessWorld) {
				w.copySeed(t, b, "cd-fresh")
			},
			steps: func(t *testing.T) []attackStep {
				uid := w.nameOfSeed(t, "cd-fresh")
				return []attackStep{
					step(creating(bucketObject(uid, a, a+"-backup")), denied, w.a.uid),
					step(creating(bucketObject(uid, a, a+"-backup")), denied, noOpinion).of(w.extensionA),
				}
			},
		},
		{
			name: "BackupEntries of a child and of its own seed",
			given: func(t *testing.T, w *accessWorld) {
				w.copySeed(t, a, a+"-t")
				w.create(t, &unstructured.Unstructured{Object: entryObject(p, "cd-child", a+"-t", w.a.uid)}, "")
				eventually(t, waitTimeout, func(ctx context.Context) error { // until the graph has the entry
					return w.isAuthorized(ctx, w.gardenletA, "update", "backupentries", p, "cd-child")
				})
			},
			steps: func(*testing.T) []attackStep {
				return []attackStep{
					step(deleting("backupentries", p, "cd-child"), denied, foreignObject),
					step(deleting("backupentries", p, "cd-child"), denied, noOpinion).of(w.extensionA),
					step(patching("backupentries", "", p, "cd-child", `{"metadata":{"annotations":{"x":"y"}}}`), denied, foreignObject),
					step(deleting("backupentries", p, a), denied, noOpinion).of(w.extensionA),
				}
			},
		},
	}
}

func (w *accessWorld) copySeed(t *testing.T, from, to string) {
	t.Helper()
	seed, err := w.at("seeds", "").Get(t.Context(), from, metav1.GetOptions{})
	must(t, err)
	copied := &unstructured.Unstructured{Object: withoutStatus(fresh(seed.Object))}
	copied.SetName(to)
	w.create(t, copied, "")
}

// doorsOfReferences returns attacks that refer to Secrets which no administrator has named for the seed.
func doorsOfReferences(w *accessWorld) (attacks []accessAttack) {
	a, b := w.a.name, w.b.name
	const ref = `{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":%q}`
	for _, secret := range []string{b + "-dns", "shoot-service-account-issuer", w.name + "-unreferenced", "future.ssh-keypair"} {
		dns := fmt.Sprintf(`{"spec":{"dns":{"provider":{"type":"local","credentialsRef":`+ref+`}}}}`, secret)
		backup := fmt.Sprintf(`{"spec":{"backup":{"provider":"local","credentialsRef":`+ref+`}}}`, secret)
		attacks = append(attacks, accessAttack{
			name:  "reference to " + secret,
			prize: reading("secrets", "garden", secret),
			steps: func(t *testing.T) []attackStep {
				gardenlet, err := w.at("gardenlets", "garden").Get(t.Context(), a, metav1.GetOptions{})
				must(t, err)
				again := w.remove(t, accessObject{"gardenlets", "garden", a, a})
				t.Cleanup(again)
				made := &unstructured.Unstructured{Object: withoutStatus(fresh(gardenlet.Object))}
				must(t, unstructured.SetNestedField(made.Object, secret, "spec", "config", "seedConfig", "spec", "dns", "provider",
					"credentialsRef", "name"))
				pull := made.DeepCopy()
				must(t, unstructured.SetNestedField(pull.Object, b+"-dns", "spec", "config", "seedConfig", "spec", "backup", "credentialsRef", "name"))
				return []attackStep{
					step(creating(made.Object), denied, "garden/"+secret),
					step(creating(pull.Object), denied, "not named for the seed"),
					step(creating(made.Object), denied, noOpinion).of(w.extensionA),
					step(patching("seeds", "", "", a, "%s", dns), denied, "garden/"+secret),
					step(patching("seeds", "", "", a, "%s", backup), denied, "garden/"+secret),
					step(patching("backupbuckets", "", "", w.a.uid, `{"spec":{"credentialsRef":`+ref+`}}`, secret), denied, secret),
					step(patching("backupbuckets", "", "", w.a.uid, `{"spec":{"credentialsRef":`+ref+`}}`, secret), denied, noOpinion).of(w.extensionA),
				}
			},
		})
	}
	return append(attacks, accessAttack{
		name: "label of a Secret",
		steps: func(*testing.T) []attackStep {
			return []attackStep{
				step(patching("secrets", "", "garden", a+"-dns", `{"metadata":{"labels":{"name.seed.gardener.cloud/%s":"true"}}}`, a),
					denied, "name.seed.gardener.cloud/"+a),
				step(patching("configmaps", "", "garden", a+"-resource", `{"metadata":{"labels":{"name.seed.gardener.cloud/%s":"true"}}}`, a),
					denied, "name.seed.gardener.cloud/"+a),
			}
		},
	}, accessAttack{
		name: "a thousand references",
		steps: func(*testing.T) []attackStep {
			var defaults []string
			for i := range 1000 {
				defaults = append(defaults,
					fmt.Sprintf(`{"type":"local","domain":"d%d.example.com","credentialsRef":`+ref+`}`, i, fmt.Sprintf("many-%d", i)))
			}
			return []attackStep{step(patching("seeds", "", "", a, `{"spec":{"dns":{"defaults":[%s]}}}`, strings.Join(defaults, ",")),
				denied, "at most 50")}
		},
	})
}

// doorsOfIdentities returns attacks that lead to another identity, or to the rights of another one.
func doorsOfIdentities(w *accessWorld) []accessAttack {
	a, b, p := w.a.name, w.b.name, w.project()
	return []accessAttack{
		{
			name: "certificate of its seed's gardenlet for an extension",
			steps: func(t *testing.T) []attackStep {
				gardenlet, err := w.at("gardenlets", "garden").Get(t.Context(), a, metav1.GetOptions{})
				must(t, err)
				t.Cleanup(w.remove(t, accessObject{"gardenlets", "garden", a, a}))
				renewing := &unstructured.Unstructured{Object: withoutStatus(fresh(gardenlet.Object))}
				renewing.SetAnnotations(map[string]string{"gardener.cloud/operation": "renew-kubeconfig"})
				token := tokenObject(bootstrapTokenOf("garden", a), "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/"+a)
				return []attackStep{
					step(creating(renewing.Object), denied, "renew-kubeconfig"),
					step(creating(renewing.Object), denied, noOpinion).of(w.extensionA),
					step(patching("seeds", "status", "", a, `{"status":{"clientCertificateExpirationTimestamp":"2020-01-01T00:00:00Z"}}`),
						denied, noOpinion).of(w.extensionA),
					step(patching("gardenlets", "status", "garden", a, `{}`), denied, noOpinion).of(w.extensionA),
					step(creating(token), denied, noOpinion).of(w.extensionA),
					step(creating(requestObject(t, "cd-x", a)), denied, noOpinion).of(w.extensionA),
				}
			},
		},
		{
			name: "labels of a ServiceAccount",
			steps: func(*testing.T) []attackStep {
				account := func(name string, labels map[string]any) map[string]any {
					object := meta("v1", "ServiceAccount", "seed-"+a, name, nil)
					object["metadata"].(map[string]any)["labels"] = labels
					return object
				}
				const registration = "controllerregistration.core.gardener.cloud/name"
				return []attackStep{
					step(creating(account("extension-"+a, map[string]any{registration: w.name})), made, ""), // as it is installed
					step(creating(account("extension-more", map[string]any{registration: w.name})), denied, "controllerinstallations"),
					step(creating(account("extension-"+b, map[string]any{registration: w.name})), denied, b),
					step(creating(account("extension-more", map[string]any{"selected": "true"})), denied, "selected"),
					step(patching("serviceaccounts", "", "seed-"+a, "extension-"+a, `{"metadata":{"labels":{%q:"other"}}}`, registration),
						denied, "other"),
					step(patching("serviceaccounts", "", "seed-"+a, "other", `{"metadata":{"labels":{%q:%q}}}`, registration, w.name),
						denied, foreignObject),
				}
			},
		},
		{
			name: "UID of another Shoot",
			steps: func(*testing.T) []attackStep {
				return []attackStep{step(patching("shoots", "status", p, a, `{"status":{"uid":%q}}`, w.b.shootUID), denied, "status.uid must be")}
			},
		},
		{
			name: "owner of a Secret and a ConfigMap",
			steps: func(*testing.T) []attackStep {
				const owned = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"gone","uid":"gone"}]}}`
				return []attackStep{
					step(patching("secrets", "", "garden", a+"-dns", owned), denied, ""),
					step(patching("configmaps", "", "garden", a+"-resource", owned), denied, ""),
				}
			},
		},
		{
			name: "context of a WorkloadIdentity's token",
			steps: func(*testing.T) []attackStep {
				token := func(kind, namespace, name string) accessRequest {
					about := map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "name": name, "uid": "1"}
					if namespace != "" {
						about["namespace"] = namespace
					}
					return accessRequest{verb: "create", resource: "workloadidentities", sub: "token", namespace: p, name: a, forReal: true,
						body: meta("security.gardener.cloud/v1alpha1", "TokenRequest", p, a, map[string]any{"spec": map[string]any{"contextObject": about}})}
				}
				own := token("Shoot", p, a)
				own.body.(map[string]any)["spec"].(map[string]any)["contextObject"].(map[string]any)["uid"] = w.a.shootUID
				return []attackStep{
					step(own, made, ""),
					step(token("Shoot", p, b), denied, foreignObject),
					step(token("Seed", "", b), denied, foreignObject),
					step(token("BackupBucket", "", w.b.uid), denied, foreignObject),
					step(token("BackupEntry", p, b), denied, foreignObject),
					step(token("Shoot", p, b), denied, foreignObject).of(w.extensionA),
				}
			},
		},
	}
}

// doorsOfShared returns attacks on objects that several seeds use.
func doorsOfShared(w *accessWorld) []accessAttack {
	a, b := w.a.name, w.b.name
	return []accessAttack{{
		name: "backup Secret of a ManagedSeed that another seed uses",
		given: func(t *testing.T, w *accessWorld) {
			w.create(t, &unstructured.Unstructured{Object: bucketObject("cd-shared", b, a+"-template")}, b)
		},
		steps: func(*testing.T) []attackStep {
			return []attackStep{
				step(patching("secrets", "", "garden", a+"-template", `{"stringData":{"key":"mine"}}`), denied, foreignObject),
				step(deleting("secrets", "garden", a+"-template"), denied, foreignObject),
				step(patching("secrets", "", "garden", a+"-template", `{"stringData":{"key":"mine"}}`), denied, noOpinion).of(w.extensionA),
				step(deleting("secrets", "garden", a+"-template"), denied, noOpinion).of(w.extensionA),
			}
		},
	}}
}

// TestAccessTellsNothing compares the answers for objects of others with those for objects that do not exist.
func TestAccessTellsNothing(t *testing.T) {
	w := newAccessWorld(t, "tn", suite.DataDir(), config)
	w.settle(t)
	p := w.project()
	b := w.b.name
	for _, pair := range []struct{ resource, namespace, there, absent string }{
		{"secrets", p, "unreferenced", "absent"}, {"secrets", "garden", b + "-dns", "absent"},
		{"secrets", p, b + ".ssh-keypair", b + "-2.ssh-keypair"},
		{"secrets", "kube-system", bootstrapTokenOf("garden", b), bootstrapTokenOf("garden", b+"-s")},
		{"secrets", "seed-" + b, "inside", "absent"},
		{"configmaps", p, "unreferenced", "absent"}, {"configmaps", p, b + "-audit", "absent"},
		{"configmaps", p, b + ".ca-cluster", b + "-2.ca-cluster"},
		{"configmaps", "seed-" + b, "inside", "absent"},
		{"serviceaccounts", p, "extension-elsewhere", "absent"}, {"serviceaccounts", "seed-" + b, "other", "absent"},
		{"serviceaccounts", "garden", "gardenlet-bootstrap-" + b + "-s", "gardenlet-bootstrap-" + b + "-t"},
		{"internalsecrets", p, "unreferenced", "absent"}, {"internalsecrets", p, b + ".ca-client", b + "-2.ca-client"},
		{"shootstates", p, b, b + "-2"},
	} {
		for _, who := range []*accessUser{w.gardenletA, w.extensionA} {
			w.tellsNothing(t, who, accessObject{resource: pair.resource, namespace: pair.namespace, name: pair.there}, pair.absent)
		}
	}
	// Creations do not tell whether a namespace exists, except those of Events, which may be created in all
	// namespaces.
	event := func(namespace string) accessRequest {
		return accessRequest{verb: "create", resource: "events", namespace: namespace, body: meta("v1", "Event", namespace, "x", map[string]any{
			"involvedObject": map[string]any{"kind": "Seed", "name": "x", "namespace": namespace}, "reason": "x"})}
	}
	if there, not := w.gardenletA.must(t, event("default")), w.gardenletA.must(t, event("absents")); there.Code != made ||
		not.Code != http.StatusNotFound {
		t.Errorf("create events in a namespace of others: %s; in one that does not exist: %s", there, not)
	}
	for _, resource := range []string{"secrets", "configmaps", "serviceaccounts"} {
		request := func(namespace string) accessRequest {
			return accessRequest{verb: "create", resource: resource, namespace: namespace,
				body: map[string]any{"metadata": map[string]any{"name": "x"}}}
		}
		there, not := w.gardenletA.must(t, request("default")), w.gardenletA.must(t, request("absents"))
		if there.Code != not.Code || strings.ReplaceAll(there.Message, "default", "absents") != not.Message {
			t.Errorf("create %s in a namespace of others: %s; in one that does not exist: %s", resource, there, not)
		}
	}
}

func (w *accessWorld) tellsNothing(t *testing.T, who *accessUser, o accessObject, absent string) {
	t.Helper()
	for _, verb := range []string{"create", "get", "update", "patch", "delete", "watch"} {
		request := func(name string) accessRequest {
			r := accessRequest{verb: verb, resource: o.resource, namespace: o.namespace, name: name, body: map[string]any{}}
			if verb == "create" || verb == "update" {
				r.body = map[string]any{"metadata": map[string]any{"name": name}}
			}
			if verb == "create" {
				r.name = ""
			}
			if verb == "get" || verb == "delete" || verb == "watch" {
				r.body = nil
			}
			return r
		}
		there, not := who.must(t, request(o.name)), who.must(t, request(absent))
		if there.Code != http.StatusForbidden || not.Code != there.Code ||
			w.anonymous(there.Message, o.name) != w.anonymous(not.Message, absent) {
			t.Errorf("%s: %s %s %s/%s: %s; if it is absent: %s", who.Name, verb, o.resource, o.namespace, o.name, there, not)
		}
		mayThere, whyThere, err := who.may(t.Context(), request(o.name))
		must(t, err)
		mayNot, whyNot, err := who.may(t.Context(), request(absent))
		must(t, err)
		if mayThere != mayNot || w.anonymous(whyThere, o.name) != w.anonymous(whyNot, absent) {
			t.Errorf("%s: may %s %s %s/%s: %t, %s; if it is absent: %t, %s", who.Name, verb, o.resource, o.namespace, o.name,
				mayThere, whyThere, mayNot, whyNot)
		}
	}
}

// anonymous replaces the name of an object in an answer, and the names that are part of it.
func (w *accessWorld) anonymous(text, name string) string {
	text = strings.ReplaceAll(text, name, "NAME")
	for _, shoot := range []string{w.b.name + "-2", w.b.name + "-s", w.b.name + "-t", w.b.name} {
		text = strings.ReplaceAll(text, shoot, "B")
	}
	return text
}

// TestAccessOfNewEntries tries to delete what another seed has just created.
func TestAccessOfNewEntries(t *testing.T) {
	w := newAccessWorld(t, "ne", suite.DataDir(), config)
	w.settle(t)
	for i := range 50 {
		name := fmt.Sprintf("new-%d", i)
		_, err := w.at("backupentries", w.project()).Create(
			t.Context(), &unstructured.Unstructured{Object: entryObject(w.project(), name, w.b.name, w.b.uid)}, created)
		must(t, err)
		for _, who := range []*accessUser{w.gardenletA, w.extensionA} {
			if a := who.must(t, deleting("backupentries", w.project(), name)); a.Code != http.StatusForbidden {
				t.Fatalf("%s: %s", who.Name, a)
			}
		}
	}
}
