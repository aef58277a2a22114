package controllermanager

import (
	"maps"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/references"
)

const referenceNamespace = "garden-dev"

func withFinalizers(namespace, name string, finalizers ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}
}

func ref(apiVersion, kind, name string) autoscalingv1.CrossVersionObjectReference {
	return autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
}

// full returns a Shoot with every kind of reference.
func full() *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: withFinalizers(referenceNamespace, "x", corev1beta1.GardenerName), Spec: corev1beta1.ShootSpec{
		DNS: &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{
			{CredentialsRef: ptr.To(ref("v1", "Secret", "dns"))},
			{CredentialsRef: ptr.To(ref("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "dns"))}, {},
		}},
		Kubernetes: corev1beta1.Kubernetes{KubeAPIServer: &corev1beta1.KubeAPIServerConfig{
			AdmissionPlugins: []corev1beta1.AdmissionPlugin{{KubeconfigSecretName: ptr.To("plugin")}, {}},
			AuditConfig: &corev1beta1.AuditConfig{
				AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}},
			StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
			StructuredAuthorization: &corev1beta1.StructuredAuthorization{
				ConfigMapName: "authorization", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{SecretName: "webhook"}}},
		}},
		Resources: []corev1beta1.NamedResourceReference{
			{ResourceRef: ref("v1", "Secret", "resource")}, {ResourceRef: ref("v1", "ConfigMap", "resource")},
			{ResourceRef: ref("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "resource")},
			{ResourceRef: ref("apps/v1", "Deployment", "no")},
		},
	}}
}

func things(namespace string, finalizers ...string) []client.Object {
	var all []client.Object
	for _, name := range []string{"dns", "plugin", "webhook", "resource"} {
		all = append(all, &corev1.Secret{ObjectMeta: withFinalizers(namespace, name, finalizers...)})
	}
	for _, name := range []string{"audit", "authentication", "authorization", "resource"} {
		all = append(all, &corev1.ConfigMap{ObjectMeta: withFinalizers(namespace, name, finalizers...)})
	}
	for _, name := range []string{"dns", "resource"} {
		all = append(all, &securityv1alpha1.WorkloadIdentity{ObjectMeta: withFinalizers(namespace, name, finalizers...)})
	}
	return all
}

func wantKept(g kittest.Garden, want bool, objects ...client.Object) {
	g.Helper()
	for _, obj := range objects {
		if g.Exists(obj); controllerutil.ContainsFinalizer(obj, references.Finalizer) != want {
			g.Errorf("%T %s: finalizers %v", obj, obj.GetName(), obj.GetFinalizers())
		}
	}
}

func TestKeepsAndReleases(t *testing.T) {
	shoot, used := full(), things(referenceNamespace)
	elsewhere, unused := &corev1.Secret{ObjectMeta: withFinalizers("other", "dns", references.Finalizer)},
		&corev1.Secret{ObjectMeta: withFinalizers(referenceNamespace, "unused", references.Finalizer)}
	second := &corev1beta1.Shoot{ObjectMeta: withFinalizers(referenceNamespace, "y")}
	second.Spec.Resources = []corev1beta1.NamedResourceReference{{ResourceRef: ref("v1", "Secret", "dns")}}
	g := kittest.New(t, append(used, shoot, second, elsewhere, unused)...)
	r := &ShootReference{Base: g.Base()}
	g.MustReconcile(reconcile.AsReconciler(g, r), shoot)
	wantKept(g, true, append(used, shoot, elsewhere)...)
	wantKept(g, false, unused)

	// The objects of a Shoot in deletion are kept as long as a gardenlet may need them.
	g.Must(g.Delete(t.Context(), shoot))
	g.MustReconcile(reconcile.AsReconciler(g, r), shoot)
	wantKept(g, true, append(used, shoot)...)
	g.Exists(shoot)
	controllerutil.RemoveFinalizer(shoot, corev1beta1.GardenerName)
	g.Must(g.Update(t.Context(), shoot))
	g.MustReconcile(reconcile.AsReconciler(g, r), shoot)
	if g.Exists(shoot) {
		t.Error("the Shoot stays")
	}
	wantKept(g, false, used[1:]...)
	wantKept(g, true, used[0])
}

func TestChangedReferences(t *testing.T) {
	shoot, used := full(), things(referenceNamespace, references.Finalizer)
	shoot.Finalizers, shoot.Spec = append(shoot.Finalizers, references.Finalizer), corev1beta1.ShootSpec{}
	g := kittest.New(t, append(used, shoot)...)
	// The API server has another Shoot that the cache does not contain yet.
	ahead := full()
	r := &ShootReference{Base: kit.Base{Client: g, Reader: kittest.New(t, append(things(referenceNamespace, references.Finalizer),
		ahead)...).Client}}
	g.MustReconcile(reconcile.AsReconciler(g, r), shoot)
	wantKept(g, true, used...)
	r.Reader = g
	g.MustReconcile(reconcile.AsReconciler(g, r), shoot)
	wantKept(g, false, append(used, shoot)...)
}

func TestMissingThing(t *testing.T) {
	shoot, used := full(), things(referenceNamespace)
	g := kittest.New(t, append(used[1:], shoot)...)
	if _, err := g.Reconcile(reconcile.AsReconciler(g, &ShootReference{Base: g.Base()}), shoot); err == nil {
		t.Error("no error although a Secret is missing")
	}
	wantKept(g, true, append(used[1:], shoot)...)
}

func TestGardenIsShared(t *testing.T) {
	ofSeed, pull, unused := &corev1.Secret{ObjectMeta: withFinalizers("garden", "seed", references.Finalizer)}, &corev1.Secret{
		ObjectMeta: withFinalizers("garden", "pull", references.Finalizer)}, &corev1.Secret{ObjectMeta: withFinalizers("garden", "unused",
		references.Finalizer)}
	seed := &corev1beta1.Seed{ObjectMeta: withFinalizers("", "seed"),
		Spec: corev1beta1.SeedSpec{Resources: []corev1beta1.NamedResourceReference{{ResourceRef: ref("v1", "Secret", "seed")}}}}
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: withFinalizers("", "d"), Helm: &gardencorev1.HelmControllerDeployment{
		OCIRepository: &gardencorev1.OCIRepository{PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}}}}
	shoot := &corev1beta1.Shoot{ObjectMeta: withFinalizers("garden", "x")}
	g := kittest.New(t, ofSeed, pull, unused, seed, deployment, shoot)
	g.MustReconcile(reconcile.AsReconciler(g, &ShootReference{Base: g.Base()}), shoot)
	wantKept(g, true, ofSeed, pull)
	wantKept(g, false, unused, shoot)
}

func TestChangedShootReference(t *testing.T) {
	other, done := full(), full()
	other.Spec.DNS.Providers[0].CredentialsRef.Name = "other"
	done.DeletionTimestamp, done.Finalizers = &metav1.Time{Time: kittest.Start}, []string{references.Finalizer}
	plain := full()
	plain.Spec.Region = "there"
	for after, want := range map[*corev1beta1.Shoot]bool{full(): false, plain: false, other: true, done: true} {
		if got := shootReferencesChanged().Update(event.UpdateEvent{ObjectOld: full(), ObjectNew: after}); got != want {
			t.Errorf("%v", got)
		}
	}
	if got := ofShoot(full()); len(got) != 10 || !maps.Equal(got, ofShoot(full())) {
		t.Errorf("%v", got)
	}
}
