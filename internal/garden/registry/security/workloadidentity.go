package security

import (
	"context"
	"strings"

	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/securityvalidation"
)

func workloadIdentities() resource.Definition[*gardensecurity.WorkloadIdentity] {
	return resource.Definition[*gardensecurity.WorkloadIdentity]{
		Resource: gardensecurity.Resource("workloadidentities"), Singular: "workloadidentity", ShortNames: []string{"wi"},
		Versions: v1alpha1, Namespaced: true,
		New:     func() *gardensecurity.WorkloadIdentity { return &gardensecurity.WorkloadIdentity{} },
		NewList: func() runtime.Object { return &gardensecurity.WorkloadIdentityList{} },
		// There is no status subresource: the subject is set once, and the validation refuses to change it.
		PrepareForCreate: func(_ context.Context, w *gardensecurity.WorkloadIdentity) {
			nameIt(w)
			if w.UID == "" {
				w.UID = uuid.NewUUID()
			}
			if w.Status.Sub == "" {
				w.Status.Sub = validation.SubClaim(w)
			}
		},
		Validate:       validation.ValidateWorkloadIdentity,
		ValidateUpdate: validation.ValidateWorkloadIdentityUpdate,
		Columns: []resource.Column[*gardensecurity.WorkloadIdentity]{
			{Name: "Sub", Description: "The subject of its tokens.", Value: func(w *gardensecurity.WorkloadIdentity) any { return w.Status.Sub }},
			{Name: "Type", Description: "The system that it is for.",
				Value: func(w *gardensecurity.WorkloadIdentity) any { return w.Spec.TargetSystem.Type }},
			{Name: "Audiences", Wide: true, Description: "The audiences of its tokens.", Value: func(w *gardensecurity.WorkloadIdentity) any {
				return strings.Join(w.Spec.Audiences, ",")
			}},
		},
	}
}
