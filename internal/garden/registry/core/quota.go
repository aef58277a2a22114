package core

import (
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func quotas() resource.Definition[*gardencore.Quota] {
	return resource.Definition[*gardencore.Quota]{
		Resource: gardencore.Resource("quotas"), Singular: "quota", ShortNames: []string{"squota"}, Versions: v1beta1,
		Namespaced: true, AllowUnconditionalUpdate: true,
		New:            func() *gardencore.Quota { return &gardencore.Quota{} },
		NewList:        func() runtime.Object { return &gardencore.QuotaList{} },
		Validate:       validation.ValidateQuota,
		ValidateUpdate: validation.ValidateQuotaUpdate,
		Columns: []resource.Column[*gardencore.Quota]{
			{Name: "Scope", Description: "What the limits are for.", Value: func(q *gardencore.Quota) any {
				return q.Spec.Scope.APIVersion + "." + q.Spec.Scope.Kind
			}},
			{Name: "Cluster Lifetime", Description: "How long clusters may live.", Value: func(q *gardencore.Quota) any {
				if q.Spec.ClusterLifetimeDays == nil {
					return "<unspecified>"
				}
				return fmt.Sprintf("%d days", *q.Spec.ClusterLifetimeDays)
			}},
		},
	}
}
