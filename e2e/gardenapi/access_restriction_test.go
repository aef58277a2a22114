package gardenapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

const (
	foreignObject    = "object does not belong to seed"
	bootstrapperRole = "gardener.cloud:system:seed-bootstrapper"
)

// TestAccessRestriction shows that the garden calls the webhook of SeedRestriction with the object, and heeds the answer:
// each resource is created, changed and deleted as only the webhook refuses it, except InternalSecrets and ShootStates, of
// which none that two seeds use is deleted, and Bastions, whose changes the API refuses first. The decisions are tested in
// internal/authz/restriction, changes that are allowed in TestAccessRows.
func TestAccessRestriction(t *testing.T) {
	w := newAccessWorld(t, "cr", suite.DataDir(), config)
	w.settle(t)
	t.Run("creates", w.restrictedCreates)
	t.Run("registration", w.restrictedRegistration)
	t.Run("updates", w.restrictedUpdates)
	t.Run("deletes", w.restrictedDeletes)
	t.Run("new objects", w.deletesOfNewEntries)
}

func (w *accessWorld) project() string { return "garden-" + w.name }

// expectAllowed sends a request, as a dry run.
func expectAllowed(t *testing.T, who *accessUser, r accessRequest) {
	t.Helper()
	r.forReal = false
	if a := who.must(t, r); !a.OK() {
		t.Errorf("%s: %s: %s", who.Name, r, a)
	}
}

// expectRefused sends a request that the authorizer allows, as a dry run.
func expectRefused(t *testing.T, who *accessUser, r accessRequest, because string) {
	t.Helper()
	r.forReal = false
	if a := who.must(t, r); a.Code != http.StatusForbidden || a.NoOpinion() || !strings.Contains(a.Message, because) {
		t.Errorf("%s: %s: %s, expected a refusal because of %q", who.Name, r, a, because)
	}
}

