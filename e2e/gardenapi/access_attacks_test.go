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

// attackStep is a request of an attack.
type attackStep struct {
	accessRequest
	by   *accessUser // the gardenlet of a, if nil
	want int         // the HTTP status
	says string      // in a refusal
}

// accessAttack is a sequence of requests by which an attacker wants the prize.
type accessAttack struct {
	name  string
	given func(*testing.T, *accessWorld) // what is there beforehand
	prize accessRequest                  // what must not be allowed
	steps func(*testing.T) []attackStep
}

const (
	done    = http.StatusOK
	made    = http.StatusCreated
	denied  = http.StatusForbidden
	invalid = http.StatusUnprocessableEntity // what the API forbids to all users
)

func reading(resource, namespace, name string) accessRequest {
	return accessRequest{verb: "get", resource: resource, namespace: namespace, name: name}
}

func patching(resource, sub, namespace, name, format string, args ...any) accessRequest {
	return accessRequest{verb: "patch", resource: resource, sub: sub, namespace: namespace, name: name,
		body: rawJSON(fmt.Sprintf(format, args...)), forReal: true}
}

func creating(object map[string]any) accessRequest {
	obj := &unstructured.Unstructured{Object: object}
	return accessRequest{verb: "create", resource: resourceOf(obj.GetKind()), namespace: obj.GetNamespace(), body: object, forReal: true}
}

func deleting(resource, namespace, name string) accessRequest {
	return accessRequest{verb: "delete", resource: resource, namespace: namespace, name: name, forReal: true}
}

// rawJSON is a body that is sent as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func step(r accessRequest, want int, says string) attackStep {
	return attackStep{accessRequest: r, want: want, says: says}
}

func (s attackStep) of(who *accessUser) attackStep {
	s.by = who
	return s
}

// TestAccessAttacks makes the attacks of "Closing holes": each is a sequence of requests, none of them a dry run, of
// a gardenlet or an extension of seed a that wants an object of seed b. The first requests may succeed; the last one
// is denied, and the prize cannot be read, neither before nor afterwards.
func TestAccessAttacks(t *testing.T) {
	w := newAccessWorld(t, "at", suite.DataDir(), config)
	w.settle(t)
	attacks := slices.Concat(attacksThroughReferences(w), attacksThroughReferencesOfShoots(w), attacksOnIdentities(w), attacksOnOthers(w))
	for _, attack := range attacks {
		t.Run(strings.ReplaceAll(attack.name, " ", "-"), func(t *testing.T) { w.attack(t, attack) })
	}
	if len(attacks) < 10 {
		t.Errorf("%d attacks", len(attacks))
	}
}

func (w *accessWorld) attack(t *testing.T, attack accessAttack) {
	t.Helper()
	if attack.given != nil {
		attack.given(t, w)
	}
	w.cannot(t, attack.prize)
	steps := attack.steps(t)
	for i, s := range steps {
		by := s.by
		if by == nil {
			by = w.gardenletA
		}
		if a := s.answeredBy(t, by); !s.expects(a) {
			t.Errorf("step %d, %s: %s; expected %d because of %q", i+1, s, a, s.want, s.says)
		}
	}
	if last := steps[len(steps)-1]; last.want == done || last.want == made {
		t.Error("the attack succeeds")
	}
	w.cannot(t, attack.prize)
}

func (s attackStep) expects(a answer) bool {
	return a.Code == s.want && strings.Contains(a.Message, s.says)
}

// answeredBy returns the answer to a user, once the graph has the objects of the previous steps.
func (s attackStep) answeredBy(t *testing.T, by *accessUser) (a answer) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		if a = by.must(t, s.accessRequest); !s.expects(a) && strings.Contains(a.Message, "no path from") {
			return fmt.Errorf("%s: %s", s, a)
		}
		return nil
	})
	return a
}

