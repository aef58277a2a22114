package securityvalidation

import (
	"slices"
	"strings"
	"testing"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// said returns the errors as a list of type and field.
func said(errs field.ErrorList) string {
	var list []string
	for _, err := range errs {
		list = append(list, string(err.Type)[len("FieldValue"):]+" "+err.Field)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func binding(change func(*gardensecurity.CredentialsBinding)) *gardensecurity.CredentialsBinding {
	b := &gardensecurity.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Name: "b", Namespace: "garden-dev", ResourceVersion: "1"},
		Provider:       gardensecurity.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-dev", Name: "s"},
	}
	if change != nil {
		change(b)
	}
	return b
}

func TestCredentialsBinding(t *testing.T) {
	for want, change := range map[string]func(*gardensecurity.CredentialsBinding){
		"":                                  nil,
		"Required provider.type":            func(b *gardensecurity.CredentialsBinding) { b.Provider.Type = "" },
		"Invalid provider.type":             func(b *gardensecurity.CredentialsBinding) { b.Provider.Type = "a,b" },
		"NotSupported credentialsRef":       func(b *gardensecurity.CredentialsBinding) { b.CredentialsRef.Kind = "ConfigMap" },
		"Required credentialsRef.namespace": func(b *gardensecurity.CredentialsBinding) { b.CredentialsRef.Namespace = "" },
		"Required quotas[1].name": func(b *gardensecurity.CredentialsBinding) {
			b.Quotas = []corev1.ObjectReference{{Namespace: "garden-dev", Name: "q"}, {Namespace: "garden-dev"}}
		},
	} {
		if got := said(ValidateCredentialsBinding(binding(change))); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s, not %s", got, want)
		}
	}
	changed := binding(func(b *gardensecurity.CredentialsBinding) {
		b.Provider.Type, b.CredentialsRef.Name, b.Quotas = "other", "t", []corev1.ObjectReference{{Namespace: "garden-dev", Name: "q"}}
	})
	if got := said(ValidateCredentialsBindingUpdate(
		changed, binding(nil))); got != "Invalid credentialsRef, Invalid provider, Invalid quotas" {
		t.Error(got)
	}
}

func identity(change func(*gardensecurity.WorkloadIdentity)) *gardensecurity.WorkloadIdentity {
	w := &gardensecurity.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "garden-dev", UID: "u", ResourceVersion: "1"},
		Spec:       gardensecurity.WorkloadIdentitySpec{Audiences: []string{"a"}, TargetSystem: gardensecurity.TargetSystem{Type: "local"}},
		Status:     gardensecurity.WorkloadIdentityStatus{Sub: "gardener.cloud:workloadidentity:garden-dev:w:u"},
	}
	if change != nil {
		change(w)
	}
	return w
}

func TestWorkloadIdentity(t *testing.T) {
	for want, change := range map[string]func(*gardensecurity.WorkloadIdentity){
		"":                        nil,
		"Required spec.audiences": func(w *gardensecurity.WorkloadIdentity) { w.Spec.Audiences = nil },
		"Duplicate spec.audiences[1], Required spec.audiences[0], Required spec.audiences[1]": func(
			w *gardensecurity.WorkloadIdentity) {
			w.Spec.Audiences = []string{"", ""}
		},
		"Required spec.targetSystem.type":           func(w *gardensecurity.WorkloadIdentity) { w.Spec.TargetSystem.Type = "" },
		"Invalid spec.targetSystem.type":            func(w *gardensecurity.WorkloadIdentity) { w.Spec.TargetSystem.Type = "a,b" },
		"Invalid status.sub":                        func(w *gardensecurity.WorkloadIdentity) { w.Status.Sub = "me" },
		"Invalid status.sub, Required status.sub":   func(w *gardensecurity.WorkloadIdentity) { w.Status.Sub = "" },
		"Invalid metadata.name, Invalid status.sub": func(w *gardensecurity.WorkloadIdentity) { w.Name = "ä"; w.Status.Sub = SubClaim(w) },
		"Invalid status.sub, ": func(w *gardensecurity.WorkloadIdentity) {
			w.Name = strings.Repeat("w", 211)
			w.Status.Sub = SubClaim(w)
		},
	} {
		if got := said(ValidateWorkloadIdentity(identity(change))); got != strings.TrimSuffix(want, ", ") {
			t.Errorf("%s, not %s", got, want)
		}
	}
	changed := identity(func(w *gardensecurity.WorkloadIdentity) { w.Spec.TargetSystem.Type, w.Status.Sub = "other", "me" })
	if got := said(ValidateWorkloadIdentityUpdate(
		changed, identity(nil))); got != "Invalid spec.targetSystem.type, Invalid status.sub, Invalid status.sub" {
		t.Error(got)
	}
	unnamed := identity(func(w *gardensecurity.WorkloadIdentity) { w.Status.Sub = "" })
	if got := said(ValidateWorkloadIdentityUpdate(identity(nil), unnamed)); got != "" {
		t.Errorf("given a subject later: %s", got)
	}
}

func TestTokenRequest(t *testing.T) {
	for _, test := range []struct {
		seconds int64
		object  *gardensecurity.ContextObject
		want    string
	}{
		{599, nil, "Invalid spec.expirationSeconds"},
		{600, nil, ""},
		{1 << 32, &gardensecurity.ContextObject{APIVersion: "v1", Kind: "K", Name: "n", Namespace: ptr.To("ns")}, ""},
		{1<<32 + 1, &gardensecurity.ContextObject{APIVersion: "v1", Kind: "K", Name: "n"}, "Invalid spec.expirationSeconds"},
		{600, &gardensecurity.ContextObject{Name: "N", Namespace: ptr.To("")},
			"Invalid spec.contextObject.name, Invalid spec.contextObject.namespace, Required spec.contextObject.apiVersion, " +
				"Required spec.contextObject.kind, Required spec.contextObject.namespace"},
	} {
		request := &gardensecurity.TokenRequest{
			Spec: gardensecurity.TokenRequestSpec{ExpirationSeconds: test.seconds, ContextObject: test.object}}
		if got := said(ValidateTokenRequest(request)); got != test.want {
			t.Errorf("%+v: %s", request.Spec, got)
		}
	}
}
