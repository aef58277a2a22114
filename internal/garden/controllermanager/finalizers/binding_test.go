package finalizers

import (
	"reflect"
	"slices"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	localLabel   = "provider.shoot.gardener.cloud/local"
	otherLabel   = "provider.shoot.gardener.cloud/other"
	secretMark   = "reference.gardener.cloud/secretbinding"
	bindingsMark = "reference.gardener.cloud/credentialsbinding"
)

func (w world) wantMarks(obj client.Object, finalizers []string, labels ...string) {
	w.Helper()
	if !w.exists(obj) {
		w.Fatalf("%T is gone", obj)
	}
	var got []string
	for label, value := range obj.GetLabels() {
		if value != "true" {
			w.Errorf("%T: label %s=%s", obj, label, value)
		}
		got = append(got, label)
	}
	slices.Sort(got)
	slices.Sort(labels)
	if !reflect.DeepEqual(got, labels) {
		w.Errorf("%T: labels %v, want %v", obj, got, labels)
	}
	if !reflect.DeepEqual(obj.GetFinalizers(), finalizers) {
		w.Errorf("%T: finalizers %v, want %v", obj, obj.GetFinalizers(), finalizers)
	}
}

func TestSecretBindingMarks(t *testing.T) {
	quota := &corev1beta1.Quota{ObjectMeta: objectMeta("q", "quota")}
	ref := corev1.ObjectReference{Namespace: "q", Name: "quota"}
	old := secret()
	old.Finalizers = []string{"gardener.cloud/gardener"}
	one, two := secretBinding("p", ref), secretBinding("q", ref)
	w := newWorld(t, "secretbinding", one, two, old, quota)
	w.reconcile(one)
	w.reconcile(two)
	w.wantMarks(old, []string{secretBindingFinalizer}, localLabel, otherLabel, secretMark)
	w.wantMarks(quota, nil, secretMark)

	w.delete(one)
	w.reconcile(one)
	w.wantMarks(old, []string{secretBindingFinalizer}, localLabel, otherLabel, secretMark)
	w.wantMarks(quota, nil, secretMark)

	w.delete(two)
	w.reconcile(two)
	w.wantMarks(old, nil)
	w.wantMarks(quota, nil)
}

func TestCredentialsBindingMarks(t *testing.T) {
	for name, test := range map[string]struct {
		apiVersion  string
		credentials client.Object
		labels      []string
	}{
		"Secret": {"v1", &corev1.Secret{ObjectMeta: objectMeta("p", "c")}, []string{localLabel, bindingsMark}},
		"InternalSecret": {"core.gardener.cloud/v1beta1", &corev1beta1.InternalSecret{ObjectMeta: objectMeta("p", "c")},
			[]string{localLabel, bindingsMark}},
		"WorkloadIdentity": {"security.gardener.cloud/v1alpha1", &securityv1alpha1.WorkloadIdentity{ObjectMeta: objectMeta("p", "c")},
			[]string{bindingsMark}},
	} {
		t.Run(name, func(t *testing.T) {
			binding := credentialsBinding("p", test.apiVersion, name, "c")
			w := newWorld(t, "credentialsbinding", binding, test.credentials)
			w.reconcile(binding)
			w.wantMarks(test.credentials, []string{credentialsBindingFinalizer}, test.labels...)
			w.delete(binding)
			w.reconcile(binding)
			w.wantMarks(test.credentials, nil)
		})
	}
}

// TestBothBindingsOfOneSecret checks that the label of a provider is kept while a binding of the other kind needs it.
func TestBothBindingsOfOneSecret(t *testing.T) {
	shared, first, second := secret(), secretBinding("p"), credentialsBinding("p", "v1", "Secret", "secret")
	w := newWorld(t, "secretbinding", shared, first, second)
	w.reconcile(first)
	other := newWorld(t, "credentialsbinding")
	other.Reconciler.Client, other.Reconciler.Reader = w.Client, w.Client
	other.reconcile(second)
	w.wantMarks(shared, []string{secretBindingFinalizer, credentialsBindingFinalizer}, localLabel, otherLabel, secretMark, bindingsMark)
	w.delete(first)
	w.reconcile(first)
	w.wantMarks(shared, []string{credentialsBindingFinalizer}, localLabel, bindingsMark)
}

func TestBindingWithoutWhatItRefersTo(t *testing.T) {
	binding := secretBinding("p", corev1.ObjectReference{Namespace: "q", Name: "gone"})
	w := newWorld(t, "secretbinding", binding)
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(binding)}); err == nil {
		t.Error("there is no secret, and no error")
	}
	w.delete(binding)
	if w.reconcile(binding); w.exists(binding) {
		t.Error("the binding stays for ever")
	}
}