// cannot expects that neither the gardenlet nor the extension of a may make a request.
func (w *accessWorld) cannot(t *testing.T, prize accessRequest) {
	t.Helper()
	if prize.verb == "" {
		return
	}
	for _, who := range []*accessUser{w.gardenletA, w.extensionA} {
		allowed, why, err := who.may(t.Context(), prize)
		must(t, err)
		if allowed {
			t.Errorf("%s may %s: %s", who.Name, prize, why)
		}
		if a := who.must(t, prize); a.OK() {
			t.Errorf("%s did %s: %s", who.Name, prize, a)
		}
	}
}

// attacksThroughReferences returns attacks that make an object of a refer to an object of b, so that the graph would
// have a path to it.
func attacksThroughReferences(w *accessWorld) []accessAttack {
	a, b, p := w.a.name, w.b.name, w.project()
	backup := reading("secrets", "garden", b+"-backup")
	const credentials = `{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":%q}`
	toBackup := fmt.Sprintf(credentials, b+"-backup")
	return []accessAttack{
		{
			name:  "credentials of a BackupBucket",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				return []attackStep{step(patching("backupbuckets", "", "", w.a.uid, `{"spec":{"credentialsRef":%s}}`, toBackup), denied, b+"-backup"),
					step(backup, denied, "")}
			},
		},
		{
			name:  "credentials of a new BackupBucket",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(creating(bucketObject("at-mine", a, a+"-backup")), denied, w.a.uid),
					step(patching("backupbuckets", "", "", w.a.uid, `{"spec":{"credentialsRef":%s}}`, toBackup), denied, b+"-backup"),
					step(backup, denied, ""),
				}
			},
		},
		{
			name:  "generated secret in the status of a BackupBucket",
			prize: reading("secrets", "garden", "generated-bucket-"+w.b.uid),
			steps: func(t *testing.T) []attackStep {
				patch := patching("backupbuckets", "status", "", w.a.uid,
					`{"status":{"generatedSecretRef":{"namespace":"garden","name":"generated-bucket-%s"}}}`, w.b.uid)
				return []attackStep{step(patch, denied, " cannot ").of(w.extensionA), step(patch, denied, "generatedSecretRef")}
			},
		},
		{
			name:  "bucket of a BackupEntry",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(patching("backupentries", "", p, a, `{"spec":{"bucketName":%q}}`, w.b.uid), denied, w.b.uid),
					step(creating(ownedByShoot(entryObject(p, w.entryName(t, a+"-2"), a, w.b.uid), a+"-2")), denied, w.b.uid),
				}
			},
		},
		{
			name:  "restoration that is none",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				name := w.entryName(t, a)
				w.create(t, &unstructured.Unstructured{Object: ownedByShoot(entryObject(p, name, a, w.a.uid), a)}, a)
				source := ownedByShoot(entryObject(p, "source-"+name, a, w.b.uid), a)
				return []attackStep{
					step(patching("shoots", "status", p, a, `{"status":{"lastOperation":{"type":"Restore","state":"Processing",`+
						`"progress":1,"description":"","lastUpdateTime":"2026-01-01T00:00:00Z"}}}`), done, ""),
					step(creating(source), denied, "same specification"),
					step(patching("backupentries", "", p, a, `{"spec":{"bucketName":%q}}`, w.b.uid), denied, w.b.uid),
				}
			},
		},
		{
			name:  "credentials of a Seed",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(patching("seeds", "", "", a, `{"spec":{"backup":{"credentialsRef":%s}}}`, toBackup), denied, b+"-backup"),
					step(patching("seeds", "", "", a, `{"spec":{"dns":{"provider":{"credentialsRef":%s}}}}`, toBackup), denied, b+"-backup"),
					step(patching("seeds", "", "", a, `{"spec":{"resources":[{"name":"x","resourceRef":{"apiVersion":"v1","kind":"Secret","name":%q}}]}}`,
						b+"-backup"), denied, b+"-backup"),
				}
			},
		},
		{
			name:  "credentials of a Gardenlet",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				return []attackStep{step(patching("gardenlets", "", "garden", a,
					`{"spec":{"config":{"seedConfig":{"spec":{"backup":{"credentialsRef":%s}}}}}}`, toBackup), denied, b+"-backup")}
			},
		},
		{
			name:  "seed template of a ManagedSeed",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				return []attackStep{step(patching("managedseeds", "", "garden", a+"-t",
					`{"spec":{"gardenlet":{"config":{"seedConfig":{"spec":{"backup":{"credentialsRef":%s}}}}}}}`, toBackup), denied, "specification")}
			},
		},
	}
}

