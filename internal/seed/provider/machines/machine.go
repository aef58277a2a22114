package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// MachineReconciler reconciles Machines.
type MachineReconciler struct {
	// Client reads directly from the seed, not from a cache.
	Client client.Client
	Cloud  Cloud
	Shoots *Shoots
	Clock  clock.PassiveClock
	Guard  *Guard
}

// ProviderSpec is the providerSpec of a MachineClass.
type ProviderSpec struct {
	// Image is the name and version of the machine image, as "local:1.0.0".
	Image string `json:"image"`
}

// Reconcile takes the next step in the life of a Machine.
func (r *MachineReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	release, err := r.Guard.RLock(ctx, request.Namespace)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("waiting to work on Machine %s: %w", request, err)
	}
	defer release()
	machine := &machinev1alpha1.Machine{}
	if err := r.Client.Get(ctx, request.NamespacedName, machine); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading Machine %s: %w", request, err)
	} else if err != nil {
		return reconcile.Result{}, r.gone(ctx, request.NamespacedName)
	}
	if stop, err := isMigrated(ctx, r.Client, request.Namespace); err != nil || stop {
		return reconcile.Result{RequeueAfter: resyncPeriod}, err
	}
	t := &task{MachineReconciler: r, machine: machine}
	wait, err := t.run(ctx)
	return component.RequeueAfter(wait, err)
}

// gone drops the client for the shoot if the last machine of the namespace is gone.
func (r *MachineReconciler) gone(ctx context.Context, key client.ObjectKey) error {
	r.Shoots.StopAwaiting(key.Namespace, key.Name)
	rest := &machinev1alpha1.MachineList{}
	if err := r.Client.List(ctx, rest, client.InNamespace(key.Namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("listing the Machines of namespace %s: %w", key.Namespace, err)
	}
	if len(rest.Items) == 0 {
		r.Shoots.Drop(key.Namespace)
	}
	return nil
}

// task is one reconciliation of a Machine.
type task struct {
	*MachineReconciler
	machine *machinev1alpha1.Machine
	// shoot is the client for the shoot, once it was needed; conditions are those of the Node, once it was read.
	shoot      client.Client
	conditions []corev1.NodeCondition
}

func (t *task) run(ctx context.Context) (time.Duration, error) {
	if t.machine.DeletionTimestamp != nil {
		return t.terminate(ctx)
	}
	if err := operation.AddFinalizer(ctx, t.Client, t.machine, Finalizer); err != nil {
		return 0, err
	}
	switch t.machine.Status.CurrentStatus.Phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown:
		return t.check(ctx)
	case machinev1alpha1.MachineFailed:
		return 0, nil // its MachineDeployment replaces it
	}
	return t.create(ctx)
}

// create ensures the machine's instance, and waits for its Node.
func (t *task) create(ctx context.Context) (time.Duration, error) {
	timeout := orDefault(configuration(t.machine).MachineCreationTimeout, DefaultCreationTimeout)
	left := timeout
	if since := t.machine.Status.CurrentStatus.LastUpdateTime; !since.IsZero() {
		left = since.Add(timeout).Sub(t.Clock.Now())
	}
	if left <= 0 {
		why := t.machine.Status.LastOperation.Description
		return 0, t.fail(ctx, machinev1alpha1.MachineOperationCreate,
			fmt.Sprintf("Machine %s failed to join the cluster in %s: %s", t.machine.Name, timeout, why))
	}
	instance, err := t.ensureInstance(ctx, timeout)
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		return 0, t.fail(ctx, machinev1alpha1.MachineOperationCreate, err.Error())
	} else if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		return min(left, unreachableRetry), t.pending(ctx, err.Error())
	} else if err != nil {
		return 0, errors.Join(err, t.crash(ctx, err.Error()))
	}
	// The machine records its instance and its Node.
	if err := operation.Patch(ctx, t.Client, t.machine, func(m *machinev1alpha1.Machine) {
		m.Spec.ProviderID = instance.ProviderID
		metav1.SetMetaDataLabel(&m.ObjectMeta, machinev1alpha1.NodeLabelKey, m.Name)
	}); err != nil {
		return 0, err
	}
	if instance.State == cloud.Failed {
		return min(left, resyncPeriod), t.crash(ctx, fmt.Sprintf("the instance %s could not boot: %s", instance.ID, instance.Message))
	}
	return t.join(ctx, instance, left)
}

// lostError says that an instance does not exist any more.
type lostError struct{ error }

// unreachableError says that the API server of a shoot does not respond, or denies access.
type unreachableError struct{ error }

// ensureInstance creates the instance, but only once.
func (t *task) ensureInstance(ctx context.Context, timeout time.Duration) (cloud.Instance, error) {
	m := t.machine
	if instance, ok := InstanceOf(t.Cloud, m.Namespace, m.Name); ok {
		return instance, nil
	}
	if m.Spec.ProviderID != "" {
		return cloud.Instance{}, &lostError{fmt.Errorf("the instance %s is not in the cloud any more", m.Name)}
	}
	spec, err := t.instanceSpec(ctx)
	if err != nil {
		return cloud.Instance{}, err
	}
	if spec.UserData, err = t.fill(ctx, spec.UserData, timeout); err != nil {
		return cloud.Instance{}, err
	}
	instance, err := t.Cloud.EnsureInstance(ctx, spec)
	if err != nil {
		return cloud.Instance{}, fmt.Errorf("creating the instance %s in the cloud: %w", spec.ID, err)
	}
	if instance.Network != m.Namespace {
		return cloud.Instance{}, fmt.Errorf("the cloud has an instance %s in another network, %s", m.Name, instance.Network)
	}
	return instance, nil
}

