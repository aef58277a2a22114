package restriction

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	k8sauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// access implements Access with the dependency graph of a landscape and the real authorizer.
type access struct{ w *world }

func (a access) MayDelete(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace,
	name string) (bool, string, error) {
	if err := a.w.fail["graph"]; err != nil {
		return false, "", err
	}
	g := a.w.graph()
	decision, reason, err := authorizer.New(g, authorizer.ReadsSeed).Authorize(ctx, k8sauthorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: who.Username, Groups: who.Groups}, Verb: "delete", ResourceRequest: true,
		APIGroup: resource.Group, APIVersion: "v1", Resource: resource.Resource, Namespace: namespace, Name: name,
	})
	if decision != k8sauthorizer.DecisionAllow {
		return false, reason, err
	}
	kinds := map[string]graph.Kind{"secrets": graph.KindSecret, "configmaps": graph.KindConfigMap,
		"internalsecrets": graph.KindInternalSecret, "shootstates": graph.KindShootState}
	for other := range a.w.objects[seeds.resource] {
		if other.Name != seedidentity.OfAuthentication(who).Seed &&
			g.HasPath(graph.Vertex{Kind: kinds[resource.Resource], Namespace: namespace, Name: name}, other.Name) {
			return false, "seed " + other.Name + " has a path to it too", nil
		}
	}
	return true, "", err
}

func (a access) MayRead(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) bool {
	decision, _, _ := authorizer.New(a.w.graph(), authorizer.ReadsSeed).Authorize(ctx, k8sauthorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: who.Username, Groups: who.Groups}, Verb: "get", ResourceRequest: true,
		APIGroup: resource.Group, APIVersion: "v1", Resource: resource.Resource, Namespace: namespace, Name: name,
	})
	return decision == k8sauthorizer.DecisionAllow
}

func (a access) OtherSeed(_ context.Context, who authenticationv1.UserInfo, _ schema.GroupResource, namespace, name string) (bool, error) {
	g, own := a.w.graph(), seedidentity.OfAuthentication(who).Seed
	for other := range a.w.objects[seeds.resource] {
		if other.Name != own && !g.HasPath(graph.Vertex{Kind: graph.KindSeed, Name: other.Name}, own) &&
			g.HasPath(graph.Vertex{Kind: graph.KindSecret, Namespace: namespace, Name: name}, other.Name) {
			return true, a.w.fail["graph"]
		}
	}
	return false, a.w.fail["graph"]
}

func ownedBy[P object](kind, name, uid string, obj P) object {
	apiVersion := map[string]string{"Shoot": "core.gardener.cloud/v1beta1", "BackupBucket": "core.gardener.cloud/v1beta1",
		"ManagedSeed": "seedmanagement.gardener.cloud/v1alpha1"}[kind]
	if apiVersion == "" {
		apiVersion = "v1"
	}
	obj.SetOwnerReferences(
		append(obj.GetOwnerReferences(), metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid)}))
	return obj
}

func landscapes(name string) object {
	return secret("garden", name, func(s *corev1.Secret) { s.Labels = map[string]string{constants.GardenRole: "internal-domain"} })
}

func issuerSecret(name, namespace, shoot string) object {
	return secret(corev1beta1.GardenerShootIssuerNamespace, name, func(s *corev1.Secret) {
		s.Labels = map[string]string{
			constants.LabelDiscoveryPublic: constants.LabelPublicKeysServiceAccount,
			constants.LabelShootNamespace:  namespace, constants.LabelShootName: shoot,
		}
	})
}

// referring returns a landscape in which shoots of garden-dev refer to more objects: one on a to the Secret and
// ConfigMap used, and together with one on b to the Secret shared.
func referring() *world {
	to := func(kind, name string) corev1beta1.NamedResourceReference {
		ref := corev1beta1.NamedResourceReference{Name: kind + name}
		ref.ResourceRef.APIVersion, ref.ResourceRef.Kind, ref.ResourceRef.Name = "v1", kind, name
		return ref
	}
	uses := func(refs ...corev1beta1.NamedResourceReference) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Spec.Resources = refs }
	}
	return landscape().put(shoots.resource,
		shootOn("garden-dev", "on-a", "a", uses(to("Secret", "used"), to("ConfigMap", "used"), to("Secret", "shared"))),
		shootOn("garden-dev", "on-b", "b", uses(to("Secret", "shared"))))
}

