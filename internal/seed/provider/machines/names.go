package machines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// Names that machine-controller-manager and Gardener's extensions use.
const (
	// Finalizer keeps MachineDeployments and Machines until they are cleaned up.
	Finalizer = "machine.sapcloud.io/machine-controller-manager"
	// LabelDeployment has the name of the MachineDeployment that a MachineSet or Machine belongs to.
	LabelDeployment = "name"
	// LabelForceDeletion, with the value ForceDeletion, marks Machines that are deleted without draining their Nodes.
	LabelForceDeletion = "force-deletion"
	// ForceDeletion is the value of LabelForceDeletion.
	ForceDeletion = "True"
	// UserDataKey is the key of a MachineClass's Secret that has the user data.
	UserDataKey = "userData"

	annotationPriority = "machinepriority.machine.sapcloud.io"
	annotationApplied  = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
)

const (
	// DefaultCreationTimeout is how long a machine may take to join, unless its MachineDeployment says otherwise.
	DefaultCreationTimeout = 20 * time.Minute
	// DefaultHealthTimeout is how long the Node of a machine may be not ready.
	DefaultHealthTimeout = 10 * time.Minute
	// DefaultDrainTimeout is how long PodDisruptionBudgets are respected.
	DefaultDrainTimeout = 2 * time.Hour

	// resyncPeriod is how often a machine is checked when no change is expected.
	resyncPeriod = 30 * time.Second
	// drainRetry is the delay between attempts to evict Pods, unreachableRetry between requests to a shoot that does not respond.
	drainRetry       = 5 * time.Second
	unreachableRetry = time.Second
)

// Hash returns a short hash for names.
func Hash(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:])[:5]
}

func orDefault(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil || d.Duration <= 0 {
		return otherwise
	}
	return d.Duration
}

// configuration returns the configuration of a machine, an empty one if it has none.
func configuration(m *machinev1alpha1.Machine) machinev1alpha1.MachineConfiguration {
	return ptr.Deref(m.Spec.MachineConfiguration, machinev1alpha1.MachineConfiguration{})
}

// isMigrated reports whether the Worker of a namespace is migrated to another seed, to which its machines then belong.
func isMigrated(ctx context.Context, seed client.Reader, namespace string) (bool, error) {
	workers := &extensionsv1alpha1.WorkerList{}
	if err := seed.List(ctx, workers, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("listing the Workers in namespace %s: %w", namespace, err)
	}
	for i := range workers.Items {
		last := workers.Items[i].Status.LastOperation
		if operation.RequestedOperation(&workers.Items[i]) == constants.GardenerOperationMigrate || last != nil &&
			last.Type == corev1beta1.LastOperationTypeMigrate {
			return true, nil
		}
	}
	return false, nil
}
