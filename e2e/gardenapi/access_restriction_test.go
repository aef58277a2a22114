package gardenapi

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// restrictionRow is a request that the authorizer lets through, unless outcome is "no opinion".
type restrictionRow struct {
	what    string
	who     *accessUser
	verb    string
	object  map[string]any // its body, or for delete what is to be deleted
	outcome string         // allow, reject, exists, or no opinion
	because string         // in the reason of a rejection
}

const foreignObject = "object does not belong to seed"

// TestAccessRestriction tests every row of SeedRestriction with dry runs. access_attacks_test.go tests updates.
func TestAccessRestriction(t *testing.T) {
	w := newAccessWorld(t, "cr", suite.DataDir(), config)
	w.settle(t)
	for _, rows := range []struct {
		name string
		of   func(*accessWorld, *testing.T) []restrictionRow
	}{
		{"Backups", backupRows}, {"Bastion", bastionRows}, {"CertificateSigningRequest", requestRows}, {"ClusterRoleBinding", bindingRows},
		{"ConfigMap", configMapRows}, {"Gardenlet", gardenletRows}, {"InternalSecret", internalSecretRows}, {"Lease", leaseRows},
		{"Secret", secretRows}, {"BootstrapToken", tokenRows}, {"Seed", seedRows}, {"ServiceAccount", accountRows},
		{"ShootState", shootStateRows},
		{"Deletion", deletionRows},
	} {
		t.Run(rows.name, func(t *testing.T) {
			for _, row := range rows.of(w, t) {
				w.tryRestriction(t, row)
			}
		})
	}
}

func (w *accessWorld) tryRestriction(t *testing.T, row restrictionRow) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: row.object}
	r := accessRequest{verb: row.verb, resource: resourceOf(obj.GetKind()), namespace: obj.GetNamespace()}
	if row.verb == "create" {
		r.body = row.object
	} else {
		r.name = obj.GetName()
	}
	a := row.who.must(t, r)
	got := fmt.Sprint(a.Code)
	switch {
	case a.OK():
		got = "allow"
	case a.NoOpinion():
		got = "no opinion"
	case a.Code == 409:
		got = "exists"
	case a.Rejected():
		got = "reject"
	}
	if got != row.outcome || !strings.Contains(a.Message, row.because) {
		t.Errorf("%s, %s: %s, expected %s because of %q: %s", row.what, row.who.Name, got, row.outcome, row.because, a)
	}
}

// creation returns a row for a creation by the gardenlet of a.
func (w *accessWorld) creation(what string, object map[string]any, outcome, because string) restrictionRow {
	return restrictionRow{what, w.gardenletA, "create", object, outcome, because}
}

func (w *accessWorld) project() string { return "garden-" + w.name }