// TestDeleteExisting checks the deletion of objects of kinds that the graph does not watch: a gardenlet may delete an
// object that it could have created, that has a path to its seed only, or whose owners are gone.
func TestDeleteExisting(t *testing.T) {
	const belongs, path = `object does not belong to seed "a"`, "no path"
	inSecret := func(namespace, name string) object { return secret(namespace, name) }
	inConfigMap := func(namespace, name string) object { return named[corev1.ConfigMap](namespace, name) }
	inInternal := func(namespace, name string) object { return named[corev1beta1.InternalSecret](namespace, name) }
	inState := func(namespace, name string) object { return named[corev1beta1.ShootState](namespace, name) }
	for _, test := range []struct {
		what                        string
		resource                    resourceRule
		object                      object
		gardenlet, other, extension int32
		why                         string
	}{
		// Kept for a shoot: of its seed, by its spec or its status.
		{"", secrets, inSecret("garden-dev", "on-a.ca-cluster"), allow, refuse, refuse, ""},
		{"", secrets, inSecret("garden-dev", "on-a.ssh-keypair.old"), allow, refuse, refuse, ""},
		{"", secrets, inSecret("garden-dev", "on-b.monitoring"), refuse, allow, refuse, path},
		{"on its way", secrets, inSecret("garden-dev", "to-b.monitoring"), allow, allow, refuse, ""},
		{"of another namespace", secrets, inSecret("garden-other", "on-a.ca-cluster"), refuse, refuse, refuse, path},
		{"", configMaps, inConfigMap("garden-dev", "on-a.ca-cluster"), allow, refuse, refuse, ""},
		{"", configMaps, inConfigMap("garden-dev", "on-b.ca-kubelet"), refuse, allow, refuse, path},
		{"a Secret's suffix", configMaps, inConfigMap("garden-dev", "on-a.monitoring"), refuse, refuse, refuse, path},
		{"", internalSecrets, inInternal("garden-dev", "on-a.ca-client"), allow, refuse, refuse, ""},
		{"", internalSecrets, inInternal("garden-dev", "on-b.ca-client"), refuse, allow, refuse, path},
		{"", shootStates, inState("garden-dev", "on-a"), allow, refuse, refuse, ""},
		{"", shootStates, inState("garden-dev", "on-b"), refuse, allow, refuse, path},
		{"on its way", shootStates, inState("garden-dev", "to-b"), allow, allow, refuse, ""},
		{"without shoot", shootStates, inState("garden-dev", "gone"), refuse, refuse, refuse, path},

		// Generated for a BackupBucket, although the bucket's status does not say so.
		{"", secrets, inSecret("garden", "generated-bucket-uid-seed-a"), allow, refuse, refuse, ""},
		{"in a project", secrets, inSecret("garden-dev", "generated-bucket-uid-seed-a"), refuse, refuse, refuse, path},
		{"without bucket", secrets, inSecret("garden", "generated-bucket-none"), refuse, refuse, refuse, path},

		// The backup secret of a ManagedSeed: of the seed of its shoot, although it leads to the ManagedSeed's own as well.
		{"", secrets, controlled("child", "backup-child"), allow, refuse, refuse, ""},
		{"", secrets, controlled("grown", "backup-grown"), allow, refuse, refuse, ""},
		{"", secrets, controlled("of-b", "backup-of-b"), refuse, allow, refuse, path},

		// The issuer's public keys, although the shoot requests no managed issuer; and those of a deleted shoot.
		{"", secrets, issuerSecret("dev--uid-on-a", "garden-dev", "on-a"), allow, refuse, refuse, ""},
		{"", secrets, issuerSecret("dev--uid-on-b", "garden-dev", "on-b"), refuse, allow, refuse, path},
		{"on its way", secrets, issuerSecret("dev--uid-to-b", "garden-dev", "to-b"), allow, allow, refuse, ""},
		{"of a shoot that has gone", secrets, issuerSecret("dev--uid-gone", "garden-dev", "gone"), allow, allow, refuse, ""},
		{"of a shoot that was made again", secrets, issuerSecret("dev--before", "garden-dev", "on-b"), allow, allow, refuse, ""},
		{"without labels", secrets, inSecret(corev1beta1.GardenerShootIssuerNamespace, "dev--uid-on-a"), allow, refuse, refuse, ""},
		{"without UID", secrets, issuerSecret("keys", "garden-dev", "gone"), refuse, refuse, refuse, path},

		// Objects of a deleted shoot, by the rules of the garbage collector.
		{"owner gone", secrets, ownedBy("Shoot", "gone", "1", inSecret("garden-dev", "gone.ca-cluster")), allow, allow, refuse, ""},
		{"owner made again", configMaps, ownedBy("Shoot", "on-b", "before", inConfigMap("garden-dev", "x")), allow, allow, refuse, ""},
		{"bucket gone", secrets, ownedBy("BackupBucket", "none", "1", inSecret("garden", "generated-bucket-none")), allow, allow, refuse, ""},
		{"ManagedSeed gone", secrets, ownedBy("ManagedSeed", "none", "1", inSecret("garden", "backup-none")), allow, allow, refuse, ""},
		{"owner there", internalSecrets, ownedBy("Shoot", "on-b", "uid-on-b", inInternal("garden-dev", "x")), refuse, refuse, refuse, path},
		{"bucket there", secrets, ownedBy("BackupBucket", "uid-seed-b", "", inSecret("garden", "x")), refuse, refuse, refuse, path},
		{"one owner there", secrets, ownedBy("Shoot", "on-b", "uid-on-b", ownedBy("Shoot", "gone", "1", inSecret("garden-dev", "x"))),
			refuse, refuse, refuse, path},
		{"owner in another namespace", secrets, ownedBy("Shoot", "on-b", "uid-on-b", inSecret("garden-other", "x")), allow, allow, refuse, ""},
		{"owner of another kind", secrets, ownedBy("ConfigMap", "gone", "1", inSecret("garden-dev", "x")), refuse, refuse, refuse, path},
		{"owner without UID", secrets, ownedBy("Shoot", "gone", "", inSecret("garden-dev", "x")), refuse, refuse, refuse, path},
		{"no owner", secrets, inSecret("garden-dev", "gone.ca-cluster"), refuse, refuse, refuse, path},

		// Objects with a path to the seed, and to no other.
		{"", secrets, inSecret("garden-dev", "used"), allow, refuse, refuse, ""},
		{"", configMaps, inConfigMap("garden-dev", "used"), allow, refuse, refuse, ""},
		{"and by a's, while it reads the bucket", secrets, inSecret("garden", "backup-b"), refuse, refuse, refuse, belongs},
		{"by two seeds", secrets, inSecret("garden-dev", "shared"), refuse, refuse, refuse, belongs},
		{"by all seeds", secrets, inSecret("garden", "dns"), refuse, refuse, refuse, belongs},
		{"", configMaps, inConfigMap("kube-system", "cluster-identity"), refuse, refuse, refuse, "all seeds share"},
		{"labelled", secrets, landscapes("backup-a"), refuse, refuse, refuse, "landscape's"},
		{"bootstrap token", secrets, inSecret("kube-system", bootstraprules.TokenSecret("garden", "a")), allow, refuse, refuse, ""},
		{"bootstrap token of a ManagedSeed", secrets, inSecret("kube-system", bootstraprules.TokenSecret("garden", "child")),
			allow, refuse, refuse, ""},

		// Objects to which nothing refers.
		{"unreferenced", secrets, inSecret("garden", "x"), refuse, refuse, refuse, path},
		{"unreferenced", secrets, inSecret("seed-a", "x"), refuse, refuse, refuse, path},
		{"unreferenced", configMaps, inConfigMap("kube-system", "x"), refuse, refuse, refuse, path},
		{"unreferenced", internalSecrets, inInternal("garden-dev", "x"), refuse, refuse, refuse, path},
	} {
		t.Run(test.resource.resource.Resource+"/"+keyOf(test.object).String()+" "+test.what, func(t *testing.T) {
			checkColumns(t, referring(), test.why, map[*authenticationv1.UserInfo]int32{
				&gardenletA: test.gardenlet, &gardenletB: test.other, &extensionA: test.extension, &neither: allow,
			}, func(user authenticationv1.UserInfo) *admissionv1.AdmissionRequest {
				return deletion(test.resource, user, test.object)
			})
		})
	}
}