func (w *accessWorld) restrictedCreates(t *testing.T) {
	a, b, p := w.a.name, w.b.name, w.project()
	const gardener, rbac = "core.gardener.cloud/v1beta1", "rbac.authorization.k8s.io"
	entry := func(bucket string) map[string]any {
		return ownedByShoot(entryObject(p, w.entryName(t, a+"-2"), a, bucket), a+"-2")
	}
	bastion := func(seed string) map[string]any {
		return meta("operations.gardener.cloud/v1alpha1", "Bastion", p, "new", map[string]any{"spec": map[string]any{
			"shootRef": map[string]any{"name": seed + "-2"}, "seedName": seed, "providerType": "local",
			"sshPublicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbGSz9p0pPsEoWLmKQrOqkYkzzHVWfRg/sfkoh8jy7D e2e",
			"ingress":      []any{map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/24"}}}}})
	}
	binding := func(seed, role string) map[string]any {
		account := "gardenlet-bootstrap-" + seed + "-t"
		return meta(rbac+"/v1", "ClusterRoleBinding", "", bootstrapperRole+":garden:"+account, map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "garden", "name": account}}})
	}
	token := func(seed string) map[string]any {
		return tokenObject(bootstrapTokenOf("garden", seed+"-s"), "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/"+seed+"-s")
	}
	account := func(name, label, value string) map[string]any {
		return labelled(meta("v1", "ServiceAccount", "seed-"+a, name, nil), label, value)
	}
	restored := w.remove(t, accessObject{"gardenlets", "garden", a, a})
	defer restored()
	gardenlet := func(change func(*unstructured.Unstructured)) map[string]any {
		obj, err := w.at("gardenlets", "garden").Get(t.Context(), b, metav1.GetOptions{})
		must(t, err)
		g := &unstructured.Unstructured{Object: withoutStatus(fresh(obj.Object))}
		g.SetName(a)
		for _, credentials := range [][]string{{"backup"}, {"dns", "provider"}, {"dns", "internal"}} {
			name := a + "-" + credentials[0]
			must(t, unstructured.SetNestedField(g.Object, name, append(append([]string{"spec", "config", "seedConfig", "spec"}, credentials...),
				"credentialsRef", "name")...))
		}
		change(g)
		return g.Object
	}
	unchanged := func(*unstructured.Unstructured) {}
	for _, row := range []struct {
		allowed, refused map[string]any
		because          string
	}{
		{nil, bucketObject("new", a, a+"-backup"), w.a.uid},
		{entry(w.a.uid), entry(w.b.uid), w.b.uid},
		{bastion(a), bastion(b), foreignObject},
		{requestObject(t, "new", a), requestObject(t, "new", b), foreignObject},
		{binding(a, bootstrapperRole), binding(b, bootstrapperRole), foreignObject},
		{nil, binding(a, "cluster-admin"), "not currently held"}, // Kubernetes refuses this
		{meta("v1", "ConfigMap", p, a+"-2.ca-cluster", nil), meta("v1", "ConfigMap", p, b+"-2.ca-cluster", nil), foreignObject},
		{gardenlet(unchanged), gardenlet(func(g *unstructured.Unstructured) {
			g.SetAnnotations(map[string]string{"gardener.cloud/operation": "renew-kubeconfig"})
		}), "renew-kubeconfig"},
		{meta(gardener, "InternalSecret", p, a+"-2.ca-client", nil), meta(gardener, "InternalSecret", p, b+"-2.ca-client", nil), foreignObject},
		{meta("coordination.k8s.io/v1", "Lease", "garden", "gardenlet-leader-election", nil),
			meta("coordination.k8s.io/v1", "Lease", "gardener-system-seed-lease", "new", nil), foreignObject},
		{secretObject(p, a+"-2.ssh-keypair", ""), secretObject(p, b+"-2.ssh-keypair", ""), foreignObject},
		{token(a), token(b), foreignObject},
		{nil, meta(gardener, "Seed", "", w.name+"-new", map[string]any{"spec": w.seedWithoutBackup(t)}), foreignObject},
		{account("extension-"+a, "controllerregistration.core.gardener.cloud/name", w.name),
			account("extension-more", "selected", "true"), "selected"},
		{meta(gardener, "ShootState", p, a+"-2", nil), meta(gardener, "ShootState", p, b+"-2", nil), foreignObject},
	} {
		if row.allowed != nil {
			expectAllowed(t, w.gardenletA, creating(row.allowed))
		}
		expectRefused(t, w.gardenletA, creating(row.refused), row.because)
	}
	expectAllowed(t, w.extensionA, creating(meta("coordination.k8s.io/v1", "Lease", "seed-"+a, "new", nil)))
	for _, who := range []*accessUser{w.gardenletA, w.extensionA} {
		expectAllowed(t, who, w.identityToken(a, w.a.shootUID))
		expectRefused(t, who, w.identityToken(b, w.b.shootUID), foreignObject)
	}
}

func labelled(object map[string]any, label, value string) map[string]any {
	object["metadata"].(map[string]any)["labels"] = map[string]any{label: value}
	return object
}

// identityToken requests a token of a's WorkloadIdentity for a Shoot.
func (w *accessWorld) identityToken(shoot, uid string) accessRequest {
	about := map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "namespace": w.project(), "name": shoot, "uid": uid}
	return accessRequest{verb: "create", resource: "workloadidentities", sub: "token", namespace: w.project(), name: w.a.name,
		body: meta("security.gardener.cloud/v1alpha1", "TokenRequest", w.project(), w.a.name,
			map[string]any{"spec": map[string]any{"contextObject": about}})}
}

// seedWithoutBackup returns the specification of a's Seed, whose only credentials are those for DNS.
func (w *accessWorld) seedWithoutBackup(t *testing.T) any {
	t.Helper()
	seed, err := w.at("seeds", "").Get(t.Context(), w.a.name, metav1.GetOptions{})
	must(t, err)
	spec := seed.Object["spec"].(map[string]any)
	delete(spec, "backup")
	delete(spec, "resources")
	return spec
}

