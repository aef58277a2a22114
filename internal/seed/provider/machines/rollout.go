package machines

import (
	"cmp"
	"slices"
	"strconv"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

// defaultPriority is the priority of a machine without the annotation. Machines with a lower one are deleted first.
const defaultPriority = 3

// limits are the numbers of additional and of unavailable machines that a rolling update may cause.
type limits struct{ surge, unavailable int }

// limitsOf returns the limits of a MachineDeployment. Percentages of the replicas are rounded up for the surge and down for
// unavailable machines. If both are 0, one machine may be unavailable, otherwise a rolling update would never start.
func limitsOf(d *machinev1alpha1.MachineDeployment) limits {
	var update machinev1alpha1.UpdateConfiguration
	switch strategy := d.Spec.Strategy; {
	case strategy.RollingUpdate != nil:
		update = strategy.RollingUpdate.UpdateConfiguration
	case strategy.InPlaceUpdate != nil:
		update = strategy.InPlaceUpdate.UpdateConfiguration
	}
	surge, unavailable, _ := deploymentutil.ResolveFenceposts(update.MaxSurge, update.MaxUnavailable, d.Spec.Replicas)
	l := limits{max(0, int(surge)), max(0, int(unavailable))}
	if l == (limits{}) { // also if the values are not valid
		l.unavailable = 1
	}
	return l
}

// plan returns how many machines to create now, and which to delete, so that finally there are as many current ones as
// replicas, and no old ones. The arguments must not contain machines that are being deleted or have failed.
func plan(replicas int, l limits, current, old []*machinev1alpha1.Machine) (create int, remove []*machinev1alpha1.Machine) {
	total, ready := len(current)+len(old), running(current)
	switch missing := replicas - len(current); {
	case missing > 0:
		create = max(0, min(missing, replicas+l.surge-total))
	case missing < 0:
		remove = deletionOrder(current)[:-missing]
	}
	least := replicas - l.unavailable
	most := total - least - (len(current) - ready) // machines that have not joined yet do not count
	healthy := ready + running(old) - least
	for _, m := range deletionOrder(old) {
		if most <= 0 || isRunning(m) && healthy <= 0 {
			break
		}
		if isRunning(m) {
			healthy--
		}
		most--
		remove = append(remove, m)
	}
	return create, remove
}

func isRunning(m *machinev1alpha1.Machine) bool {
	return m.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning
}

func running(machines []*machinev1alpha1.Machine) (n int) {
	for _, m := range machines {
		if isRunning(m) {
			n++
		}
	}
	return n
}

// deletionOrder returns the machines in the order of their deletion: not running first, then lowest priority, then youngest.
func deletionOrder(machines []*machinev1alpha1.Machine) []*machinev1alpha1.Machine {
	rank := func(m *machinev1alpha1.Machine) int {
		if isRunning(m) {
			return 1
		}
		return 0
	}
	priority := func(m *machinev1alpha1.Machine) int {
		if n, err := strconv.Atoi(m.Annotations[annotationPriority]); err == nil {
			return n
		}
		return defaultPriority
	}
	return slices.SortedStableFunc(slices.Values(machines), func(a, b *machinev1alpha1.Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(priority(a), priority(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}
