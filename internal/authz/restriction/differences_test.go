package restriction

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestReferenceToWorkloadIdentity checks that the label of a WorkloadIdentity, like that of a Secret, determines which
// seed may refer to it.
func TestReferenceToWorkloadIdentity(t *testing.T) {
	for label, want := range map[string]int32{"a": allow, "b": refuse} {
		w := landscape().put(workloadIdentityTokens.resource, named("garden", "wi", func(i *securityv1alpha1.WorkloadIdentity) {
			i.Labels = map[string]string{constants.LabelPrefixSeedName + label: "true"}
		}))
		changed := seed("a", func(s *corev1beta1.Seed) {
			s.Spec.Backup.CredentialsRef = &corev1.ObjectReference{APIVersion: "security.gardener.cloud/v1alpha1",
				Kind: "WorkloadIdentity", Namespace: "garden", Name: "wi"}
		})
		if response := w.handle(update(seeds, "", gardenletA, seed("a"), changed)); verdict(t, response) != want {
			t.Errorf("labelled for %s: %s", label, message(response))
		}
	}
}

// TestTokenOfWorkloadIdentity checks that the context object of a token must belong to the seed.
func TestTokenOfWorkloadIdentity(t *testing.T) {
	about := func(kind, namespace, name string) *securityv1alpha1.ContextObject {
		object := &securityv1alpha1.ContextObject{APIVersion: "core.gardener.cloud/v1beta1", Kind: kind, Name: name}
		if namespace != "" {
			object.Namespace = &namespace
		}
		return object
	}
	for _, test := range []struct {
		about *securityv1alpha1.ContextObject
		want  int32
	}{
		{nil, allow},
		{about("Shoot", "garden-dev", "on-a"), allow}, {about("Shoot", "garden-dev", "to-b"), allow},
		{about("Shoot", "garden-dev", "on-b"), refuse},
		{about("Shoot", "garden-dev", "none"), refuse}, {about("Seed", "", "a"), allow}, {about("Seed", "", "b"), refuse},
		{about("BackupBucket", "", "uid-seed-a"), allow}, {about("BackupBucket", "", "uid-seed-b"), refuse},
		{about("BackupEntry", "garden-dev", "on-a--1"), allow}, {about("BackupEntry", "garden-dev", "none"), refuse},
		{about("Project", "", "dev"), refuse}, {&securityv1alpha1.ContextObject{APIVersion: "v1", Kind: "Seed", Name: "a"}, refuse},
	} {
		req := requestFor(workloadIdentityTokens, admissionv1.Create, "token", gardenletA, "garden-dev", "wi")
		req.Object = encode(&securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ContextObject: test.about}})
		if response := landscape().handle(req); verdict(t, response) != test.want {
			t.Errorf("%v: got %d: %s", test.about, verdict(t, response), message(response))
		}
	}
}

// TestCapOfReferences checks that an object may have at most maxReferences references, and that no more objects are
// read for the decision.
func TestCapOfReferences(t *testing.T) {
	for count, want := range map[int]int32{maxReferences - 5: allow, 1000: refuse} {
		w := landscape()
		many := seed("a", func(s *corev1beta1.Seed) {
			for i := range count {
				name := fmt.Sprintf("many-%d", i)
				w.put(secrets.resource,
					named("garden", name, func(s *corev1.Secret) { s.Labels = map[string]string{constants.LabelPrefixSeedName + "a": "true"} }))
				s.Spec.DNS.Defaults = append(s.Spec.DNS.Defaults, corev1beta1.SeedDNSProviderConfig{CredentialsRef: *secretRef("garden", name)})
			}
		})
		r := &counter{world: w}
		response := New(r, access{w}, nil).Handle(t.Context(), update(seeds, "", gardenletA, seed("a"), many))
		if verdict(t, response) != want || want == refuse && !strings.Contains(message(response), "at most 50") {
			t.Errorf("%d references: %s", count, message(response))
		}
		if r.reads > maxReferences+3 {
			t.Errorf("%d references: %d objects are read", count, r.reads)
		}
	}
}

type counter struct {
	*world
	reads int
}

func (c *counter) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, obj runtime.Object) error {
	c.reads++
	return c.world.Get(ctx, resource, namespace, name, obj)
}

// TestLabelsOfAccounts checks that an account may have only the label with the registration of the extension that is
// installed on the seed.
func TestLabelsOfAccounts(t *testing.T) {
	w := landscape()
	for name, on := range map[string]string{"x-1": "a", "y-1": "b"} {
		w.put(controllerInstallations.resource, named("", name, func(i *corev1beta1.ControllerInstallation) {
			i.Spec.SeedRef, i.Spec.RegistrationRef.Name = &corev1.ObjectReference{Name: on}, strings.TrimSuffix(name, "-1")
		}))
	}
	for _, test := range []struct {
		name   string
		labels map[string]string
		want   int32
	}{
		{"extension-x-1", map[string]string{constants.LabelControllerRegistrationName: "x"}, allow},
		{"extension-x-1", nil, allow},
		{"extension-x-1", map[string]string{constants.LabelControllerRegistrationName: "y"}, refuse},
		{"extension-y-1", map[string]string{constants.LabelControllerRegistrationName: "y"}, refuse},
		{"extension-z-1", map[string]string{constants.LabelControllerRegistrationName: "x"}, refuse},
		{"extension-x-1", map[string]string{"selected": "true"}, refuse},
		{"other", map[string]string{constants.LabelControllerRegistrationName: "x"}, refuse},
	} {
		labelled := named("seed-a", test.name, func(a *corev1.ServiceAccount) { a.Labels = test.labels })
		for _, req := range []*admissionv1.AdmissionRequest{
			creation(serviceAccounts, gardenletA, labelled), update(serviceAccounts, "", gardenletA, account("seed-a", test.name), labelled),
		} {
			if response := w.handle(req); verdict(t, response) != test.want {
				t.Errorf("%s %s with %v: %s", req.Operation, test.name, test.labels, message(response))
			}
		}
	}
}