// instanceSpec returns the spec of the instance according to the machine's class.
func (t *task) instanceSpec(ctx context.Context) (cloud.InstanceSpec, error) {
	m := t.machine
	class := &machinev1alpha1.MachineClass{}
	if err := t.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Class.Name}, class); err != nil {
		return cloud.InstanceSpec{}, fmt.Errorf("reading MachineClass %s/%s: %w", m.Namespace, m.Spec.Class.Name, err)
	}
	provider := ProviderSpec{}
	if err := json.Unmarshal(class.ProviderSpec.Raw, &provider); err != nil {
		return cloud.InstanceSpec{}, fmt.Errorf("reading the providerSpec of MachineClass %s/%s: %w", class.Namespace, class.Name, err)
	}
	if class.NodeTemplate == nil || class.SecretRef == nil {
		return cloud.InstanceSpec{}, fmt.Errorf("MachineClass %s/%s has no nodeTemplate or no secretRef", class.Namespace, class.Name)
	}
	secret := &corev1.Secret{}
	// The Secret must be in the namespace of the class, so that a class cannot use the Secret of another namespace.
	if err := t.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: class.SecretRef.Name}, secret); err != nil {
		return cloud.InstanceSpec{}, fmt.Errorf("reading the user data in Secret %s/%s: %w", m.Namespace, class.SecretRef.Name, err)
	}
	capacity := class.NodeTemplate.Capacity.DeepCopy()
	delete(capacity, "gpu") // of cloud profiles only: no kubelet reports it
	capacityTag, err := json.Marshal(capacity)
	if err != nil {
		return cloud.InstanceSpec{}, fmt.Errorf("reading the capacity of MachineClass %s/%s: %w", class.Namespace, class.Name, err)
	}
	return cloud.InstanceSpec{
		ID: m.Name, Network: m.Namespace, Hostname: m.Name, Zone: class.NodeTemplate.Zone, Type: class.NodeTemplate.InstanceType,
		Image: provider.Image, UserData: secret.Data[UserDataKey],
		Tags: map[string]string{cloud.TagMachine: m.Namespace, tagRegion: class.NodeTemplate.Region,
			machine.TagCapacity: string(capacityTag)},
	}, nil
}

// pending, crash and fail write the state of the machine. The first two keep the time since when it is being created.
func (t *task) pending(ctx context.Context, why string) error {
	return t.write(ctx, machinev1alpha1.MachinePending, machinev1alpha1.MachineOperationCreate, machinev1alpha1.MachineStateProcessing, why)
}

func (t *task) crash(ctx context.Context, why string) error {
	return t.write(ctx, machinev1alpha1.MachineCrashLoopBackOff, machinev1alpha1.MachineOperationCreate,
		machinev1alpha1.MachineStateFailed, why)
}

func (t *task) fail(ctx context.Context, what machinev1alpha1.MachineOperationType, why string) error {
	t.Shoots.StopAwaiting(t.machine.Namespace, t.machine.Name)
	return t.write(ctx, machinev1alpha1.MachineFailed, what, machinev1alpha1.MachineStateFailed, why)
}

func isCreating(phase machinev1alpha1.MachinePhase) bool {
	return phase == machinev1alpha1.MachinePending || phase == machinev1alpha1.MachineCrashLoopBackOff
}

// write writes the phase and the last operation if they have changed.
func (t *task) write(ctx context.Context, phase machinev1alpha1.MachinePhase, what machinev1alpha1.MachineOperationType,
	state machinev1alpha1.MachineState, description string) error {
	return operation.PatchStatus(ctx, t.Client, t.machine, func(m *machinev1alpha1.Machine) {
		now := metav1.NewTime(t.Clock.Now())
		current, last := &m.Status.CurrentStatus, &m.Status.LastOperation
		if current.Phase != phase && !(isCreating(current.Phase) && isCreating(phase)) {
			current.LastUpdateTime = now
		}
		current.Phase = phase
		current.TimeoutActive = isCreating(phase) || phase == machinev1alpha1.MachineUnknown
		if t.conditions != nil {
			m.Status.Conditions = t.conditions
		}
		if last.Type != what || last.State != state || last.Description != description {
			*last = machinev1alpha1.LastOperation{Type: what, State: state, Description: description, LastUpdateTime: now}
		}
	})
}

// Cloud is the part of the cloud that the machine controller needs.
type Cloud interface {
	EnsureInstance(ctx context.Context, spec cloud.InstanceSpec) (cloud.Instance, error)
	DeleteInstance(ctx context.Context, id string) error
	Instance(id string) (cloud.Instance, bool)
	Instances(network string) []cloud.Instance
}

const tagRegion = "region"

// InstanceOf returns the instance of a machine, whose name is its ID. It ignores an instance in another network.
func InstanceOf(c Cloud, namespace, name string) (cloud.Instance, bool) {
	instance, ok := c.Instance(name)
	return instance, ok && instance.Network == namespace
}