func backupRows(w *accessWorld, t *testing.T) []restrictionRow {
	a, b := w.a, w.b
	own, foreign := w.entryName(t, a.name+"-2"), w.entryName(t, b.name+"-2")
	entry := func(name, shoot, seed, bucket string) map[string]any {
		return ownedByShoot(entryObject(w.project(), name, seed, bucket), shoot)
	}
	source := func(bucket string) map[string]any { return entry("source-"+own, a.name+"-2", a.name, bucket) }
	for _, row := range []restrictionRow{
		w.creation("BackupBucket of its seed", bucketObject(a.uid, a.name, a.name+"-backup"), "exists", ""),
		w.creation("BackupBucket of its seed, named otherwise", bucketObject("new", a.name, a.name+"-backup"), "reject", a.uid),
		w.creation("BackupBucket of another seed", bucketObject("new", b.name, b.name+"-backup"), "reject", foreignObject),
		w.creation("BackupBucket of another seed that exists", bucketObject(b.uid, b.name, b.name+"-backup"), "exists", ""),
		w.creation("BackupEntry of its shoot", entry(own, a.name+"-2", a.name, a.uid), "allow", ""),
		w.creation("BackupEntry, named otherwise", entry("new", a.name+"-2", a.name, a.uid), "reject", own),
		w.creation("BackupEntry of no shoot", entryObject(w.project(), "new", a.name, a.uid), "reject", "shoots"),
		w.creation("BackupEntry of another seed's shoot", entry(foreign, b.name+"-2", a.name, a.uid), "reject", foreignObject),
		w.creation("BackupEntry of another seed's shoot, owned by its own", entry(foreign, a.name+"-2", a.name, a.uid), "reject", own),
		w.creation("BackupEntry in another seed's bucket", entry(own, a.name+"-2", a.name, b.uid), "reject", b.uid),
		w.creation("BackupEntry of another seed", entry(own, a.name+"-2", b.name, b.uid), "reject", foreignObject),
		w.creation("source entry of a shoot that is not restored", source(a.uid), "reject", "restored"),
	} {
		w.tryRestriction(t, row)
	}
	w.create(t, &unstructured.Unstructured{Object: entry(own, a.name+"-2", a.name, a.uid)}, a.name)
	lastOperation := func(kind string) {
		w.patchStatus(t, "shoots", w.project(), a.name+"-2", fmt.Sprintf(
			`{"status":{"lastOperation":{"type":%q,"state":"Processing","progress":1,"description":"","lastUpdateTime":"2026-01-01T00:00:00Z"}}}`,
			kind))
	}
	lastOperation("Restore")
	w.tryRestriction(t, w.creation("source entry of a shoot that is restored", source(a.uid), "allow", ""))
	w.tryRestriction(t, w.creation("source entry that differs from the original", source(b.uid), "reject", "same specification"))
	lastOperation("Reconcile")
	return nil
}

func bastionRows(w *accessWorld, _ *testing.T) []restrictionRow {
	bastion := func(seed string) map[string]any {
		return meta("operations.gardener.cloud/v1alpha1", "Bastion", w.project(), "new", map[string]any{"spec": map[string]any{
			"shootRef": map[string]any{"name": seed + "-2"}, "seedName": seed, "providerType": "local",
			"sshPublicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbGSz9p0pPsEoWLmKQrOqkYkzzHVWfRg/sfkoh8jy7D e2e",
			"ingress":      []any{map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/24"}}}}})
	}
	return []restrictionRow{
		w.creation("of its seed", bastion(w.a.name), "allow", ""),
		w.creation("of another seed", bastion(w.b.name), "reject", foreignObject),
		{"of its seed", w.extensionA, "create", bastion(w.a.name), "no opinion", ""},
	}
}

func requestRows(w *accessWorld, t *testing.T) []restrictionRow {
	of := func(seed string, change ...func(*x509.CertificateRequest)) map[string]any {
		return requestObject(t, "new", seed, change...)
	}
	moreUsages := of(w.a.name)
	moreUsages["spec"].(map[string]any)["usages"] = []any{"digital signature", "client auth"}
	return []restrictionRow{
		w.creation("for its seed", of(w.a.name), "allow", ""),
		w.creation("for another seed", of(w.b.name), "reject", foreignObject),
		w.creation("for another user", of("user"), "reject", "common name"),
		w.creation("for another group as well", of(w.a.name, func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, "developers")
		}), "reject", "organization"),
		w.creation("with a subject alternative name",
			of(w.a.name, func(r *x509.CertificateRequest) { r.DNSNames = []string{"example.com"} }), "reject", "alternative"),
		w.creation("with other usages", moreUsages, "reject", "usages"),
		{"of an extension", w.extensionA, "create", of(w.a.name), "no opinion", ""},
	}
}

func bindingRows(w *accessWorld, _ *testing.T) []restrictionRow {
	const role = "gardener.cloud:system:seed-bootstrapper"
	binding := func(name, role, account string) map[string]any {
		return meta("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", name, map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "garden", "name": account}}})
	}
	of := func(seed string) map[string]any {
		return binding(role+":garden:gardenlet-bootstrap-"+seed, role, "gardenlet-bootstrap-"+seed)
	}
	own := w.a.name + "-t"
	return []restrictionRow{
		w.creation("for its ManagedSeed", of(own), "allow", ""),
		w.creation("for another seed's ManagedSeed", of(w.b.name+"-t"), "reject", foreignObject),
		w.creation("for its Seed, which is bootstrapped", of(w.a.name), "reject", ""),
		w.creation("of another name", binding("new", role, "gardenlet-bootstrap-"+own), "reject", foreignObject),
		// Kubernetes itself refuses
		w.creation("to another role", binding(role+":garden:gardenlet-bootstrap-"+own, "cluster-admin", "gardenlet-bootstrap-"+own),
			"403", "not currently held"),
		w.creation("of another account", binding(role+":garden:gardenlet-bootstrap-"+own, role, "default"), "reject", "garden/default"),
		{"of an extension", w.extensionA, "create", of(own), "no opinion", ""},
	}
}