// attacksThroughReferencesOfShoots returns such attacks with objects of shoots, and with ServiceAccounts.
func attacksThroughReferencesOfShoots(w *accessWorld) []accessAttack {
	a, b, p := w.a.name, w.b.name, w.project()
	backup := reading("secrets", "garden", b+"-backup")
	return []accessAttack{
		{
			name:  "resources of a Shoot",
			prize: reading("secrets", p, b+".ssh-keypair"),
			steps: func(t *testing.T) []attackStep {
				const ref = `{"apiVersion":"v1","kind":"Secret","name":%q}`
				patch := func(spec, name string) attackStep {
					return step(patching("shoots", "", p, a+"-2", `{"spec":`+spec+`}`, name), denied, "")
				}
				return []attackStep{
					patch(`{"resources":[{"name":"x","resourceRef":`+ref+`}]}`, b+".ssh-keypair"),
					patch(`{"dns":{"domain":"x.example.com","providers":[{"type":"local","primary":true,"credentialsRef":`+ref+`}]}}`, b+".ssh-keypair"),
					patch(`{"kubernetes":{"kubeAPIServer":{"structuredAuthorization":{"configMapName":"`+a+
						`-audit","kubeconfigs":[{"authorizerName":"x","secretName":%q}]}}}}`, b+".ssh-keypair"),
				}
			},
		},
		{
			name:  "binding of a Shoot",
			prize: reading("secrets", p, b+"-infra"),
			steps: func(t *testing.T) []attackStep {
				return []attackStep{step(patching("shoots", "", p, a+"-2", `{"spec":{"secretBindingName":%q}}`, b), invalid, "immutable")}
			},
		},
		{
			name:  "deployment of a ControllerInstallation",
			prize: reading("controllerdeployments", "", b),
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(patching("controllerinstallations", "", "", a, `{"spec":{"deploymentRef":{"name":%q}}}`, b), denied, " cannot ").of(w.extensionA),
					step(patching("controllerinstallations", "", "", a, `{"spec":{"deploymentRef":{"name":%q}}}`, b), denied, "specification"),
					step(patching("controllerinstallations", "", "", a, `{"spec":{"seedRef":{"name":%q}}}`, b), invalid, "immutable"),
					// changes of the specification are ignored here
					step(patching("controllerinstallations", "status", "", a,
						`{"spec":{"deploymentRef":{"name":%q}},"metadata":{"annotations":{"x":"y"}}}`, b), done, ""),
					step(reading("controllerdeployments", "", b), denied, ""),
				}
			},
		},
		{
			name:  "secrets of a ServiceAccount",
			prize: backup,
			steps: func(t *testing.T) []attackStep {
				listing := meta("v1", "ServiceAccount", "garden", "gardenlet-bootstrap-"+a+"-t",
					map[string]any{"secrets": []any{map[string]any{"name": b + "-backup"}}})
				return []attackStep{
					step(creating(listing), denied, b+"-backup"),
					step(patching("serviceaccounts", "", "garden", "gardenlet-bootstrap-"+a+"-s", `{"secrets":[{"name":%q}]}`, b+"-backup"),
						denied, b+"-backup"),
					step(patching("serviceaccounts", "", "garden", "gardenlet-bootstrap-"+a+"-s", `{"imagePullSecrets":[{"name":%q}]}`, b+"-backup"),
						denied, b+"-backup"),
				}
			},
		},
	}
}

