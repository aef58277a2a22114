package finalizers

import (
	"reflect"
	"strings"
	"testing"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a garden with the reconciler of one kind.
type world struct {
	*testing.T
	client.Client
	*Reconciler
	clock  *testclock.FakePassiveClock
	events chan string
}

func newWorld(t *testing.T, kind string, objects ...client.Object) world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme,
		securityv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(
		&corev1beta1.CloudProfile{}, &corev1beta1.NamespacedCloudProfile{}).Build()
	clock, recorder := testclock.NewFakePassiveClock(start), events.NewFakeRecorder(10)
	for _, k := range Kinds() {
		if k.Name == kind {
			base := kit.Base{Client: c, Reader: c, Clock: clock, Recorder: recorder}
			return world{t, c, &Reconciler{Base: base, Kind: k}, clock, recorder.Events}
		}
	}
	t.Fatalf("there is no kind %s", kind)
	return world{}
}

func (w world) reconcile(obj client.Object) reconcile.Result {
	w.Helper()
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// exists reads the object into obj and reports whether it exists.
func (w world) exists(obj client.Object) bool {
	w.Helper()
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func (w world) delete(obj client.Object) {
	w.Helper()
	if err := w.Client.Delete(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func shoot(namespace string, spec corev1beta1.ShootSpec) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: objectMeta(namespace, "shoot"), Spec: spec}
}

func profileRef(kind, name string) corev1beta1.ShootSpec {
	return corev1beta1.ShootSpec{CloudProfile: &corev1beta1.CloudProfileReference{Kind: kind, Name: name}}
}

func secret() *corev1.Secret { return &corev1.Secret{ObjectMeta: objectMeta("p", "secret")} }

func secretBinding(namespace string, quotas ...corev1.ObjectReference) *corev1beta1.SecretBinding {
	return &corev1beta1.SecretBinding{
		ObjectMeta: objectMeta(namespace, "x"), SecretRef: corev1.SecretReference{Namespace: "p", Name: "secret"},
		Provider: &corev1beta1.SecretBindingProvider{Type: "local,other"}, Quotas: quotas,
	}
}

func credentialsBinding(namespace, apiVersion, kind, name string, quotas ...corev1.ObjectReference) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta: objectMeta(namespace, "x"), Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"}, Quotas: quotas,
		CredentialsRef: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "p", Name: name},
	}
}