// ofShoots returns rows for objects of each seed's second shoot.
func (w *accessWorld) ofShoots(object func(name string) map[string]any, suffixes ...string) (rows []restrictionRow) {
	for _, suffix := range suffixes {
		rows = append(rows,
			w.creation(suffix+" of a shoot on its seed", object(w.a.name+"-2"+suffix), "allow", ""),
			w.creation(suffix+" of a shoot on another seed", object(w.b.name+"-2"+suffix), "reject", foreignObject),
			w.creation(suffix+" of no shoot", object("unknown"+suffix), "reject", ""),
			restrictionRow{suffix + " by an extension", w.extensionA, "create", object(w.a.name + "-2" + suffix), "no opinion", ""})
	}
	return append(rows, w.creation("of another name", object("new"), "reject", foreignObject))
}

func configMapRows(w *accessWorld, _ *testing.T) []restrictionRow {
	return w.ofShoots(func(name string) map[string]any { return meta("v1", "ConfigMap", w.project(), name, nil) },
		".ca-cluster", ".ca-kubelet")
}

func internalSecretRows(w *accessWorld, _ *testing.T) []restrictionRow {
	return w.ofShoots(func(name string) map[string]any {
		return meta("core.gardener.cloud/v1beta1", "InternalSecret", w.project(), name, map[string]any{"type": "Opaque"})
	}, ".ca-client")
}

func gardenletRows(w *accessWorld, t *testing.T) []restrictionRow {
	obj, err := w.at("gardenlets", "garden").Get(t.Context(), w.a.name, metav1.GetOptions{})
	must(t, err)
	named := func(namespace, name string) map[string]any {
		g := &unstructured.Unstructured{Object: withoutStatus(fresh(obj.Object))}
		g.SetNamespace(namespace)
		g.SetName(name)
		return g.Object
	}
	again := w.remove(t, accessObject{"gardenlets", "garden", w.a.name, w.a.name})
	w.tryRestriction(t, w.creation("named as its seed", named("garden", w.a.name), "allow", ""))
	again()
	return []restrictionRow{
		w.creation("named otherwise", named("garden", "new"), "reject", foreignObject),
		w.creation("of another seed", named("garden", w.b.name), "exists", ""),
		w.creation("in another namespace", named(w.project(), w.a.name), "422", "must be garden"), // the API refuses it already
	}
}

func leaseRows(w *accessWorld, t *testing.T) []restrictionRow {
	lease := func(namespace, name string) map[string]any {
		return meta("coordination.k8s.io/v1", "Lease", namespace, name, nil)
	}
	again := w.remove(t, accessObject{"leases", "gardener-system-seed-lease", w.a.name, w.a.name})
	w.tryRestriction(t, w.creation("its seed's", lease("gardener-system-seed-lease", w.a.name), "allow", ""))
	again()
	return []restrictionRow{
		w.creation("leader election", lease("garden", "gardenlet-leader-election"), "allow", ""),
		w.creation("another seed's", lease("gardener-system-seed-lease", "new"), "reject", foreignObject),
		w.creation("in its seed's namespace", lease("seed-"+w.a.name, "new"), "reject", foreignObject),
		{"in its seed's namespace", w.extensionA, "create", lease("seed-"+w.a.name, "new"), "allow", ""},
		{"in another seed's namespace", w.extensionA, "create", lease("seed-"+w.b.name, "new"), "no opinion", ""},
		{"leader election", w.extensionA, "create", lease("garden", "gardenlet-leader-election"), "no opinion", ""},
	}
}

