// Package security is the storage of the API group security.gardener.cloud.
package security

import (
	"context"
	"fmt"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

var v1alpha1 = []string{"v1alpha1"}

// Storage is the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, credentialsBindings())
	if identities := resource.Add(b, workloadIdentities()); identities != nil {
		b.Subresource("workloadidentities/token", "v1alpha1", resource.NewUnimplemented(identities,
			securityv1alpha1.SchemeGroupVersion.WithKind("TokenRequest"),
			func() runtime.Object { return &gardensecurity.TokenRequest{} }, "workloadidentities/token"))
	}
	return b.Result()
}

func credentialsBindings() resource.Definition[*gardensecurity.CredentialsBinding] {
	return resource.Definition[*gardensecurity.CredentialsBinding]{
		Resource: gardensecurity.Resource("credentialsbindings"), Singular: "credentialsbinding", ShortNames: []string{"cb"}, Versions: v1alpha1, Namespaced: true, Unconditional: true,
		New:     func() *gardensecurity.CredentialsBinding { return &gardensecurity.CredentialsBinding{} },
		NewList: func() runtime.Object { return &gardensecurity.CredentialsBindingList{} },
		Columns: []resource.Column[*gardensecurity.CredentialsBinding]{
			{Name: "Provider", About: "The provider type.", Value: func(b *gardensecurity.CredentialsBinding) any { return b.Provider.Type }},
			{Name: "Credentials", About: "The Secret, InternalSecret or WorkloadIdentity with the credentials.", Value: func(b *gardensecurity.CredentialsBinding) any {
				return b.CredentialsRef.Kind + "/" + b.CredentialsRef.Namespace + "/" + b.CredentialsRef.Name
			}},
		},
	}
}

// subject is the "sub" claim of an identity's tokens. The UID keeps it from being inherited by a later one of the name.
func subject(w *gardensecurity.WorkloadIdentity) string {
	return fmt.Sprintf("gardener.cloud:workloadidentity:%s:%s:%s", w.Namespace, w.Name, w.UID)
}

func workloadIdentities() resource.Definition[*gardensecurity.WorkloadIdentity] {
	return resource.Definition[*gardensecurity.WorkloadIdentity]{
		Resource: gardensecurity.Resource("workloadidentities"), Singular: "workloadidentity", ShortNames: []string{"wi"}, Versions: v1alpha1, Namespaced: true, Unconditional: true,
		New:     func() *gardensecurity.WorkloadIdentity { return &gardensecurity.WorkloadIdentity{} },
		NewList: func() runtime.Object { return &gardensecurity.WorkloadIdentityList{} },
		PrepareForCreate: func(_ context.Context, w *gardensecurity.WorkloadIdentity) {
			w.Status = gardensecurity.WorkloadIdentityStatus{Sub: subject(w)}
		},
		PrepareForUpdate: func(_ context.Context, w, old *gardensecurity.WorkloadIdentity) {
			w.Status = old.Status // there is no status subresource: the subject never changes
		},
		SpecChanged: func(w, old *gardensecurity.WorkloadIdentity) bool { return !resource.SpecEquality(old.Spec, w.Spec) },
		Columns: []resource.Column[*gardensecurity.WorkloadIdentity]{
			{Name: "Type", About: "The system that it is for.", Value: func(w *gardensecurity.WorkloadIdentity) any { return w.Spec.TargetSystem.Type }},
			{Name: "Sub", About: "The subject of its tokens.", Value: func(w *gardensecurity.WorkloadIdentity) any { return w.Status.Sub }},
		},
	}
}
