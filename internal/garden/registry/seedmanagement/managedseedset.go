package seedmanagement

import (
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/core"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/seedmanagementvalidation"
)

func managedSeedSets() resource.Definition[*gardenseedmanagement.ManagedSeedSet] {
	return resource.Definition[*gardenseedmanagement.ManagedSeedSet]{
		Resource: gardenseedmanagement.Resource("managedseedsets"), Singular: "managedseedset", ShortNames: []string{"mss"},
		Versions: v1alpha1, Namespaced: true,
		New:                  func() *gardenseedmanagement.ManagedSeedSet { return &gardenseedmanagement.ManagedSeedSet{} },
		NewList:              func() runtime.Object { return &gardenseedmanagement.ManagedSeedSetList{} },
		CopySpec:             func(to, from *gardenseedmanagement.ManagedSeedSet) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardenseedmanagement.ManagedSeedSet) { to.Status = from.Status },
		Validate:             validation.ValidateManagedSeedSet,
		ValidateUpdate:       validation.ValidateManagedSeedSetUpdate,
		ValidateStatusUpdate: validation.ValidateManagedSeedSetStatusUpdate,
		SpecChanged: func(m, old *gardenseedmanagement.ManagedSeedSet) bool {
			return !resource.Equal(old.Spec, m.Spec) || resource.ConsumeOperationAnnotation(m, v1beta1constants.GardenerOperationReconcile)
		},
		Warnings: func(m, _ *gardenseedmanagement.ManagedSeedSet) []string {
			return core.ShootTemplateWarnings(&m.Spec.ShootTemplate.Spec, field.NewPath("spec", "shootTemplate", "spec"))
		},
		Columns: []resource.Column[*gardenseedmanagement.ManagedSeedSet]{
			{Name: "Ready", Description: "Ready replicas of those wanted.", Value: func(m *gardenseedmanagement.ManagedSeedSet) any {
				return fmt.Sprintf("%d/%d", m.Status.ReadyReplicas, ptr.Deref(m.Spec.Replicas, 0))
			}},
			{Name: "Pending", Description: "The replica that is being worked on, and why.", Value: func(m *gardenseedmanagement.ManagedSeedSet) any {
				if p := m.Status.PendingReplica; p != nil {
					return fmt.Sprintf("%s:%s", p.Name, p.Reason)
				}
				return ""
			}},
		},
	}
}
