package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// terminate cleans up after a Machine: it drains and deletes its Node, and deletes its instance and its token.
func (t *task) terminate(ctx context.Context) (time.Duration, error) {
	m := t.machine
	if !controllerutil.ContainsFinalizer(m, Finalizer) {
		return 0, nil
	}
	t.Shoots.StopAwaiting(m.Namespace, m.Name)
	if m.Status.CurrentStatus.Phase != machinev1alpha1.MachineTerminating {
		if err := t.write(ctx, machinev1alpha1.MachineTerminating, machinev1alpha1.MachineOperationDelete, machinev1alpha1.MachineStateProcessing,
			fmt.Sprintf("Deleting machine %s from cloud provider", m.Name)); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
	}
	if m.Labels[LabelForceDeletion] != ForceDeletion {
		var left int
		wait, err := t.cleanUpShoot(ctx, func(ctx context.Context, shoot client.Client) (err error) {
			left, err = t.drain(ctx, shoot)
			return err
		})
		if err != nil || wait > 0 {
			return wait, err
		}
		if left > 0 {
			return drainRetry, t.write(ctx, machinev1alpha1.MachineTerminating, machinev1alpha1.MachineOperationDrainNode,
				machinev1alpha1.MachineStateProcessing,
				fmt.Sprintf("Draining Node %s: %d pods may not be evicted yet", m.Name, left))
		}
	}
	if _, ours := InstanceOf(t.Cloud, m.Namespace, m.Name); ours {
		if err := t.Cloud.DeleteInstance(ctx, m.Name); err != nil {
			err = fmt.Errorf("deleting the instance %s from the cloud: %w", m.Name, err)
			return 0, errors.Join(err, t.write(ctx, machinev1alpha1.MachineTerminating, machinev1alpha1.MachineOperationDelete,
				machinev1alpha1.MachineStateFailed, err.Error()))
		}
	}
	wait, err := t.cleanUpShoot(ctx, func(ctx context.Context, shoot client.Client) error {
		return deleteNode(ctx, shoot, m.Namespace, m.Name)
	})
	if err != nil || wait > 0 {
		return wait, err
	}
	return 0, operation.RemoveFinalizers(ctx, t.Client, m, Finalizer)
}

// cleanUpShoot calls do with a client for the shoot of the machine. If the API server does not respond, it returns the
// delay until the next try, otherwise the Node would stay forever; 0 if the shoot is hibernated or being deleted.
func (t *task) cleanUpShoot(ctx context.Context, do func(context.Context, client.Client) error) (wait time.Duration, err error) {
	m := t.machine
	err = t.inShoot(ctx, do)
	unreachable := (*unreachableError)(nil)
	if !errors.As(err, &unreachable) {
		return 0, err
	}
	if needless, err := t.isDeletedOrHibernated(ctx); err != nil {
		return 0, err
	} else if needless || errors.Is(unreachable.error, errNoAccess) {
		t.Shoots.SetOrphansDeleted(m.Namespace, false)
		return 0, nil
	}
	return unreachableRetry, t.write(ctx, machinev1alpha1.MachineTerminating, machinev1alpha1.MachineOperationDelete,
		machinev1alpha1.MachineStateProcessing, unreachable.Error())
}

