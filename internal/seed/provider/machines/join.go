package machines

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/node"
)

// fill replaces the placeholders in the user data of the pool with the values of the machine.
func (t *task) fill(ctx context.Context, userData []byte, timeout time.Duration) ([]byte, error) {
	m := t.machine
	userData = replace(userData, node.PlaceholderMachineName, m.Name)
	if bytes.Equal(userData, replace(userData, node.PlaceholderBootstrapToken, "")) {
		return userData, nil
	}
	var token string
	err := t.inShoot(ctx, func(ctx context.Context, shoot client.Client) (err error) {
		token, err = t.ensureToken(ctx, shoot, m.Namespace, m.Name, timeout)
		return err
	})
	if err != nil {
		return nil, err
	}
	return replace(userData, node.PlaceholderBootstrapToken, token), nil
}

// replace replaces a placeholder, also in URL encoding: files in Ignition configurations are encoded.
func replace(userData []byte, placeholder, value string) []byte {
	userData = bytes.ReplaceAll(userData, []byte(placeholder), []byte(value))
	return bytes.ReplaceAll(userData, []byte(url.QueryEscape(placeholder)), []byte(url.QueryEscape(value)))
}

// inShoot calls a function with a client for the shoot. The error is an *unreachableError without response or access.
func (t *task) inShoot(ctx context.Context, do func(context.Context, client.Client) error) error {
	if t.shoot == nil {
		shoot, err := t.Shoots.Client(ctx, t.machine.Namespace)
		if err != nil {
			return &unreachableError{err}
		}
		t.shoot = shoot
	}
	limited, cancel := context.WithTimeout(ctx, shootTimeout)
	defer cancel()
	err := do(limited, t.shoot)
	status := apierrors.APIStatus(nil)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if refused := apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err); !errors.As(err, &status) || refused {
		return &unreachableError{fmt.Errorf("waiting for the API server of the shoot: %w", err)}
	}
	return err
}

// node reads the machine's Node, nil if there is none. It keeps the conditions without their heartbeat times.
func (t *task) node(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := t.inShoot(ctx, func(ctx context.Context, shoot client.Client) error {
		return shoot.Get(ctx, client.ObjectKey{Name: t.machine.Name}, node)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Node %s of the shoot: %w", t.machine.Name, err)
	}
	t.conditions = slices.Clone(node.Status.Conditions)
	for i := range t.conditions {
		t.conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	return node, nil
}

// join waits for the Node of a machine that is being created. It is called again when the Node appears or becomes ready.
func (t *task) join(ctx context.Context, instance cloud.Instance, left time.Duration) (time.Duration, error) {
	node, err := t.node(ctx)
	t.Shoots.Await(t.machine.Namespace, t.machine.Name)
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		return min(left, unreachableRetry), t.pending(ctx, err.Error())
	} else if err != nil {
		return 0, err
	}
	if node == nil {
		return min(left, resyncPeriod), t.pending(ctx, fmt.Sprintf("Creating machine %s on cloud provider", t.machine.Name))
	}
	if err := t.syncNode(ctx, node, instance); err != nil {
		return 0, err
	}
	if !isReady(node) {
		return min(left, resyncPeriod), t.pending(ctx, fmt.Sprintf("Machine %s has registered its Node, which is not ready yet", t.machine.Name))
	}
	err = t.inShoot(ctx, func(ctx context.Context, shoot client.Client) error {
		return deleteToken(ctx, shoot, t.machine.Namespace, t.machine.Name)
	})
	if err != nil {
		return 0, err
	}
	if err := t.write(ctx, machinev1alpha1.MachineRunning, machinev1alpha1.MachineOperationCreate, machinev1alpha1.MachineStateSuccessful,
		fmt.Sprintf("Machine %s successfully joined the cluster", t.machine.Name)); err != nil {
		return 0, err
	}
	t.Shoots.StopAwaiting(t.machine.Namespace, t.machine.Name)
	return resyncPeriod, t.deleteOrphanNodes(ctx)
}

// check checks the health of a machine that has joined.
func (t *task) check(ctx context.Context) (time.Duration, error) {
	const look = machinev1alpha1.MachineOperationHealthCheck
	m := t.machine
	instance, ok := InstanceOf(t.Cloud, m.Namespace, m.Name)
	if !ok {
		return 0, t.fail(ctx, look, fmt.Sprintf("the instance %s is not in the cloud any more", m.Name))
	}
	node, err := t.node(ctx)
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		return resyncPeriod, nil // the state of the machine is unknown, so nothing is done to it
	} else if err != nil {
		return 0, err
	}
	if node != nil {
		mirror := func(m *machinev1alpha1.Machine) { m.Status.Conditions = t.conditions }
		if err := errors.Join(t.syncNode(ctx, node, instance), operation.PatchStatus(ctx, t.Client, m, mirror)); err != nil {
			return 0, err
		}
		if isReady(node) {
			if m.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning {
				return resyncPeriod, t.deleteOrphanNodes(ctx)
			}
			t.Shoots.StopAwaiting(m.Namespace, m.Name)
			return resyncPeriod, t.write(ctx, machinev1alpha1.MachineRunning, look, machinev1alpha1.MachineStateSuccessful,
				fmt.Sprintf("Machine %s successfully re-joined the cluster", m.Name))
		}
	}
	timeout := orDefault(configuration(m).MachineHealthTimeout, DefaultHealthTimeout)
	if ptr.Deref(configuration(m).DisableHealthTimeout, false) {
		timeout = resyncPeriod + t.Clock.Since(m.Status.CurrentStatus.LastUpdateTime.Time)
	}
	if m.Status.CurrentStatus.Phase == machinev1alpha1.MachineUnknown {
		if left := m.Status.CurrentStatus.LastUpdateTime.Add(timeout).Sub(t.Clock.Now()); left > 0 {
			return min(left, resyncPeriod), nil
		}
		return 0, t.fail(ctx, look, fmt.Sprintf("Machine %s is not healthy since %s", m.Name, timeout))
	}
	t.Shoots.Await(m.Namespace, m.Name) // so that its recovery is seen at once
	return min(timeout, resyncPeriod), t.write(ctx, machinev1alpha1.MachineUnknown, look, machinev1alpha1.MachineStateProcessing,
		fmt.Sprintf("Machine %s is unhealthy - changing MachineState to Unknown", m.Name))
}