// attacksOnIdentities returns attacks that give a another identity.
func attacksOnIdentities(w *accessWorld) []accessAttack {
	a, b, p := w.a.name, w.b.name, w.project()
	const role = "gardener.cloud:system:seed-bootstrapper"
	return []accessAttack{
		{
			name: "certificate of another seed",
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(creating(requestObject(t, "at-new-a", a)), made, ""),
					step(creating(requestObject(t, "at-new-b", b)), denied, foreignObject),
				}
			},
		},
		{
			name: "subjects of a ClusterRoleBinding",
			steps: func(t *testing.T) []attackStep {
				bound := meta("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", role+":garden:gardenlet-bootstrap-"+a+"-t", map[string]any{
					"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
					"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "seed-" + a, "name": "at-mine"}}})
				return []attackStep{
					step(creating(meta("v1", "ServiceAccount", "seed-"+a, "at-mine", nil)), made, ""),
					step(creating(bound), denied, "seed-"+a+"/at-mine"),
					step(patching("clusterrolebindings", "", "", role+":garden:gardenlet-bootstrap-"+a+"-s",
						`{"subjects":[{"kind":"ServiceAccount","namespace":"seed-%s","name":"at-mine"}]}`, a), denied, "seed-"+a+"/at-mine"),
				}
			},
		},
		{
			name: "token of a ServiceAccount",
			steps: func(t *testing.T) []attackStep {
				token := secretObject(p, a+"-2.monitoring", "kubernetes.io/service-account-token")
				token["metadata"].(map[string]any)["annotations"] = map[string]any{"kubernetes.io/service-account.name": "extension-elsewhere"}
				create := accessRequest{verb: "create", resource: "serviceaccounts", sub: "token", namespace: "seed-" + b,
					name: "extension-x", forReal: true,
					body: meta("authentication.k8s.io/v1", "TokenRequest", "seed-"+b, "extension-x", map[string]any{"spec": map[string]any{}})}
				return []attackStep{step(creating(token), denied, "service-account-token"),
					step(creating(token), denied, " cannot ").of(w.extensionA), step(create, denied, "")}
			},
		},
		{
			name: "bootstrap token for more",
			steps: func(t *testing.T) []attackStep {
				name := bootstrapTokenOf("garden", a+"-t")
				return []attackStep{
					step(patching("secrets", "", "kube-system", name, `{"stringData":{"auth-extra-groups":"system:bootstrappers:admins"}}`),
						denied, "auth-extra-groups"),
					step(patching("secrets", "", "kube-system", name, `{"stringData":{"description":"A bootstrap token for the Gardenlet `+
						`for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/%s-t."}}`, b), denied, foreignObject),
				}
			},
		},
		{
			name: "credentials of a managed seed that has some",
			given: func(t *testing.T, w *accessWorld) {
				seed, err := w.at("seeds", "").Get(t.Context(), a, metav1.GetOptions{})
				must(t, err)
				grown := &unstructured.Unstructured{Object: withoutStatus(fresh(seed.Object))}
				grown.SetName(a + "-s")
				w.create(t, grown, a)
				eventually(t, waitTimeout, func(ctx context.Context) error {
					return w.isAuthorized(ctx, w.gardenletA, "update", "seeds", "", a+"-s")
				})
			},
			steps: func(t *testing.T) []attackStep {
				token := tokenObject(bootstrapTokenOf("garden", a+"-s"), "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/"+a+"-s")
				return []attackStep{
					step(creating(token), denied, "bootstrapped already"),
					step(patching("seeds", "status", "", a+"-s", `{"status":{"clientCertificateExpirationTimestamp":"2020-01-01T00:00:00Z"}}`),
						denied, foreignObject),
					step(patching("managedseeds", "status", "garden", a+"-s",
						`{"metadata":{"annotations":{"gardener.cloud/operation":"renew-kubeconfig"}}}`), denied, "renew-kubeconfig"),
					step(creating(token), denied, "bootstrapped already"),
				}
			},
		},
	}
}