// TestInUse checks for each kind which users protect an object named x (in the namespace p, if namespaced), and which
// similar objects do not.
func TestInUse(t *testing.T) {
	quota := corev1.ObjectReference{Namespace: "p", Name: "x"}
	registration := func(deployment string) client.Object {
		return &corev1beta1.ControllerRegistration{ObjectMeta: objectMeta("", "r"), Spec: corev1beta1.ControllerRegistrationSpec{
			Deployment: &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: deployment}}},
		}}
	}
	child := func(parent string) client.Object {
		return &corev1beta1.NamespacedCloudProfile{ObjectMeta: objectMeta("p", "child"),
			Spec: corev1beta1.NamespacedCloudProfileSpec{Parent: corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: parent}}}
	}
	type users map[string]client.Object
	for _, test := range []struct {
		kind         string
		thing        client.Object
		keep, let    users
		dependencies []client.Object
	}{
		{
			kind: "cloudprofile", thing: &corev1beta1.CloudProfile{ObjectMeta: objectMeta("", "x")},
			keep: users{"Shoots p/shoot": shoot("p", profileRef("CloudProfile", "x")),
				"Shoots q/shoot": shoot("q", corev1beta1.ShootSpec{CloudProfileName: ptr.To("x")}), "NamespacedCloudProfiles p/child": child("x")},
			let: users{"other": shoot("p", profileRef("CloudProfile", "y")),
				"namesake": shoot("p", profileRef("NamespacedCloudProfile", "x")), "child": child("y")},
		},
		{
			kind: "namespacedcloudprofile", thing: &corev1beta1.NamespacedCloudProfile{ObjectMeta: objectMeta("p", "x")},
			keep: users{"Shoots p/shoot": shoot("p", profileRef("NamespacedCloudProfile", "x"))},
			let:  users{"namespace": shoot("q", profileRef("NamespacedCloudProfile", "x")), "kind": shoot("p", profileRef("CloudProfile", "x"))},
		},
		{
			kind: "secretbinding", thing: secretBinding("p"), dependencies: []client.Object{secret()},
			keep: users{"Shoots p/shoot": shoot("p", corev1beta1.ShootSpec{SecretBindingName: ptr.To("x")})},
			let: users{"namespace": shoot("q", corev1beta1.ShootSpec{SecretBindingName: ptr.To("x")}),
				"kind": shoot("p", corev1beta1.ShootSpec{CredentialsBindingName: ptr.To("x")})},
		},
		{
			kind: "credentialsbinding", thing: credentialsBinding("p", "v1", "Secret", "secret"), dependencies: []client.Object{secret()},
			keep: users{"Shoots p/shoot": shoot("p", corev1beta1.ShootSpec{CredentialsBindingName: ptr.To("x")})},
			let: users{"namespace": shoot("q", corev1beta1.ShootSpec{CredentialsBindingName: ptr.To("x")}),
				"kind": shoot("p", corev1beta1.ShootSpec{SecretBindingName: ptr.To("x")})},
		},
		{
			kind: "exposureclass", thing: &corev1beta1.ExposureClass{ObjectMeta: objectMeta("", "x")},
			keep: users{"Shoots p/shoot": shoot("p", corev1beta1.ShootSpec{ExposureClassName: ptr.To("x")})},
			let:  users{"other": shoot("p", corev1beta1.ShootSpec{ExposureClassName: ptr.To("y")}), "none": shoot("p", corev1beta1.ShootSpec{})},
		},
		{
			kind: "quota", thing: &corev1beta1.Quota{ObjectMeta: objectMeta("p", "x")},
			keep: users{"SecretBindings q/x": secretBinding("q", quota),
				"CredentialsBindings q/x": credentialsBinding("q", "v1", "Secret", "s", quota)},
			let: users{"other": secretBinding("p", corev1.ObjectReference{Namespace: "q", Name: "x"}),
				"none": credentialsBinding("q", "v1", "Secret", "s")},
		},
		{
			kind: "controllerdeployment", thing: &gardencorev1.ControllerDeployment{ObjectMeta: objectMeta("", "x")},
			keep: users{"ControllerRegistrations r": registration("x")},
			let:  users{"other": registration("y"), "none": &corev1beta1.ControllerRegistration{ObjectMeta: objectMeta("", "r")}},
		},
	} {
		run := func(name string, user client.Object, kept bool) {
			t.Run(test.kind+"/"+name, func(t *testing.T) {
				thing := test.thing.DeepCopyObject().(client.Object)
				w := newWorld(t, test.kind, append(test.dependencies, thing, user)...)
				w.reconcile(thing)
				if w.exists(thing); !reflect.DeepEqual(thing.GetFinalizers(), []string{w.Kind.Finalizer}) {
					t.Fatalf("finalizers %v", thing.GetFinalizers())
				}
				w.delete(thing)
				result := w.reconcile(thing)
				if w.exists(thing) != kept {
					t.Fatalf("kept: %v", !kept)
				}
				if !kept {
					return
				}
				if event := <-w.events; !strings.Contains(event, "ResourceReferenced") || !strings.Contains(event, name) ||
					result.RequeueAfter != DefaultRetry {
					t.Errorf("event %q, again after %s", event, result.RequeueAfter)
				}
				for _, use := range w.Kind.uses {
					if reflect.TypeOf(use.object) == reflect.TypeOf(user) && len(w.releasedBy(use)(t.Context(), user)) != 1 {
						t.Error("the end of the user would not be noticed")
					}
				}
				w.delete(user)
				if w.reconcile(thing); w.exists(thing) {
					t.Error("it stays although no object uses it any more")
				}
			})
		}
		for name, user := range test.keep {
			run(name, user, true)
		}
		for name, user := range test.let {
			run(name, user, false)
		}
	}
}

func TestSettledWhileInDeletionIsLeft(t *testing.T) {
	thing := &corev1beta1.Quota{ObjectMeta: objectMeta("p", "x")}
	thing.Finalizers, thing.DeletionTimestamp = []string{"example.com/other"}, ptr.To(metav1.Now())
	w := newWorld(t, "quota", thing)
	w.reconcile(thing)
	if w.exists(thing); !reflect.DeepEqual(thing.Finalizers, []string{"example.com/other"}) {
		t.Errorf("finalizers %v", thing.Finalizers)
	}
}

func TestShorten(t *testing.T) {
	if got := shorten(strings.Split("l k j i h g f e d c b a", " ")); got != "a, b, c, d, e, f, g, h, i, j and 2 more" {
		t.Error(got)
	}
}
