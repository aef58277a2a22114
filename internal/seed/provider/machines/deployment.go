package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// DeploymentReconciler creates the MachineSets and Machines of MachineDeployments.
type DeploymentReconciler struct {
	// Client reads directly from the seed, not from a cache: the number of new machines depends on the existing ones.
	Client client.Client
	Clock  clock.PassiveClock
	Guard  *Guard
}

// family is a MachineDeployment with its MachineSets and Machines.
type family struct {
	*DeploymentReconciler
	deployment *machinev1alpha1.MachineDeployment
	sets       []*machinev1alpha1.MachineSet
	machines   []*machinev1alpha1.Machine
}

// Reconcile takes the next step towards the Machines of a MachineDeployment. Changes of Machines trigger the following ones.
func (r *DeploymentReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	release, err := r.Guard.RLock(ctx, request.Namespace)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("waiting to work on the machines of namespace %s: %w", request.Namespace, err)
	}
	defer release()
	deployment := &machinev1alpha1.MachineDeployment{}
	if err := r.Client.Get(ctx, request.NamespacedName, deployment); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if stop, err := isMigrated(ctx, r.Client, request.Namespace); err != nil || stop {
		return reconcile.Result{RequeueAfter: resyncPeriod}, err
	}
	f := &family{DeploymentReconciler: r, deployment: deployment}
	if err := f.read(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if deployment.DeletionTimestamp != nil {
		return reconcile.Result{}, f.delete(ctx)
	}
	if err := operation.AddFinalizer(ctx, r.Client, deployment, Finalizer); err != nil {
		return reconcile.Result{}, err
	}
	// The status reports what exists, so it is written even if something has failed.
	return reconcile.Result{}, errors.Join(f.scale(ctx), f.report(ctx))
}

// read lists the sets and machines by the label that they have in common.
func (f *family) read(ctx context.Context) error {
	sets, machines := &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{}
	of := []client.ListOption{client.InNamespace(f.deployment.Namespace), client.MatchingLabels{LabelDeployment: f.deployment.Name}}
	if err := errors.Join(f.Client.List(ctx, sets, of...), f.Client.List(ctx, machines, of...)); err != nil {
		return fmt.Errorf("listing the MachineSets and Machines of MachineDeployment %s/%s: %w", f.deployment.Namespace, f.deployment.Name, err)
	}
	for i := range sets.Items {
		f.sets = append(f.sets, &sets.Items[i])
	}
	for i := range machines.Items {
		f.machines = append(f.machines, &machines.Items[i])
	}
	return nil
}

// scale creates and deletes sets and machines as far as the rolling update allows it now.
func (f *family) scale(ctx context.Context) error {
	set, err := f.currentSet(ctx)
	if err != nil {
		return err
	}
	if err := f.pass(ctx, set); err != nil {
		return err
	}
	var current, old, failed []*machinev1alpha1.Machine
	for _, m := range f.machines {
		switch {
		case m.DeletionTimestamp != nil:
		case m.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed:
			failed = append(failed, m)
		case m.Spec.Class.Name == f.class():
			current = append(current, m)
		default:
			old = append(old, m)
		}
	}
	replicas := int(f.deployment.Spec.Replicas)
	create, remove := plan(replicas, limitsOf(f.deployment), current, old)
	if f.deployment.Spec.Paused && len(old) > 0 {
		create, remove = 0, nil
	}
	for _, m := range append(failed, remove...) {
		if err := operation.Delete(ctx, f.Client, m); err != nil {
			return err
		}
		now := metav1.NewTime(f.Clock.Now())
		m.DeletionTimestamp = &now
	}
	for range create {
		if err := f.createMachine(ctx, set); err != nil {
			return err
		}
	}
	return f.tidySets(ctx, set)
}

func (f *family) class() string { return f.deployment.Spec.Template.Spec.Class.Name }