func secretRows(w *accessWorld, t *testing.T) []restrictionRow {
	a, b := w.a.name, w.b.name
	for _, seed := range []string{a, b} {
		w.create(t, &unstructured.Unstructured{Object: bucketObject(seed+"-more", seed, seed+"-backup")}, seed)
	}
	uid := func(shoot string) string {
		obj, err := w.at("shoots", w.project()).Get(t.Context(), shoot, metav1.GetOptions{})
		must(t, err)
		return string(obj.GetUID())
	}
	issuer := func(shoot, of string) map[string]any {
		s := secretObject("gardener-system-shoot-issuer", w.name+"--"+uid(of), "")
		s["metadata"].(map[string]any)["labels"] = map[string]any{
			"discovery.gardener.cloud/public": "serviceaccount", "shoot.gardener.cloud/namespace": w.project(), "shoot.gardener.cloud/name": shoot}
		return s
	}
	var restore []func()
	for _, seed := range []string{a, b} {
		restore = append(restore, w.remove(t, accessObject{"secrets", "garden", seed + "-template", seed}))
	}
	w.tryRestriction(t, w.creation("backup secret of its ManagedSeed's template", secretObject("garden", a+"-template", ""), "allow", ""))
	w.tryRestriction(t, w.creation("backup secret of another seed's ManagedSeed", secretObject("garden", b+"-template", ""),
		"reject", foreignObject))
	for _, f := range restore {
		f()
	}
	token := secretObject(w.project(), a+"-2.monitoring", "kubernetes.io/service-account-token")
	token["metadata"].(map[string]any)["annotations"] = map[string]any{"kubernetes.io/service-account.name": "extension-elsewhere"}
	labelled := issuer(a+"-2", a+"-2")
	delete(labelled["metadata"].(map[string]any), "labels")
	rows := w.ofShoots(func(name string) map[string]any { return secretObject(w.project(), name, "") }, ".ca-cluster",
		".ssh-keypair", ".ssh-keypair.old", ".monitoring")
	return append(rows,
		w.creation("generated for its bucket", secretObject("garden", "generated-bucket-"+a+"-more", ""), "allow", ""),
		w.creation("generated for another seed's bucket", secretObject("garden", "generated-bucket-"+b+"-more", ""), "reject", foreignObject),
		w.creation("issuer of a shoot on its seed", issuer(a+"-2", a+"-2"), "allow", ""),
		w.creation("issuer of a shoot on another seed", issuer(b+"-2", b+"-2"), "reject", foreignObject),
		w.creation("issuer of a shoot on another seed, labelled for its own", issuer(a+"-2", b+"-2"), "reject", foreignObject),
		w.creation("issuer without labels", labelled, "reject", "label"),
		w.creation("a ServiceAccount's token", token, "reject", "service-account-token"),
		w.creation("in its seed's namespace", secretObject("seed-"+a, "new", ""), "reject", foreignObject))
}