// TestDeleteWithOneSeed checks that the only seed may not delete objects of the landscape.
func TestDeleteWithOneSeed(t *testing.T) {
	w := landscape()
	for key := range w.objects[seeds.resource] {
		if key.Name != "a" {
			delete(w.objects[seeds.resource], key)
		}
	}
	response := w.handle(deletion(configMaps, gardenletA, named[corev1.ConfigMap]("kube-system", "cluster-identity")))
	if verdict(t, response) != refuse || !strings.Contains(message(response), "identity of the garden") {
		t.Errorf("got %v", response)
	}
}

// TestDeleteFailsClosed checks that the deletion is not allowed if a lookup fails, and that the answer is a server
// error.
func TestDeleteFailsClosed(t *testing.T) {
	for _, resource := range []resourceRule{secrets, configMaps, internalSecrets, shootStates} {
		obj := resource.newObject()
		obj.SetNamespace("garden-dev")
		obj.SetName("on-a")
		for what, change := range map[string]struct {
			spoil func(*admissionv1.AdmissionRequest)
			want  int32
		}{
			"no name":      {func(r *admissionv1.AdmissionRequest) { r.Name = "" }, refuse},
			"no oldObject": {func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = nil }, malformed},
			"another's":    {func(r *admissionv1.AdmissionRequest) { r.Name = "on-a.ca-cluster" }, malformed},
			"not JSON":     {func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = []byte("{") }, malformed},
			"subresource":  {func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }, malformed},
		} {
			req := deletion(resource, gardenletA, obj)
			change.spoil(req)
			if response := landscape().handle(req); verdict(t, response) != change.want {
				t.Errorf("%s of %s: got %d: %s", what, resource.resource.Resource, verdict(t, response), message(response))
			}
		}
		w := landscape()
		w.fail["graph"] = errors.New("not synced")
		obj.SetName("x")
		if response := w.handle(deletion(resource, gardenletA, obj)); verdict(t, response) != broken ||
			!strings.Contains(message(response), "not synced") {
			t.Errorf("%s without the graph: %v", resource.resource.Resource, response)
		}
		w = landscape()
		w.fail["shoots"] = errors.New("no connection")
		obj = ownedBy("Shoot", "gone", "1", obj)
		if response := w.handle(deletion(resource, gardenletA, obj)); verdict(t, response) != broken {
			t.Errorf("%s without the shoots: %v", resource.resource.Resource, response)
		}
		if response := New(landscape(), nil, nil).Handle(t.Context(), deletion(resource, gardenletA, namedLike(resource))); verdict(
			t, response) != refuse {
			t.Errorf("%s without access: %v", resource.resource.Resource, response)
		}
	}
}