// currentSet returns the set of the current class, and creates it if it is missing. Only the class matters: labels,
// annotations and taints of Nodes change without new machines.
func (f *family) currentSet(ctx context.Context) (*machinev1alpha1.MachineSet, error) {
	for _, set := range f.sets {
		if set.Spec.Template.Spec.Class.Name == f.class() && set.DeletionTimestamp == nil {
			return set, f.adopt(ctx, set, f.deployment, "MachineDeployment")
		}
	}
	hash := Hash(f.class())
	template := *f.deployment.Spec.Template.DeepCopy()
	template.Labels = labels.Merge(template.Labels, map[string]string{
		LabelDeployment: f.deployment.Name, machinev1alpha1.DefaultMachineDeploymentUniqueLabelKey: hash,
	})
	set := &machinev1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.deployment.Namespace, Name: f.deployment.Name + "-" + hash, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{owner(f.deployment, "MachineDeployment")},
		},
		Spec: machinev1alpha1.MachineSetSpec{
			Replicas: f.deployment.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			MachineClass: template.Spec.Class, Template: template, MinReadySeconds: f.deployment.Spec.MinReadySeconds,
		},
	}
	if err := f.Client.Create(ctx, set); err != nil {
		return nil, fmt.Errorf("creating MachineSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	f.sets = append(f.sets, set)
	return set, nil
}

func owner(obj metav1.Object, kind string) metav1.OwnerReference {
	return *metav1.NewControllerRef(obj, machinev1alpha1.SchemeGroupVersion.WithKind(kind))
}

// adopt sets the owner of an object that has none. Objects that a migration has restored have none.
func (f *family) adopt(ctx context.Context, obj client.Object, by client.Object, kind string) error {
	if metav1.GetControllerOf(obj) != nil {
		return nil
	}
	return operation.Patch(ctx, f.Client, obj, func(obj client.Object) {
		obj.SetOwnerReferences(append(slices.Clone(obj.GetOwnerReferences()), owner(by, kind)))
	})
}

// pass updates the current set and its machines with the changes that need no new machines; older ones are not changed. It
// also makes each set the owner of its machines.
func (f *family) pass(ctx context.Context, current *machinev1alpha1.MachineSet) error {
	update := func(spec *machinev1alpha1.MachineSpec) {
		template := f.deployment.Spec.Template.Spec.DeepCopy()
		spec.NodeTemplateSpec, spec.MachineConfiguration = template.NodeTemplateSpec, template.MachineConfiguration
	}
	for _, set := range f.sets {
		if set.DeletionTimestamp != nil {
			continue
		}
		err := operation.Patch(ctx, f.Client, set, func(s *machinev1alpha1.MachineSet) {
			if s.Name == current.Name {
				s.Spec.Replicas = f.deployment.Spec.Replicas
				update(&s.Spec.Template.Spec)
			} else {
				s.Spec.Replicas = f.count(func(m *machinev1alpha1.Machine) bool { return f.setOf(m) == set }).replicas
			}
		})
		if err != nil {
			return err
		}
	}
	for _, m := range f.machines {
		if m.DeletionTimestamp != nil {
			continue
		}
		if m.Spec.Class.Name == f.class() {
			if err := operation.Patch(ctx, f.Client, m, func(m *machinev1alpha1.Machine) { update(&m.Spec) }); err != nil {
				return err
			}
		}
		if set := f.setOf(m); set != nil {
			if err := f.adopt(ctx, m, set, "MachineSet"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *family) setOf(m *machinev1alpha1.Machine) *machinev1alpha1.MachineSet {
	for _, set := range f.sets {
		if set.Spec.Template.Spec.Class.Name == m.Spec.Class.Name {
			return set
		}
	}
	return nil
}

func (f *family) createMachine(ctx context.Context, set *machinev1alpha1.MachineSet) error {
	machine := &machinev1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name + "-" + rand.String(5),
			Labels: maps.Clone(set.Spec.Template.Labels), Annotations: maps.Clone(set.Spec.Template.Annotations),
			Finalizers: []string{Finalizer}, OwnerReferences: []metav1.OwnerReference{owner(set, "MachineSet")},
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
	}
	if err := f.Client.Create(ctx, machine); err != nil {
		return fmt.Errorf("creating a Machine of MachineSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	f.machines = append(f.machines, machine)
	return nil
}

// tidySets deletes old sets that have no machines any more.
func (f *family) tidySets(ctx context.Context, current *machinev1alpha1.MachineSet) error {
	for _, set := range f.sets {
		used := slices.ContainsFunc(f.machines, func(m *machinev1alpha1.Machine) bool { return f.setOf(m) == set })
		if set == current || used {
			continue
		}
		if err := operation.Delete(ctx, f.Client, set); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the machines, then the sets, and finally removes the finalizer of the deployment.
func (f *family) delete(ctx context.Context) error {
	for _, m := range f.machines {
		if err := operation.Delete(ctx, f.Client, m); err != nil {
			return err
		}
	}
	if len(f.machines) > 0 {
		return nil
	}
	for _, set := range f.sets {
		if err := operation.Delete(ctx, f.Client, set); err != nil {
			return err
		}
	}
	return operation.RemoveFinalizers(ctx, f.Client, f.deployment, Finalizer)
}
