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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// Names that machine-controller-manager and Gardener's extensions use.
const (
	// Finalizer keeps MachineDeployments and Machines while there is something to undo.
	Finalizer = "machine.sapcloud.io/machine-controller-manager"
	// LabelDeployment has the name of the MachineDeployment that a MachineSet or Machine is of.
	LabelDeployment = "name"
	// LabelForceDeletion, with the value ForceDeletion, is on Machines that are deleted without draining their Nodes.
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

	// resyncPeriod is how often a machine is looked at that nothing is expected of.
	resyncPeriod = 30 * time.Second
	// drainAgain is how often it is tried to evict Pods that may not go, askAgain how often a shoot that does not answer.
	drainAgain = 5 * time.Second
	askAgain   = time.Second
)

// Hash is a short hash for names.
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

// configuration is the configuration of a machine, never nil.
func configuration(m *machinev1alpha1.Machine) machinev1alpha1.MachineConfiguration {
	if m.Spec.MachineConfiguration == nil {
		return machinev1alpha1.MachineConfiguration{}
	}
	return *m.Spec.MachineConfiguration
}

// frozen says whether the Worker of a namespace migrates to another seed: its machines are not this seed's any more.
func frozen(ctx context.Context, seed client.Reader, namespace string) (bool, error) {
	workers := &extensionsv1alpha1.WorkerList{}
	if err := seed.List(ctx, workers, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("listing the Workers in namespace %s: %w", namespace, err)
	}
	for i := range workers.Items {
		last := workers.Items[i].Status.LastOperation
		if operation.Of(&workers.Items[i]) == constants.GardenerOperationMigrate || last != nil &&
			last.Type == corev1beta1.LastOperationTypeMigrate {
			return true, nil
		}
	}
	return false, nil
}
