package core

import (
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func lastOperation(op *gardencore.LastOperation) any {
	if op == nil {
		return resource.Pending
	}
	return fmt.Sprintf("%s %s (%d%%)", op.Type, op.State, op.Progress)
}

func operationState(op *gardencore.LastOperation) any {
	if op == nil {
		return resource.Pending
	}
	return string(op.State)
}

func operationProgress(op *gardencore.LastOperation) any {
	if op == nil {
		return int64(0)
	}
	return int64(op.Progress)
}

func conditionStatus(conditions []gardencore.Condition, kind gardencore.ConditionType) any {
	return resource.OrUnknown(resource.Condition(conditions, kind))
}

type shootColumn = resource.Column[*gardencore.Shoot]

func shootColumns() []shootColumn {
	columns := []shootColumn{
		{Name: "CloudProfile", Description: "The CloudProfile or NamespacedCloudProfile.", Value: shootCloudProfile},
		{Name: "Provider", Description: "The provider type.", Value: func(s *gardencore.Shoot) any { return s.Spec.Provider.Type }},
		{Name: "Region", Description: "The region.", Value: func(s *gardencore.Shoot) any { return s.Spec.Region }},
		{Name: "Seed", Description: "The seed that runs the control plane.", Wide: true,
			Value: func(s *gardencore.Shoot) any { return ptr.Deref(s.Spec.SeedName, resource.None) }},
		{Name: "K8S Version", Description: "The Kubernetes version.", Value: func(s *gardencore.Shoot) any { return s.Spec.Kubernetes.Version }},
		{Name: "Hibernation", Description: "Whether the cluster sleeps.", Value: shootHibernation},
		{Name: "Last Operation", Description: "What is, or was last, done to the cluster.",
			Value: func(s *gardencore.Shoot) any { return lastOperation(s.Status.LastOperation) }},
		{Name: "Status", Description: "The cluster's health as a whole.", Value: func(s *gardencore.Shoot) any {
			if status, ok := s.Labels[v1beta1constants.ShootStatus]; ok {
				return status
			}
			return resource.Pending
		}},
		{Name: "Purpose", Description: "What the cluster is for.", Wide: true,
			Value: func(s *gardencore.Shoot) any { return string(ptr.Deref(s.Spec.Purpose, resource.None)) }},
		{Name: "Gardener Version", Description: "The version of the gardenlet that reconciled it last.", Wide: true,
			Value: func(s *gardencore.Shoot) any { return resource.OrUnknown(s.Status.Gardener.Version) }},
	}
	for _, c := range []struct {
		name      string
		condition gardencore.ConditionType
	}{
		{"APIServer", gardencore.ShootAPIServerAvailable},
		{"Control", gardencore.ShootControlPlaneHealthy},
		{"Observability", gardencore.ShootObservabilityComponentsHealthy},
		{"Nodes", gardencore.ShootEveryNodeReady},
		{"System", gardencore.ShootSystemComponentsHealthy},
	} {
		columns = append(columns, shootColumn{Name: c.name, Description: "Condition " + string(c.condition) + ".", Wide: true,
			Value: func(s *gardencore.Shoot) any { return conditionStatus(s.Status.Conditions, c.condition) }})
	}
	return columns
}

func shootCloudProfile(s *gardencore.Shoot) any {
	ref := s.Spec.CloudProfile
	switch {
	case ref == nil:
		return ptr.Deref(s.Spec.CloudProfileName, "")
	case ref.Kind == v1beta1constants.CloudProfileReferenceKindNamespacedCloudProfile:
		return s.Namespace + "/" + ref.Name
	}
	return ref.Name
}

func shootHibernation(s *gardencore.Shoot) any {
	switch wanted, is := validation.HibernationEnabled(s.Spec.Hibernation), s.Status.IsHibernated; {
	case wanted && is:
		return "Hibernated"
	case wanted:
		return "Hibernating"
	case is:
		return "Waking Up"
	}
	return "Awake"
}
