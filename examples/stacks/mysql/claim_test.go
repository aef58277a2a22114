package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/examples/stacks/internal/sample"
)

func named(kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := object(kind)
	o.SetNamespace("dev")
	o.SetName(name)
	o.Object["spec"] = spec
	return o
}

func class(name string, isDefault bool) *unstructured.Unstructured {
	return named(classKind, name, map[string]any{"default": isDefault, "engineVersion": "8.0", "storageGB": int64(5),
		"credentialsSecretRef": map[string]any{"name": "provider"}})
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func elsewhere(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetNamespace("prod")
	return o
}

type world struct {
	*testing.T
	client.Client
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	return &world{t, fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(object(claimKind), object(serverKind)).Build()}
}

func (w *world) get(o client.Object, name string) bool {
	w.Helper()
	err := w.Get(w.Context(), client.ObjectKey{Namespace: "dev", Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func (w *world) do(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// reconcile reconciles the claim db, and returns it.
func (w *world) reconcile() *unstructured.Unstructured {
	w.Helper()
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "dev", Name: "db"}}
	_, err := (&reconciler{w}).Reconcile(w.Context(), request)
	w.do(err)
	claim := object(claimKind)
	w.get(claim, "db")
	return claim
}

func (w *world) expect(phase, message string) {
	w.Helper()
	claim := w.reconcile()
	if sample.String(claim, "status", "phase") != phase || !strings.Contains(sample.String(claim, "status", "message"), message) {
		w.Errorf("the status is %v, not %s: %s", claim.Object["status"], phase, message)
	}
}

func TestClassOfClaim(t *testing.T) {
	named := map[string]any{"classRef": map[string]any{"name": "small"}}
	credentials := secret("dev", "provider")
	for name, test := range map[string]struct {
		spec    map[string]any
		objects []client.Object
		phase   string
		message string
	}{
		"the default class":              {nil, []client.Object{class("small", false), class("large", true), credentials}, "Ready", "large"},
		"the named class":                {named, []client.Object{class("small", false), class("large", true), credentials}, "Ready", "small"},
		"no class":                       {nil, []client.Object{credentials}, "Pending", "has no default"},
		"no default class":               {nil, []client.Object{class("small", false), credentials}, "Pending", "has no default"},
		"default of another environment": {nil, []client.Object{elsewhere(class("large", true)), credentials}, "Pending", "has no default"},
		"two default classes": {nil, []client.Object{class("small", true), class("large", true), credentials},
			"Pending", "more than one default"},
		"the named class is missing": {named, []client.Object{class("large", true), credentials}, "Pending",
			"MySQLInstanceClass small does not exist"},
		"no credentials": {nil, []client.Object{class("large", true)}, "Pending", "Secret provider with the credentials"},
		"credentials of another environment": {nil, []client.Object{class("large", true), secret("prod", "provider")}, "Pending",
			"Secret provider with the credentials"},
		"a Secret of others": {nil, []client.Object{class("large", true), credentials, secret("dev", "db")}, "Pending",
			"Secret db exists already"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(test.objects, claim(test.spec))...)
			w.expect(test.phase, test.message)
			own := secret("dev", "db")
			if found := w.get(own, "db") && len(own.Data["password"]) > 0; found != (test.phase == "Ready") {
				t.Errorf("there is a connection Secret: %t", found)
			}
		})
	}
}

func claim(spec map[string]any) *unstructured.Unstructured {
	c := named(claimKind, "db", spec)
	c.SetUID("1234")
	return c
}

// TestLifeOfClaim: a claim is served when it can be, follows its class, keeps its password, and leaves nothing.
func TestLifeOfClaim(t *testing.T) {
	w := newWorld(t, claim(map[string]any{"engineVersion": "8.4"}), class("large", true), secret("dev", "foreign"))
	w.expect("Pending", "credentials")
	w.do(w.Create(w.Context(), secret("dev", "provider")))
	w.expect("Ready", "large")
	first := &corev1.Secret{}
	w.get(first, "db")
	if string(first.Data["endpoint"]) != "db.dev.mysql.example.org" || string(first.Data["port"]) != "3306" ||
		len(first.Data["password"]) < 20 ||
		!metav1.IsControlledBy(first, claim(nil)) {
		t.Errorf("%+v", first)
	}
	server := object(serverKind)
	w.get(server, "db")
	size, _, _ := unstructured.NestedInt64(server.Object, "spec", "storageGB")
	if sample.String(server, "spec", "engineVersion") != "8.4" || size != 5 || sample.String(server, "status", "address") == "" {
		t.Errorf("%+v", server)
	}

	larger := class("large", true)
	w.get(larger, "large")
	w.do(unstructured.SetNestedField(larger.Object, int64(50), "spec", "storageGB"))
	w.do(w.Update(w.Context(), larger))
	changed := object(claimKind)
	w.get(changed, "db")
	w.do(unstructured.SetNestedField(changed.Object, "other", "spec", "writeConnectionSecretToRef", "name"))
	w.do(w.Update(w.Context(), changed))
	w.expect("Ready", "large")
	w.get(server, "db")
	if size, _, _ := unstructured.NestedInt64(server.Object, "spec", "storageGB"); size != 50 {
		t.Errorf("the server does not follow its class: %v", server.Object["spec"])
	}
	if w.get(secret("dev", "db"), "db") || !w.get(secret("dev", "other"), "other") {
		t.Error("the Secret does not follow its name")
	}

	second := &corev1.Secret{}
	w.get(second, "other")
	w.expect("Ready", "large")
	again := &corev1.Secret{}
	if w.get(again, "other"); again.ResourceVersion != second.ResourceVersion {
		t.Errorf("the Secret changes: %+v, %+v", second, again)
	}
	w.do(w.Delete(w.Context(), changed))
	w.reconcile()
	if w.get(secret("dev", "other"), "other") || w.get(object(serverKind), "db") || w.get(object(claimKind), "db") {
		t.Error("the claim leaves something")
	}
	if !w.get(secret("dev", "foreign"), "foreign") || !w.get(secret("dev", "provider"), "provider") {
		t.Error("a Secret of others is deleted")
	}
}

func TestClaimsOfCredentials(t *testing.T) {
	w := newWorld(t, claim(nil), class("large", true), elsewhere(class("large", true)))
	for name, want := range map[string]int{"provider": 1, "other": 0} {
		if got := (&reconciler{w}).claimsOfCredentials(t.Context(), secret("dev", name)); len(got) != want {
			t.Errorf("the Secret %s concerns %v", name, got)
		}
	}
}
