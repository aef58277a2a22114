package restriction

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The users. Objects of the tables belong to seed a, if to any.
var (
	gardenletA = authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:a",
		Groups: []string{"gardener.cloud:system:seeds", "system:authenticated"}}
	gardenletB = authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:b",
		Groups: []string{"gardener.cloud:system:seeds", "system:authenticated"}}
	extensionA = authenticationv1.UserInfo{Username: "system:serviceaccount:seed-a:extension-x",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-a", "system:authenticated"}}
	neither = authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:a", Groups: []string{"system:authenticated"}}
)

// Resources in the graph without rules of the restriction.
var (
	secretBindings      = corev1beta1.SchemeGroupVersion.WithResource("secretbindings")
	credentialsBindings = securityv1alpha1.SchemeGroupVersion.WithResource("credentialsbindings")
)

// world is a landscape. It implements Reader.
type world struct {
	objects map[schema.GroupVersionResource]map[types.NamespacedName]object
	fail    map[string]error // by resource
}

func (w *world) put(resource schema.GroupVersionResource, objects ...object) *world {
	for _, obj := range objects {
		if w.objects[resource] == nil {
			w.objects[resource] = map[types.NamespacedName]object{}
		}
		w.objects[resource][types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = obj
	}
	return w
}

func (w *world) Get(_ context.Context, resource schema.GroupVersionResource, namespace, name string, obj runtime.Object) error {
	if err := w.fail[resource.Resource]; err != nil {
		return err
	}
	found, ok := w.objects[resource][types.NamespacedName{Namespace: namespace, Name: name}]
	if !ok {
		return apierrors.NewNotFound(resource.GroupResource(), name)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (w *world) List(_ context.Context, resource schema.GroupVersionResource, namespace string, list runtime.Object) error {
	if err := w.fail[resource.Resource]; err != nil {
		return err
	}
	var items []runtime.Object
	for key, obj := range w.objects[resource] {
		if namespace == "" || key.Namespace == namespace {
			items = append(items, obj.DeepCopyObject())
		}
	}
	return meta.SetList(list, items)
}

func named[T any, P interface {
	*T
	object
}](namespace, name string, change ...func(P)) P {
	obj := P(new(T))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	for _, c := range change {
		c(obj)
	}
	return obj
}

func secretRef(namespace, name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

func shootOn(namespace, name, seed string, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	return named(namespace, name, append([]func(*corev1beta1.Shoot){func(s *corev1beta1.Shoot) {
		s.UID = types.UID("uid-" + name)
		s.Status.TechnicalID, s.Status.UID = name, "1"
		s.Spec.SeedName = ptr.To(seed)
		s.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
		s.Spec.CredentialsBindingName = ptr.To("credentials")
	}}, change...)...)
}

func restoring(s *corev1beta1.Shoot) {
	s.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeRestore,
		State: corev1beta1.LastOperationStateProcessing}
}

func seed(name string, change ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	return named("", name, append([]func(*corev1beta1.Seed){func(s *corev1beta1.Seed) {
		s.UID = types.UID("uid-seed-" + name)
		s.Spec.Backup = &corev1beta1.Backup{CredentialsRef: secretRef("garden", "backup-"+name)}
		s.Spec.DNS.Provider = &corev1beta1.SeedDNSProvider{CredentialsRef: secretRef("garden", "dns")}
		s.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: now.Add(time.Hour)}
	}}, change...)...)
}

// template returns a gardenlet's configuration with a seed template.
func template(backupSecret string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"GardenletConfiguration",`+
		`"seedConfig":{"spec":{"backup":{"credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":%q}}}}}`, backupSecret)}
}

func managedSeed(name, shoot string, change ...func(*seedmanagementv1alpha1.ManagedSeed)) *seedmanagementv1alpha1.ManagedSeed {
	return named("garden", name, append([]func(*seedmanagementv1alpha1.ManagedSeed){func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.UID = types.UID("uid-managed-" + name)
		m.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: shoot}
		m.Spec.Gardenlet.Config = template("backup-" + name)
		m.Spec.Gardenlet.Bootstrap = ptr.To(seedmanagementv1alpha1.BootstrapToken)
	}}, change...)...)
}

func bucketOf(seed string) *corev1beta1.BackupBucket {
	return named("", "uid-seed-"+seed, func(b *corev1beta1.BackupBucket) {
		b.Spec.SeedName = ptr.To(seed)
		b.Spec.CredentialsRef = secretRef("garden", "backup-"+seed)
	})
}

func entry(name, seed, bucket, shoot string, change ...func(*corev1beta1.BackupEntry)) *corev1beta1.BackupEntry {
	return named("garden-dev", name, append([]func(*corev1beta1.BackupEntry){func(e *corev1beta1.BackupEntry) {
		e.Spec = corev1beta1.BackupEntrySpec{SeedName: ptr.To(seed), BucketName: bucket}
		e.Status.SeedName = ptr.To(seed)
		if shoot != "" {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: shoot,
				UID: types.UID("uid-" + shoot)}}
		}
	}}, change...)...)
}

// landscape returns a landscape with the seeds a and b, and managed seeds: all but of-b on shoots on a.
func landscape() *world {
	w := &world{objects: map[schema.GroupVersionResource]map[types.NamespacedName]object{}, fail: map[string]error{}}
	expired := func(s *corev1beta1.Seed) { s.Status.ClientCertificateExpirationTimestamp.Time = now.Add(-time.Hour) }
	leaving := func(m *seedmanagementv1alpha1.ManagedSeed) { m.DeletionTimestamp = &metav1.Time{Time: now} }
	renewing := func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.Annotations = map[string]string{constants.GardenerOperation: constants.GardenerOperationRenewKubeconfig}
	}
	w.put(seeds.resource, seed("a"), seed("b"), seed("grown"), seed("expired", expired), seed("renewing"),
		seed("leaving"), seed("of-b-leaving"))
	w.put(shoots.resource,
		shootOn("garden-dev", "on-a", "a"), shootOn("garden-dev", "on-b", "b"),
		shootOn("garden-dev", "to-b", "b", func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("a") }),
		shootOn("garden-dev", "restored", "a", restoring), shootOn("garden-dev", "restored-on-b", "b", restoring),
		shootOn("garden", "on-a", "a"), shootOn("garden", "on-b", "b"))
	w.put(managedSeeds.resource,
		managedSeed("child", "on-a"), managedSeed("grown", "on-a"), managedSeed("expired", "on-a"), managedSeed("renewing", "on-a", renewing),
		named("garden-dev", "astray", func(m *seedmanagementv1alpha1.ManagedSeed) {
			m.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "on-a"}
		}),
		managedSeed("of-b", "on-b"), managedSeed("leaving", "on-a", leaving), managedSeed("of-b-leaving", "on-b", leaving))
	w.put(gardenlets.resource, named("garden", "b", func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config = template("backup-b") }),
		named("garden", "d", func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config = template("backup-d") }))
	w.put(backupBuckets.resource, bucketOf("a"), bucketOf("b"), named("", "old", func(b *corev1beta1.BackupBucket) {
		b.Spec.ShootRef, b.Spec.CredentialsRef = &corev1.ObjectReference{Name: "self-hosted"}, secretRef("garden", "backup-old")
		b.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "old"}
	}))
	w.put(backupEntries.resource, entry("on-a--1", "a", "uid-seed-a", "on-a"), entry("to-b--1", "a", "uid-seed-a", "to-b"),
		entry("restored--1", "a", "uid-seed-b", "restored"), entry("idle--1", "a", "uid-seed-b", "on-a"))
	w.put(secrets.resource,
		named("garden", "landscape", func(s *corev1.Secret) { s.Labels = map[string]string{constants.GardenRole: "alerting"} }),
		named("garden", "labelled", func(s *corev1.Secret) {
			s.Labels = map[string]string{constants.LabelPrefixSeedName + "a": "true"}
		}),
		named("garden", "new", func(*corev1.Secret) {}), named("garden", "backup-b", func(*corev1.Secret) {}),
		named("garden", "sa-token", func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken }))
	w.put(secretBindings, named("garden", "infra", func(b *corev1beta1.SecretBinding) {
		b.SecretRef = corev1.SecretReference{Namespace: "garden", Name: "infra"}
	}))
	w.put(credentialsBindings,
		named("garden", "infra2", func(b *securityv1alpha1.CredentialsBinding) { b.CredentialsRef = *secretRef("garden", "infra2") }))
	return w
}

func encode(obj object) runtime.RawExtension {
	raw, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: raw}
}

func requestFor(resource resourceRule, operation admissionv1.Operation, subresource string, user authenticationv1.UserInfo,
	namespace, name string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(resource.kind()), Resource: metav1.GroupVersionResource(resource.resource),
		SubResource: subresource,
		Operation:   operation, UserInfo: user, Namespace: namespace, Name: name,
	}
}

func creation(resource resourceRule, user authenticationv1.UserInfo, obj object) *admissionv1.AdmissionRequest {
	req := requestFor(resource, admissionv1.Create, "", user, obj.GetNamespace(), obj.GetName())
	req.Object = encode(obj)
	return req
}

func update(resource resourceRule, subresource string, user authenticationv1.UserInfo, old, obj object) *admissionv1.AdmissionRequest {
	req := requestFor(resource, admissionv1.Update, subresource, user, obj.GetNamespace(), obj.GetName())
	req.Object, req.OldObject = encode(obj), encode(old)
	return req
}

func deletion(resource resourceRule, user authenticationv1.UserInfo, obj object) *admissionv1.AdmissionRequest {
	req := requestFor(resource, admissionv1.Delete, "", user, obj.GetNamespace(), obj.GetName())
	req.OldObject = encode(obj)
	return req
}

func (w *world) handle(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return New(w, access{w}, testingclock.NewFakePassiveClock(now)).Handle(context.Background(), req)
}

// verdict returns the code of a response.
func verdict(t *testing.T, response *admissionv1.AdmissionResponse) int32 {
	t.Helper()
	if response == nil || response.UID != "1" {
		t.Fatalf("no response to the request: %v", response)
	}
	if response.Allowed {
		return allow
	}
	if response.Result == nil || response.Result.Message == "" ||
		response.Result.Status != metav1.StatusFailure {
		t.Fatalf("refused without a reason: %v", response)
	}
	return response.Result.Code
}

// The values of a verdict.
const (
	allow     int32 = 200
	malformed int32 = 400
	refuse    int32 = 403
	exists    int32 = 409
	broken    int32 = 500
)

func message(response *admissionv1.AdmissionResponse) string {
	if response.Result == nil {
		return ""
	}
	return response.Result.Message
}

func keyOf(obj object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