func namedLike(resource resourceRule) object {
	obj := resource.newObject()
	obj.SetNamespace("garden-dev")
	obj.SetName("x")
	return obj
}

// TestDeleteOfALeavingManagedSeed checks that the parent seed may delete the backup secret of a ManagedSeed that is
// being deleted.
func TestDeleteOfALeavingManagedSeed(t *testing.T) {
	w := landscape().put(managedSeeds.resource, managedSeed("leaving", "on-a", func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	}))
	if response := w.handle(deletion(secrets, gardenletA, controlled("leaving", "backup-leaving"))); verdict(t, response) != allow {
		t.Errorf("got %v", response)
	}
	if response := w.handle(deletion(secrets, gardenletA, secret("garden", "backup-leaving"))); verdict(t, response) != refuse {
		t.Errorf("got %v for a Secret that the ManagedSeed does not control", response)
	}
}

func controlled(managedSeed, name string) object {
	s := secret("garden", name)
	s.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "seedmanagement.gardener.cloud/v1alpha1", Kind: "ManagedSeed",
		Name: managedSeed, UID: types.UID("uid-managed-" + managedSeed), Controller: ptr.To(true)}})
	return s
}

// TestDeleteOwnBootstrapToken checks that a gardenlet may delete its bootstrap token, although its parent has a path to
// the token until its Seed exists.
func TestDeleteOwnBootstrapToken(t *testing.T) {
	child := authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:child", Groups: []string{"gardener.cloud:system:seeds"}}
	token := bootstraprules.TokenSecret("garden", "child")
	checkColumns(t, referring(), "", map[*authenticationv1.UserInfo]int32{&child: allow, &gardenletA: allow, &gardenletB: refuse},
		func(user authenticationv1.UserInfo) *admissionv1.AdmissionRequest {
			return deletion(secrets, user, secret("kube-system", token))
		})
	for namespace, name := range map[string]string{"garden": token, "kube-system": bootstraprules.TokenSecret("garden", "grown")} {
		if response := referring().handle(deletion(secrets, child, secret(namespace, name))); response.Allowed {
			t.Errorf("it may delete %s/%s", namespace, name)
		}
	}
}