// restrictedRegistration lets a new gardenlet register its Seed, create the BackupBucket, and delete both.
func (w *accessWorld) restrictedRegistration(t *testing.T) {
	name := w.name + "-new"
	newcomer := gardenletUser(t, w.dir, name)
	seed := creating(meta("core.gardener.cloud/v1beta1", "Seed", "", name, map[string]any{"spec": w.seedWithoutBackup(t)}))
	expectRefused(t, newcomer, seed, w.a.name+"-dns")
	w.nameForSeed(t, w.a.name+"-dns", name)
	w.nameForSeed(t, w.a.name+"-backup", name)
	if a := newcomer.must(t, seed); !a.OK() {
		t.Fatalf("creating its Seed: %s", a)
	}
	uid := w.nameOfSeed(t, name)
	if a := newcomer.must(t, creating(bucketObject(uid, name, w.a.name+"-backup"))); !a.OK() {
		t.Fatalf("creating its BackupBucket: %s", a)
	}
	for _, r := range []accessRequest{deleting("backupbuckets", "", uid), deleting("seeds", "", name)} {
		eventually(t, waitTimeout, func(ctx context.Context) error {
			return w.isAuthorized(ctx, newcomer, r.verb, r.resource, r.namespace, r.name)
		})
		expectAllowed(t, newcomer, r)
	}
}

func (w *accessWorld) restrictedUpdates(t *testing.T) {
	a, b, p := w.a.name, w.b.name, w.project()
	toBackup := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"%s-backup"}`, b)
	const renews = `{"metadata":{"annotations":{"gardener.cloud/operation":"renew-kubeconfig"}}}`
	for _, row := range []struct{ resource, sub, namespace, name, patch, because string }{
		{"backupbuckets", "", "", w.a.uid, `{"spec":{"credentialsRef":` + toBackup + `}}`, b + "-backup"},
		{"backupbuckets", "status", "", w.a.uid,
			`{"status":{"generatedSecretRef":{"namespace":"garden","name":"generated-bucket-` + w.b.uid + `"}}}`, "generatedSecretRef"},
		{"backupentries", "", p, a, `{"spec":{"bucketName":"` + w.b.uid + `"}}`, w.b.uid},
		{"backupentries", "status", p, a, `{"status":{"seedName":"` + b + `"}}`, "status.seedName"},
		{"clusterrolebindings", "", "", bootstrapperRole + ":garden:gardenlet-bootstrap-" + a + "-s",
			`{"subjects":[{"kind":"ServiceAccount","namespace":"seed-` + a + `","name":"mine"}]}`, "seed-" + a + "/mine"},
		{"configmaps", "", p, a + "-audit", `{"data":{"policy":"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}"}}`,
			foreignObject},
		{"controllerinstallations", "", "", a, `{"spec":{"deploymentRef":{"name":"` + b + `"}}}`, "specification"},
		{"gardenlets", "", "garden", a, `{"spec":{"config":{"seedConfig":{"spec":{"backup":{"credentialsRef":` + toBackup + `}}}}}}`,
			b + "-backup"},
		{"gardenlets", "status", "garden", a, renews, "renew-kubeconfig"},
		{"internalsecrets", "", p, a + "-infra", `{"stringData":{"key":"mine"}}`, foreignObject},
		{"managedseeds", "", "garden", a + "-t",
			`{"spec":{"gardenlet":{"config":{"seedConfig":{"spec":{"backup":{"credentialsRef":` + toBackup + `}}}}}}}`, "specification"},
		{"managedseeds", "status", "garden", a + "-t", renews, "renew-kubeconfig"},
		{"secrets", "", p, a + "-infra", `{"stringData":{"key":"mine"}}`, foreignObject},
		{"seeds", "", "", a, `{"spec":{"backup":{"credentialsRef":` + toBackup + `}}}`, b + "-backup"},
		{"serviceaccounts", "", "garden", "gardenlet-bootstrap-" + a + "-s", `{"secrets":[{"name":"` + b + `-backup"}]}`, b + "-backup"},
		{"shoots", "", p, a + "-2", `{"spec":{"dns":{"domain":"x.example.com","providers":[{"type":"local","primary":true,` +
			`"credentialsRef":{"apiVersion":"v1","kind":"Secret","name":"` + b + `.ssh-keypair"}}]}}}`, b + ".ssh-keypair"},
		{"shoots", "status", p, a, `{"status":{"uid":"` + w.b.shootUID + `"}}`, "status.uid must be"},
	} {
		expectRefused(t, w.gardenletA, patching(row.resource, row.sub, row.namespace, row.name, "%s", row.patch), row.because)
	}
}

// restrictedDeletes makes a the parent of Seed a-t, and b a user of the backup Secret in the template of that Seed.
func (w *accessWorld) restrictedDeletes(t *testing.T) {
	a, b, p := w.a.name, w.b.name, w.project()
	child := a + "-t"
	w.copySeed(t, a, child)
	for _, object := range []map[string]any{
		bucketObject(a+"-more", a, a+"-backup"), bucketObject("cr-shared", b, a+"-template"), entryObject(p, "cr-child", child, w.a.uid),
	} {
		w.create(t, &unstructured.Unstructured{Object: object}, "")
	}
	for _, row := range []struct {
		accessRequest
		because string
	}{
		{deleting("backupbuckets", "", a+"-more"), "UID"},
		{deleting("backupentries", p, "cr-child"), foreignObject},
		{patching("backupentries", "", p, "cr-child", `{"metadata":{"annotations":{"x":"y"}}}`), foreignObject},
		{deleting("configmaps", "kube-system", "cluster-identity"), "all seeds share"},
		{deleting("secrets", "garden", a+"-template"), foreignObject},
		{patching("secrets", "", "garden", a+"-template", `{"stringData":{"key":"mine"}}`), foreignObject},
		{patching("seeds", "status", "", child, `{"status":{"observedGeneration":7}}`), foreignObject},
		{deleting("seeds", "", child), "only while"},
	} {
		eventually(t, waitTimeout, func(ctx context.Context) error { // until the graph has the object
			return w.isAuthorized(ctx, w.gardenletA, row.verb, row.resource, row.namespace, row.name)
		})
		expectRefused(t, w.gardenletA, row.accessRequest, row.because)
	}
	managedSeeds := w.at("managedseeds", "garden")
	_, err := managedSeeds.Patch(t.Context(), child, "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":["e2e.gardener.cloud/test"],"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`),
		metav1.PatchOptions{})
	must(t, err)
	must(t, managedSeeds.Delete(t.Context(), child, metav1.DeleteOptions{}))
	expectAllowed(t, w.gardenletA, deleting("seeds", "", child))
}

