package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// maxFailures is the maximum number of failed machines in a status.
const maxFailures = 10

// machineCounts has the numbers for a status.
type machineCounts struct {
	replicas, ready int32
	failed          []machinev1alpha1.MachineSummary
}

// count counts machines that are not being deleted. It also reports the failure of a failed machine that is being deleted.
func (f *family) count(of func(*machinev1alpha1.Machine) bool) (t machineCounts) {
	for _, m := range f.machines {
		active := m.DeletionTimestamp == nil
		if !of(m) || !active && m.Status.CurrentStatus.Phase != machinev1alpha1.MachineFailed {
			continue
		}
		if active {
			t.replicas++
		}
		if active && isRunning(m) {
			t.ready++
		}
		if m.Status.LastOperation.State == machinev1alpha1.MachineStateFailed {
			t.failed = append(t.failed, machinev1alpha1.MachineSummary{
				Name: m.Name, ProviderID: m.Spec.ProviderID, LastOperation: m.Status.LastOperation, OwnerRef: ownerOf(m),
			})
		}
	}
	return t
}

func ownerOf(m *machinev1alpha1.Machine) string {
	if ref := metav1.GetControllerOf(m); ref != nil {
		return ref.Name
	}
	return ""
}

// report writes the status of the deployment and its sets.
func (f *family) report(ctx context.Context) error {
	var errs []error
	for _, set := range f.sets {
		if set.DeletionTimestamp != nil {
			continue
		}
		t := f.count(func(m *machinev1alpha1.Machine) bool { return f.setOf(m) == set })
		errs = append(errs, operation.PatchStatus(ctx, f.Client, set, func(set *machinev1alpha1.MachineSet) {
			s := &set.Status
			s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas = t.replicas, t.replicas, t.ready, t.ready
			s.ObservedGeneration = set.Generation
			if s.FailedMachines = nil; len(t.failed) > 0 {
				s.FailedMachines = &t.failed
			}
		}))
	}
	all := f.count(func(*machinev1alpha1.Machine) bool { return true })
	updated := f.count(func(m *machinev1alpha1.Machine) bool { return m.Spec.Class.Name == f.class() })
	errs = append(errs, operation.PatchStatus(ctx, f.Client, f.deployment, func(d *machinev1alpha1.MachineDeployment) {
		s := &d.Status
		s.ObservedGeneration = d.Generation
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = all.replicas, updated.replicas, all.ready, all.ready
		s.UnavailableReplicas = max(0, max(d.Spec.Replicas, all.replicas)-all.ready)
		s.FailedMachines = failures(s, all.failed)
		f.setConditions(s, all.ready)
	}))
	return errors.Join(errs...)
}

// failures returns the failures of machines. That of a replaced machine is reported until there are enough machines again,
// otherwise users would never see it.
func failures(s *machinev1alpha1.MachineDeploymentStatus, now []machinev1alpha1.MachineSummary) (all []*machinev1alpha1.MachineSummary) {
	for i := range now {
		all = append(all, &now[i])
	}
	for _, before := range s.FailedMachines {
		known := slices.ContainsFunc(now, func(m machinev1alpha1.MachineSummary) bool { return m.Name == before.Name })
		if !known && s.UnavailableReplicas > 0 {
			all = append(all, before)
		}
	}
	return all[:min(len(all), maxFailures)]
}

func (f *family) setConditions(s *machinev1alpha1.MachineDeploymentStatus, ready int32) {
	least := f.deployment.Spec.Replicas - int32(limitsOf(f.deployment).unavailable)
	if ready >= least {
		f.setCondition(s, machinev1alpha1.MachineDeploymentAvailable, machinev1alpha1.ConditionTrue, "MinimumReplicasAvailable",
			"Deployment has minimum availability.")
	} else {
		f.setCondition(s, machinev1alpha1.MachineDeploymentAvailable, machinev1alpha1.ConditionFalse,
			"MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	if s.Replicas == s.UpdatedReplicas && s.UnavailableReplicas == 0 {
		f.setCondition(s, machinev1alpha1.MachineDeploymentProgressing, machinev1alpha1.ConditionTrue, "NewMachineSetAvailable",
			"All machines are up to date and available.")
	} else {
		f.setCondition(s, machinev1alpha1.MachineDeploymentProgressing, machinev1alpha1.ConditionTrue, "MachineSetUpdated",
			fmt.Sprintf("%d of %d machines are up to date, %d are available.", s.UpdatedReplicas, f.deployment.Spec.Replicas, s.AvailableReplicas))
	}
}

func (f *family) setCondition(s *machinev1alpha1.MachineDeploymentStatus, kind machinev1alpha1.MachineDeploymentConditionType,
	status machinev1alpha1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(f.Clock.Now())
	wanted := machinev1alpha1.MachineDeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message,
		LastUpdateTime: now, LastTransitionTime: now}
	i := slices.IndexFunc(s.Conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool { return c.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, wanted)
		return
	}
	before := s.Conditions[i]
	if before.Status == status {
		wanted.LastTransitionTime = before.LastTransitionTime
	}
	if before.Status != status || before.Reason != reason || before.Message != message {
		s.Conditions[i] = wanted
	}
}