// poolSettings is what the pool defines for a Node.
type poolSettings struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []corev1.Taint    `json:"taints,omitempty"`
}

// syncNode sets what the pool and the cloud define for the Node, and removes what the pool defined before.
func (t *task) syncNode(ctx context.Context, node *corev1.Node, instance cloud.Instance) error {
	template := t.machine.Spec.NodeTemplateSpec
	wanted := poolSettings{template.Labels, template.Annotations, template.Spec.Taints}
	text, _ := json.Marshal(wanted) // encoding strings and times cannot fail
	before := poolSettings{}
	_ = json.Unmarshal([]byte(node.Annotations[annotationApplied]), &before) // an unreadable value counts as empty
	changed := node.DeepCopy()
	changed.Labels = merged(node.Labels, before.Labels, wanted.Labels)
	changed.Annotations = merged(node.Annotations, before.Annotations, wanted.Annotations)
	changed.Annotations[annotationApplied] = string(text)
	changed.Spec.Taints = mergedTaints(node.Spec.Taints, before.Taints, wanted.Taints)
	if isReady(node) {
		// In Gardener, gardener-resource-manager does it when the critical Pods of the node are ready, which are simulated here.
		changed.Spec.Taints = slices.DeleteFunc(changed.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == constants.TaintNodeCriticalComponentsNotReady
		})
	}
	for label, value := range map[string]string{
		corev1.LabelInstanceTypeStable: instance.Type, corev1.LabelTopologyZone: instance.Zone,
		corev1.LabelTopologyRegion: instance.Tags[tagRegion],
	} {
		if value != "" {
			changed.Labels[label] = value
		}
	}
	changed.Spec.ProviderID = cmp.Or(changed.Spec.ProviderID, instance.ProviderID)
	if equality.Semantic.DeepEqual(node, changed) {
		return nil
	}
	patch := client.MergeFrom(node)
	if !equality.Semantic.DeepEqual(node.Spec.Taints, changed.Spec.Taints) {
		// Taints are a list, which a patch replaces as a whole: they must not have changed in between.
		patch = client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	}
	err := t.inShoot(ctx, func(ctx context.Context, shoot client.Client) error { return shoot.Patch(ctx, changed, patch) })
	if err != nil {
		return fmt.Errorf("giving Node %s of the shoot labels, annotations and taints of its pool: %w", node.Name, err)
	}
	return nil
}

func merged(has, before, wanted map[string]string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, has)
	for key, value := range before {
		if _, stays := wanted[key]; !stays && result[key] == value {
			delete(result, key)
		}
	}
	maps.Copy(result, wanted)
	return result
}

// mergedTaints sets the taints of the pool and keeps all others.
func mergedTaints(has, before, wanted []corev1.Taint) []corev1.Taint {
	in := func(taints []corev1.Taint, taint corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	}
	result := slices.DeleteFunc(slices.Clone(has), func(t corev1.Taint) bool { return in(before, t) && !in(wanted, t) })
	for _, taint := range wanted {
		i := slices.IndexFunc(result, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
		switch {
		case i >= 0 && result[i].Value != taint.Value:
			result[i].Value = taint.Value
		case i < 0:
			result = append(result, taint)
		}
	}
	return result
}