// isDeletedOrHibernated reports whether the shoot is being deleted or hibernated, so that it has no API server.
func (t *task) isDeletedOrHibernated(ctx context.Context) (bool, error) {
	workers := &extensionsv1alpha1.WorkerList{}
	if err := t.Client.List(ctx, workers, client.InNamespace(t.machine.Namespace)); err != nil {
		return false, fmt.Errorf("listing the Workers in namespace %s: %w", t.machine.Namespace, err)
	}
	if !slices.ContainsFunc(workers.Items, func(w extensionsv1alpha1.Worker) bool { return w.DeletionTimestamp == nil }) {
		return true, nil
	}
	shoot, err := cluster.Shoot(ctx, t.Client, t.machine.Namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	return cluster.IsHibernated(shoot), nil
}

// deleteOrphanNodes deletes the Nodes of instances that disappeared without the shoot being told: while its API server did
// not respond, or while it was migrated to this seed.
func (t *task) deleteOrphanNodes(ctx context.Context) error {
	namespace := t.machine.Namespace
	if t.Shoots.OrphansDeleted(namespace) {
		return nil
	}
	err := t.inShoot(ctx, func(ctx context.Context, shoot client.Client) error {
		nodes := &corev1.NodeList{}
		if err := shoot.List(ctx, nodes); err != nil {
			return fmt.Errorf("listing the Nodes of the shoot: %w", err)
		}
		for _, node := range nodes.Items {
			_, is := InstanceOf(t.Cloud, namespace, node.Name)
			if is || !strings.HasPrefix(node.Spec.ProviderID, cloud.ProviderIDPrefix) {
				continue // its instance exists, or it does not belong to this cloud
			}
			if err := deleteNode(ctx, shoot, namespace, node.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		return nil // the next check of a machine is soon enough
	} else if err != nil {
		return err
	}
	t.Shoots.SetOrphansDeleted(namespace, true)
	return nil
}

// drain cordons the Node and evicts its Pods, or deletes them after the timeout. It returns how many cannot be evicted yet.
func (t *task) drain(ctx context.Context, shoot client.Client) (left int, err error) {
	m := t.machine
	node := &corev1.Node{}
	if err := shoot.Get(ctx, client.ObjectKey{Name: m.Name}, node); apierrors.IsNotFound(err) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("reading Node %s of the shoot: %w", m.Name, err)
	}
	if !node.Spec.Unschedulable {
		patch := client.MergeFrom(node.DeepCopy())
		node.Spec.Unschedulable = true
		if err := shoot.Patch(ctx, node, patch); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("cordoning Node %s of the shoot: %w", m.Name, err)
		}
	}
	pods, err := podsOf(ctx, shoot, m.Name)
	if err != nil {
		return 0, err
	}
	drainTimeout := orDefault(configuration(m).MachineDrainTimeout, DefaultDrainTimeout)
	forced := t.Clock.Since(m.Status.CurrentStatus.LastUpdateTime.Time) >= drainTimeout
	for i := range pods {
		pod := &pods[i]
		if ref := metav1.GetControllerOf(pod); ref != nil && ref.Kind == "DaemonSet" ||
			pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || pod.DeletionTimestamp != nil {
			continue // it would be recreated at once, or is already being deleted
		}
		err := evict(ctx, shoot, pod, forced)
		if apierrors.IsTooManyRequests(err) {
			left++
		} else if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("evicting Pod %s/%s of the shoot from Node %s: %w", pod.Namespace, pod.Name, m.Name, err)
		}
	}
	return left, nil
}

func podsOf(ctx context.Context, shoot client.Client, node string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", node)}); err != nil {
		return nil, fmt.Errorf("listing the Pods of Node %s of the shoot: %w", node, err)
	}
	return pods.Items, nil
}

// evict evicts a Pod. If forced is set, it deletes the Pod regardless of PodDisruptionBudgets.
func evict(ctx context.Context, shoot client.Client, pod *corev1.Pod, forced bool) error {
	if forced {
		return shoot.Delete(ctx, pod)
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	return shoot.SubResource("eviction").Create(ctx, pod, eviction)
}

// deleteNode deletes the Node of an instance that is gone, its Pods, which no kubelet runs any more, and its token.
func deleteNode(ctx context.Context, shoot client.Client, namespace, name string) error {
	pods, err := podsOf(ctx, shoot, name)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := shoot.Delete(ctx, &pods[i], &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Pod %s/%s of the shoot, whose Node %s is gone: %w", pods[i].Namespace, pods[i].Name, name, err)
		}
	}
	if err := shoot.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Node %s of the shoot: %w", name, err)
	}
	return deleteToken(ctx, shoot, namespace, name)
}