// TestManagedSeedsSecretAlone checks that the parent may write the backup Secret that its ManagedSeed controls, unless
// another seed uses it.
func TestManagedSeedsSecretAlone(t *testing.T) {
	own, shared := controlled("child", "backup-child").(*corev1.Secret), landscape()
	shared.put(backupBuckets.resource, named("", "x", func(b *corev1beta1.BackupBucket) {
		b.Spec.SeedName, b.Spec.CredentialsRef = ptr.To("b"), secretRef("garden", "backup-child")
	}))
	foreignSecret := secret("garden", "backup-child").(*corev1.Secret)
	for _, test := range []struct {
		what           string
		w              *world
		old            *corev1.Secret
		update, delete int32
	}{
		{"its own", landscape(), own, allow, allow},
		{"not controlled", landscape(), foreignSecret, refuse, allow}, // the Secret leads to no other seed
		{"shared", shared, own, refuse, refuse},
		{"shared, not controlled", shared, foreignSecret, refuse, refuse},
	} {
		written := changed(test.old, func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte("x")} })
		if got := verdict(t, test.w.handle(update(secrets, "", gardenletA, test.old, written))); got != test.update {
			t.Errorf("%s: update: %d", test.what, got)
		}
		if got := verdict(t, test.w.handle(deletion(secrets, gardenletA, test.old))); got != test.delete {
			t.Errorf("%s: delete: %d", test.what, got)
		}
	}
}

// TestMayDelete checks that the deletion of an object that does not exist is decided by its name.
func TestMayDelete(t *testing.T) {
	w := landscape()
	w.put(backupEntries.resource, entry("fresh", "b", "uid-seed-b", ""))
	h := New(w, access{w}, nil)
	for _, test := range []struct {
		rule            resourceRule
		namespace, name string
		want            bool
	}{
		{backupEntries, "garden-dev", "on-a--1", true}, {backupEntries, "garden-dev", "fresh", false},
		{backupEntries, "garden-dev", "none", false},
		{backupBuckets, "", "uid-seed-a", true}, {backupBuckets, "", "none", false},
		{secrets, "garden-dev", "on-a.monitoring", true}, {secrets, "garden-dev", "on-b.monitoring", false},
		{secrets, "garden-dev", "none", false},
		{secrets, corev1beta1.GardenerShootIssuerNamespace, "dev--uid-on-b", false}, {shoots, "garden-dev", "on-a", false},
	} {
		got, err := h.MayDelete(t.Context(), gardenletA, test.rule.resource.GroupResource(), test.namespace, test.name)
		if err != nil || got != test.want {
			t.Errorf("%s %s: %t, %v", test.rule.resource.Resource, key(test.namespace, test.name), got, err)
		}
		if got, _ := h.MayDelete(t.Context(), extensionA, test.rule.resource.GroupResource(), test.namespace, test.name); got {
			t.Errorf("an extension may delete %s %s", test.rule.resource.Resource, key(test.namespace, test.name))
		}
	}
}

// TestGardenletAsksForNothing checks that a gardenlet can request a kubeconfig neither with a new Gardenlet nor with a
// changed one.
func TestGardenletAsksForNothing(t *testing.T) {
	renewing := named("garden", "a", func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Annotations = map[string]string{constants.GardenerOperation: constants.GardenerOperationRenewKubeconfig}
	})
	for _, req := range []*admissionv1.AdmissionRequest{
		creation(gardenlets, gardenletA, renewing),
		update(gardenlets, "", gardenletA, named[seedmanagementv1alpha1.Gardenlet]("garden", "a"), renewing),
		creation(gardenlets, extensionA, renewing),
	} {
		if got := verdict(t, landscape().handle(req)); got != refuse {
			t.Errorf("%s by %s: %d", req.Operation, req.UserInfo.Username, got)
		}
	}
}

// TestUIDOfAShoot checks that a gardenlet cannot set another UID in a Shoot's status, because names of the Shoot's
// objects contain it.
func TestUIDOfAShoot(t *testing.T) {
	without := shootOn("garden-dev", "on-a", "a", func(s *corev1beta1.Shoot) { s.Status.UID = "" })
	for uid, want := range map[string]int32{"uid-on-a": allow, "uid-on-b": refuse} {
		with := without.DeepCopy()
		with.Status.UID = types.UID(uid)
		if response := landscape().handle(update(shoots, "status", gardenletA, without, with)); verdict(t, response) != want {
			t.Errorf("%s: %s", uid, message(response))
		}
	}
}