// deletesOfNewEntries tries to delete what another seed has just created: the graph may not have it yet.
func (w *accessWorld) deletesOfNewEntries(t *testing.T) {
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

// TestAccessToEvents pins a documented limit: Events may be created in every namespace, so 404 tells that there is none.
func TestAccessToEvents(t *testing.T) {
	gardenlet := gardenletUser(t, suite.DataDir(), "events")
	for namespace, want := range map[string]int{"default": http.StatusCreated, "absent": http.StatusNotFound} {
		r := creating(meta("v1", "Event", namespace, "x", map[string]any{"reason": "x",
			"involvedObject": map[string]any{"kind": "Seed", "name": "x", "namespace": namespace}}))
		r.forReal = false
		if a := gardenlet.must(t, r); a.Code != want {
			t.Errorf("in namespace %s: %s, expected %d", namespace, a, want)
		}
	}
}

// nameOfSeed returns the name of a Seed's BackupBucket, which is the Seed's UID.
func (w *accessWorld) nameOfSeed(t *testing.T, seed string) string {
	t.Helper()
	obj, err := w.at("seeds", "").Get(t.Context(), seed, metav1.GetOptions{})
	must(t, err)
	return string(obj.GetUID())
}

func (w *accessWorld) copySeed(t *testing.T, from, to string) {
	t.Helper()
	seed, err := w.at("seeds", "").Get(t.Context(), from, metav1.GetOptions{})
	must(t, err)
	copied := &unstructured.Unstructured{Object: withoutStatus(fresh(seed.Object))}
	copied.SetName(to)
	copied.SetFinalizers(nil)
	w.create(t, copied, "")
}