// attacksOnOthers returns attacks that change or delete objects that others rely on.
func attacksOnOthers(w *accessWorld) []accessAttack {
	a, b, p := w.a.name, w.b.name, w.project()
	return []accessAttack{
		{
			name: "seed of a Shoot",
			steps: func(t *testing.T) []attackStep {
				binding := accessRequest{verb: "patch", resource: "shoots", sub: "binding", namespace: p, name: a + "-2",
					body: rawJSON(fmt.Sprintf(`{"spec":{"seedName":%q}}`, b)), forReal: true}
				return []attackStep{
					step(patching("shoots", "", p, a+"-2", `{"spec":{"seedName":%q}}`, b), denied, ""),
					step(patching("shoots", "status", p, a+"-2", `{"status":{"seedName":%q}}`, b), denied, "status.seedName"),
					step(binding, denied, " cannot "),
					step(patching("shoots", "status", p, b+"-2", `{"status":{"seedName":%q}}`, a), denied, " cannot "),
				}
			},
		},
		{
			name: "another seed's Bastion",
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(patching("bastions", "", p, a, `{"spec":{"shootRef":{"name":%q}}}`, b+"-2"), invalid, ""),
					step(patching("bastions", "", p, a, `{"metadata":{"annotations":{"gardener.cloud/created-by":"bob"}}}`), invalid, "immutable"),
					step(patching("bastions", "", p, a, `{"spec":{"sshPublicKey":"ssh-ed25519 `+
						`AAAAC3NzaC1lZDI1NTE5AAAAIAbGSz9p0pPsEoWLmKQrOqkYkzzHVWfRg/sfkoh8jy7E mine"}}`), invalid, "immutable"),
					// the API server keeps the seed of the Bastion's shoot
					step(patching("bastions", "", p, a, `{"spec":{"seedName":%q}}`, b), done, ""),
					step(patching("bastions", "", p, a, `{"metadata":{"annotations":{"still":"a's"}}}`), done, ""), // so it is still a's
					step(patching("bastions", "", p, a, `{"spec":{"ingress":[{"ipBlock":{"cidr":"198.51.100.0/24"}}]}}`), denied, "spec.ingress"),
					step(patching("bastions", "", p, b, `{"spec":{"ingress":[]}}`), denied, " cannot "),
				}
			},
		},
		{
			name: "content of what is shared",
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(patching("configmaps", "", p, a+"-audit", `{"data":{"policy":"mine"}}`), denied, foreignObject),
					step(patching("configmaps", "", "kube-system", "cluster-identity", `{"data":{"cluster-identity":"mine"}}`), invalid, "immutable"),
					step(patching("secrets", "", p, a+"-infra", `{"stringData":{"key":"mine"}}`), denied, foreignObject),
					step(patching("secrets", "", "garden", a+"-dns", `{"stringData":{"key":"mine"}}`), denied, foreignObject),
				}
			},
		},
		{
			name: "issuer of another's identities",
			given: func(t *testing.T, w *accessWorld) {
				w.remove(t, accessObject{"secrets", "gardener-system-shoot-issuer", w.name + "--" + w.b.shootUID, b})
			},
			steps: func(t *testing.T) []attackStep {
				issuer := secretObject("gardener-system-shoot-issuer", w.name+"--"+w.b.shootUID, "")
				issuer["metadata"].(map[string]any)["labels"] = map[string]any{
					"discovery.gardener.cloud/public": "serviceaccount", "shoot.gardener.cloud/namespace": p, "shoot.gardener.cloud/name": a}
				return []attackStep{
					step(creating(issuer), denied, foreignObject),
					step(patching("secrets", "", "gardener-system-shoot-issuer", w.name+"--"+w.a.shootUID,
						`{"metadata":{"labels":{"discovery.gardener.cloud/public":"serviceaccount","shoot.gardener.cloud/namespace":%q,`+
							`"shoot.gardener.cloud/name":%q}}}`, p, b), denied, foreignObject),
				}
			},
		},
		{
			name: "deletion of what nothing refers to",
			steps: func(t *testing.T) []attackStep {
				return []attackStep{
					step(deleting("secrets", "seed-"+b, "inside"), denied, ""),
					step(deleting("configmaps", "seed-"+b, "inside"), denied, ""),
					step(deleting("secrets", p, "unreferenced"), denied, ""),
					step(deleting("secrets", "garden", "shoot-service-account-issuer"), denied, ""),
					step(deleting("internalsecrets", p, "unreferenced"), denied, "").of(w.extensionA),
					step(deleting("backupbuckets", "", w.b.uid), denied, ""),
				}
			},
		},
	}
}