func tokenRows(w *accessWorld, t *testing.T) []restrictionRow {
	a, b := w.a.name, w.b.name
	of := func(kind, name string, data ...string) map[string]any {
		secret := tokenObject(bootstrapTokenOf("garden", name), "seedmanagement.gardener.cloud/v1alpha1."+kind+" resource garden/"+name)
		for i := 0; i+1 < len(data); i += 2 {
			secret["stringData"].(map[string]any)[data[i]] = data[i+1]
		}
		return secret
	}
	again := w.remove(t, accessObject{"secrets", "kube-system", bootstrapTokenOf("garden", a), a})
	w.tryRestriction(t, w.creation("for its Gardenlet, which is bootstrapped", of("Gardenlet", a), "reject", "bootstrapped already"))
	annotate := func(value string) {
		_, err := w.at("gardenlets", "garden").Patch(t.Context(), a, "application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"gardener.cloud/operation":`+value+`}}}`), metav1.PatchOptions{})
		must(t, err)
	}
	annotate(`"renew-kubeconfig"`)
	w.tryRestriction(t, w.creation("for its Gardenlet, which asks for a kubeconfig", of("Gardenlet", a), "allow", ""))
	annotate("null")
	again()
	return []restrictionRow{
		w.creation("for its ManagedSeed", of("ManagedSeed", a+"-s"), "allow", ""),
		w.creation("for another seed's ManagedSeed", of("ManagedSeed", b+"-s"), "reject", foreignObject),
		w.creation("that cannot be signed with", of("ManagedSeed", a+"-s", "usage-bootstrap-signing", "false"), "reject",
			"usage-bootstrap-signing"),
		w.creation("that cannot be authenticated with", of("ManagedSeed", a+"-s", "usage-bootstrap-authentication", "false"),
			"reject", "usage-bootstrap-authentication"),
		w.creation("with extra groups", of("ManagedSeed", a+"-s", "auth-extra-groups", "system:bootstrappers:more"),
			"reject", "auth-extra-groups"),
		w.creation("that does not say for what", of("ManagedSeed", a+"-s", "description", "mine"), "reject", "description"),
		w.creation("for a ManagedSeed that is not there", of("ManagedSeed", "unknown"), "reject", ""),
	}
}

func seedRows(w *accessWorld, t *testing.T) []restrictionRow {
	obj, err := w.at("seeds", "").Get(t.Context(), w.a.name, metav1.GetOptions{})
	must(t, err)
	seed := func(name string) map[string]any {
		s := &unstructured.Unstructured{Object: withoutStatus(fresh(obj.Object))}
		s.SetName(name)
		unstructured.RemoveNestedField(s.Object, "spec", "backup")
		unstructured.RemoveNestedField(s.Object, "spec", "resources")
		return s.Object
	}
	newcomer := gardenletUser(t, w.dir, w.name+"-new")
	w.tryRestriction(t, restrictionRow{"its own, with a Secret that is not named for it", newcomer, "create",
		seed(w.name + "-new"), "reject", w.a.name + "-dns"})
	w.nameForSeed(t, w.a.name+"-dns", w.name+"-new")
	return []restrictionRow{
		{"its own", newcomer, "create", seed(w.name + "-new"), "allow", ""},
		w.creation("another", seed(w.name+"-new"), "reject", foreignObject),
		{"its ManagedSeed's", w.gardenletA, "create", seed(w.a.name + "-t"), "reject", foreignObject},
	}
}

func accountRows(w *accessWorld, _ *testing.T) []restrictionRow {
	account := func(namespace, name string) map[string]any {
		return meta("v1", "ServiceAccount", namespace, name, nil)
	}
	listing := account("garden", "gardenlet-bootstrap-"+w.a.name+"-t")
	listing["secrets"] = []any{map[string]any{"name": w.b.name + "-backup"}}
	return []restrictionRow{
		w.creation("in its seed's namespace", account("seed-"+w.a.name, "extension-new"), "allow", ""),
		w.creation("in another seed's namespace", account("seed-"+w.b.name, "extension-new"), "no opinion", "no path from Namespace"),
		w.creation("for its ManagedSeed", account("garden", "gardenlet-bootstrap-"+w.a.name+"-t"), "allow", ""),
		w.creation("for its ManagedSeed, with another's secret", listing, "reject", w.b.name+"-backup"),
		w.creation("for another seed's ManagedSeed", account("garden", "gardenlet-bootstrap-"+w.b.name+"-t"), "reject", foreignObject),
		w.creation("of another name", account("garden", "new"), "reject", foreignObject),
		{"of an extension", w.extensionA, "create", account("seed-"+w.a.name, "extension-new"), "no opinion", ""},
	}
}

func shootStateRows(w *accessWorld, t *testing.T) []restrictionRow {
	state := func(name string) map[string]any {
		return meta("core.gardener.cloud/v1beta1", "ShootState", w.project(), name, nil)
	}
	for _, row := range []restrictionRow{
		w.creation("of a shoot on its seed", state(w.a.name+"-2"), "allow", ""),
		w.creation("of a shoot on another seed", state(w.b.name+"-2"), "reject", foreignObject),
		w.creation("of no shoot", state("unknown"), "reject", ""),
	} {
		w.tryRestriction(t, row)
	}
	w.patchStatus(t, "shoots", w.project(), w.b.name+"-2", fmt.Sprintf(`{"status":{"seedName":%q}}`, w.a.name))
	w.tryRestriction(t, w.creation("of a shoot that was on its seed", state(w.b.name+"-2"), "allow", ""))
	w.patchStatus(t, "shoots", w.project(), w.b.name+"-2", fmt.Sprintf(`{"status":{"seedName":%q}}`, w.b.name))
	return nil
}

func deletionRows(w *accessWorld, t *testing.T) []restrictionRow {
	seed, err := w.at("seeds", "").Get(t.Context(), w.a.name, metav1.GetOptions{})
	must(t, err)
	managed := &unstructured.Unstructured{Object: withoutStatus(fresh(seed.Object))}
	managed.SetName(w.a.name + "-t")
	managed.SetFinalizers(nil)
	w.create(t, managed, "")
	bucket := bucketObject(w.a.name+"-more", w.a.name, "")
	newcomer := gardenletUser(t, w.dir, w.name+"-gone")
	leaving := managed.DeepCopy()
	leaving.SetName(w.name + "-gone")
	w.create(t, leaving, "")
	w.create(t, &unstructured.Unstructured{Object: bucketObject(w.nameOfSeed(t, w.name+"-gone"), w.name+"-gone", w.a.name+"-backup")}, "")
	gone := bucketObject(w.nameOfSeed(t, w.name+"-gone"), w.name+"-gone", "")
	eventually(t, waitTimeout, func(ctx context.Context) error {
		return w.isAuthorized(ctx, newcomer, "delete", "seeds", "", w.name+"-gone")
	})
	eventually(t, waitTimeout, func(ctx context.Context) error {
		return w.isAuthorized(ctx, w.gardenletA, "delete", "seeds", "", managed.GetName())
	})
	for _, row := range []restrictionRow{
		{"BackupBucket named as its Seed's UID", newcomer, "delete", gone, "allow", ""},
		{"another BackupBucket of its seed", w.gardenletA, "delete", bucket, "reject", "UID"},
		{"BackupBucket of another seed", w.gardenletA, "delete", bucketObject(w.b.uid, w.b.name, ""), "no opinion", ""},
		{"its Seed", newcomer, "delete", leaving.Object, "allow", ""},
		{"Seed of a ManagedSeed that stays", w.gardenletA, "delete", managed.Object, "reject", "only while"},
	} {
		w.tryRestriction(t, row)
	}
	managedSeeds := w.at("managedseeds", "garden")
	_, err = managedSeeds.Patch(t.Context(), managed.GetName(), "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":["e2e.gardener.cloud/test"],"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`),
		metav1.PatchOptions{})
	must(t, err)
	must(t, managedSeeds.Delete(t.Context(), managed.GetName(), metav1.DeleteOptions{}))
	w.tryRestriction(t, restrictionRow{"Seed of a ManagedSeed that goes", w.gardenletA, "delete", managed.Object, "allow", ""})
	return nil
}

// nameOfSeed returns the name of a Seed's BackupBucket, which is the Seed's UID.
func (w *accessWorld) nameOfSeed(t *testing.T, seed string) string {
	t.Helper()
	obj, err := w.at("seeds", "").Get(t.Context(), seed, metav1.GetOptions{})
	must(t, err)
	return string(obj.GetUID())
}
