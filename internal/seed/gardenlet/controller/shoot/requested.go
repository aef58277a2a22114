package shoot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/retry"
)

// Reasons of events for requested operations that do not begin now.
const (
	eventPostponed  = "RotationPostponed"
	eventInProgress = "RotationInProgress"
)

// isTask reports whether a requested operation begins as a part of a reconciliation.
func isTask(requested string) bool {
	return strings.HasPrefix(requested, "rotate-") || strings.HasPrefix(requested, constants.OperationRolloutWorkers)
}

// hasTasks reports whether the operation annotation requests something that a reconciliation has to begin.
func hasTasks(shoot *corev1beta1.Shoot) bool { return slices.ContainsFunc(operations(shoot), isTask) }

func rotatesSSH(requested string) bool {
	return requested == constants.ShootOperationRotateSSHKeypair || requested == constants.OperationRotateCredentialsStart ||
		requested == constants.OperationRotateCredentialsStartWithoutWorkersRollout
}

// operationsToStart returns the operations in the annotation that begin with an operation on the Shoot. The others stay
// in the annotation: only a creation and a reconciliation begin tasks, and the SSH key pair is rotated only when each
// node has applied its current configuration (GEP-15). postponed names the nodes that have not.
func (r *Reconciler) operationsToStart(ctx context.Context, shoot *corev1beta1.Shoot, t corev1beta1.LastOperationType) (
	begun []string, postponed string) {
	reconciles := t == corev1beta1.LastOperationTypeCreate || t == corev1beta1.LastOperationTypeReconcile
	for _, requested := range operations(shoot) {
		switch {
		case requested == constants.GardenerOperationReconcile || requested == constants.ShootOperationRetry:
			begun = append(begun, requested)
		case !reconciles || !isTask(requested):
		case rotatesSSH(requested) && !sshRotates(shoot):
			if postponed = r.outdatedNodes(ctx, shoot); postponed == "" {
				begun = append(begun, requested)
			}
		default:
			begun = append(begun, requested)
		}
	}
	return begun, postponed
}

// sshRotates reports whether a rotation of the SSH key pair is in progress.
func sshRotates(shoot *corev1beta1.Shoot) bool {
	r := rotationsOf(&shoot.Status).SSHKeypair
	return r != nil && inProgress(r.LastInitiationTime, r.LastCompletionTime)
}

// outdatedNodes returns a message with the nodes that have not applied their current configuration, empty if all have.
func (r *Reconciler) outdatedNodes(ctx context.Context, shoot *corev1beta1.Shoot) string {
	if !hasSSH(shoot) || cluster.IsHibernated(shoot) || shoot.Status.IsHibernated || shoot.Status.TechnicalID == "" {
		return "" // there are no nodes, or no keys on them
	}
	names, err := r.listOutdatedNodes(ctx, shoot.Status.TechnicalID)
	switch {
	case err != nil:
		return fmt.Sprintf("The SSH key pair is rotated when its nodes can be read: %v.", err)
	case len(names) > 0:
		return fmt.Sprintf("The SSH key pair is rotated when these nodes have applied their current configuration: %s.",
			strings.Join(names, ", "))
	}
	return ""
}

func (r *Reconciler) listOutdatedNodes(ctx context.Context, technicalID string) (names []string, err error) {
	shoot, err := r.connectTo(ctx, technicalID)
	if err != nil {
		return nil, err
	}
	defer shoot.Close()
	secrets, err := listNodeSecrets(ctx, shoot)
	if err != nil {
		return nil, err
	}
	wanted := map[string]string{}
	for _, secret := range secrets {
		wanted[secret.Name] = secret.Annotations[node.AnnotationChecksumSecret]
	}
	nodes, err := listNodes(ctx, shoot)
	return outdated(nodes, wanted), err
}

// outdated returns the names of the nodes that have not applied the Secret of their pool. Nodes in deletion are
// ignored.
func outdated(nodes []corev1.Node, wanted map[string]string) (names []string) {
	for _, n := range nodes {
		checksum, is := wanted[n.Labels[constants.LabelWorkerPoolGardenerNodeAgentSecretName]]
		if is && n.DeletionTimestamp == nil && n.Annotations[node.AnnotationChecksum] != checksum {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// removeOperations removes the operations that have begun from the annotation. It keeps operations that were requested
// since.
func (r *Reconciler) removeOperations(ctx context.Context, shoot *corev1beta1.Shoot, begun []string) error {
	if len(begun) == 0 {
		return nil
	}
	err := retry.OnConflict(ctx, func() error {
		before := shoot.DeepCopy()
		left := slices.DeleteFunc(operations(shoot), func(requested string) bool { return slices.Contains(begun, requested) })
		if len(left) == 0 {
			delete(shoot.Annotations, constants.GardenerOperation)
		} else {
			shoot.Annotations[constants.GardenerOperation] = strings.Join(left, constants.GardenerOperationsSeparator)
		}
		err := r.GardenClient.Patch(ctx, shoot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return nil
		}
		if read := r.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); read != nil {
			return read
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("removing the operations that have begun from Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}
