package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/machines"
)

const (
	labelPool = constants.LabelWorkerPool
	// pollInterval is how often a Worker checks the machines that it waits for, in addition to watching them.
	pollInterval = 10 * time.Second
)

// workers manages the machines of Workers by means of the machine controller.
type workers struct {
	cloud Cloud
	clock clock.PassiveClock
	guard *machines.Guard
}

// inventory has all objects for machines in a namespace.
type inventory struct {
	deployments machinev1alpha1.MachineDeploymentList
	sets        machinev1alpha1.MachineSetList
	machines    machinev1alpha1.MachineList
	classes     machinev1alpha1.MachineClassList
}

func takeInventory(ctx context.Context, seed client.Client, namespace string) (*inventory, error) {
	i := &inventory{}
	for _, list := range []client.ObjectList{&i.deployments, &i.sets, &i.machines, &i.classes} {
		if err := seed.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the machines of namespace %s: %w", namespace, err)
		}
	}
	return i, nil
}

func (w *workers) reconcile(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker) error {
	shoot, err := cluster.Shoot(ctx, seed, worker.Namespace)
	if err != nil {
		return err
	}
	wanted, err := wantedDeployments(ctx, seed, worker)
	if err != nil {
		return err
	}
	before, err := takeInventory(ctx, seed, worker.Namespace)
	if err != nil {
		return err
	}
	hibernated := cluster.IsHibernated(shoot)
	if hibernated {
		if err := forceDeletion(ctx, seed, before.machines.Items); err != nil {
			return err
		}
	}
	written := false
	for i := range wanted {
		changed, err := w.deploy(ctx, seed, worker, &wanted[i], hibernated)
		if err != nil {
			return err
		}
		written = written || changed
	}
	w.reportDeployments(worker, wanted)
	now := before
	if written {
		if now, err = takeInventory(ctx, seed, worker.Namespace); err != nil {
			return err
		}
	}
	if err := available(now, wanted, hibernated); err != nil {
		return err
	}
	if err := deleteUnused(ctx, seed, now, wanted); err != nil {
		return err
	}
	return setState(worker, w.stateOf(now))
}

// deploy writes a MachineDeployment with its class, and reports whether it has changed one of them. It keeps the number of
// replicas, which the autoscaler or a user may have changed, within the limits of the pool.
func (w *workers) deploy(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker, d *wantedDeployment,
	hibernated bool) (changed bool, err error) {
	secret := d.classSecret(worker.Namespace)
	if _, err := controllerutil.CreateOrUpdate(ctx, seed, secret, func() error {
		metav1.SetMetaDataLabel(&secret.ObjectMeta, constants.GardenerPurpose, constants.GardenPurposeMachineClass)
		secret.Data = map[string][]byte{machines.UserDataKey: d.userData}
		return nil
	}); err != nil {
		return false, fmt.Errorf("writing the user data of MachineClass %s into Secret %s/%s: %w", d.class, secret.Namespace, secret.Name, err)
	}
	class := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: d.class}}
	written, err := controllerutil.CreateOrPatch(ctx, seed, class, func() error {
		d.fillClass(class, worker)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("writing MachineClass %s/%s: %w", class.Namespace, class.Name, err)
	}
	deployment := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: d.name}}
	deployed, err := controllerutil.CreateOrPatch(ctx, seed, deployment, func() error {
		if deployment.DeletionTimestamp != nil {
			return &operation.Wait{For: "MachineDeployment " + d.name + " of before to be gone", After: pollInterval, Progress: 10}
		}
		replicas := min(max(deployment.Spec.Replicas, d.min), d.max)
		if hibernated {
			replicas = 0
		}
		d.fillDeployment(deployment, replicas)
		return nil
	})
	if wait := (*operation.Wait)(nil); err != nil && !errors.As(err, &wait) {
		return false, fmt.Errorf("writing MachineDeployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return written != controllerutil.OperationResultNone || deployed != controllerutil.OperationResultNone, err
}

// reportDeployments writes the deployments into the status. Their time changes when an operation starts or they change.
func (w *workers) reportDeployments(worker *extensionsv1alpha1.Worker, wanted []wantedDeployment) {
	var deployments []extensionsv1alpha1.MachineDeployment
	images := sets.New[string]()
	for _, d := range wanted {
		deployments = append(deployments,
			extensionsv1alpha1.MachineDeployment{Name: d.name, Minimum: d.min, Maximum: d.max, Priority: d.from.Priority})
		images.Insert(d.from.MachineImage.Name + "\n" + d.from.MachineImage.Version)
	}
	last := worker.Status.LastOperation
	if begins := last == nil || last.Progress <= 1; begins || !equality.Semantic.DeepEqual(deployments, worker.Status.MachineDeployments) {
		now := metav1.NewTime(w.clock.Now())
		worker.Status.MachineDeployments, worker.Status.MachineDeploymentsLastUpdateTime = deployments, &now
	}
	worker.Status.ProviderStatus = &runtime.RawExtension{Raw: workerStatus(images)}
}

// available returns nil if each deployment has its machines, an *operation.Wait if not yet, or the failures of machines.
func available(now *inventory, wanted []wantedDeployment, hibernated bool) error {
	if hibernated {
		if left := len(now.machines.Items); left > 0 {
			return &operation.Wait{For: fmt.Sprintf("all machines to be hibernated (%d still awake)", left), After: pollInterval, Progress: 50}
		}
		return nil
	}
	var want, updated, ready, others int
	var errs []error
	for i := range now.deployments.Items {
		d := &now.deployments.Items[i]
		if !slices.ContainsFunc(wanted, func(w wantedDeployment) bool { return w.name == d.Name }) {
			continue
		}
		want += int(d.Spec.Replicas)
		for _, failure := range d.Status.FailedMachines {
			errs = append(errs, fmt.Errorf("machine %s failed: %s", failure.Name, failure.LastOperation.Description))
		}
		for _, m := range now.machines.Items {
			switch {
			case m.Labels[machines.LabelDeployment] != d.Name:
			case m.Spec.Class.Name != d.Spec.Template.Spec.Class.Name || m.DeletionTimestamp != nil:
				others++
			default:
				updated++
				if m.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning {
					ready++
				}
			}
		}
	}
	switch {
	case ready == want && updated == want && others == 0:
		return nil
	case len(errs) > 0:
		return errors.Join(errs...)
	case ready >= want:
		return &operation.Wait{For: fmt.Sprintf("all old machines to be drained and terminated (%d left)", others+updated-want),
			After: pollInterval, Progress: 80}
	}
	return &operation.Wait{For: fmt.Sprintf("machines to be available (%d/%d desired machine(s) available, %d/%d machine(s) updated)",
		ready, want, updated, want), After: pollInterval, Progress: 50}
}

// deleteUnused deletes deployments that are not wanted any more, and classes that no deployment uses.
func deleteUnused(ctx context.Context, seed client.Client, now *inventory, wanted []wantedDeployment) error {
	var left []string
	for i := range now.deployments.Items {
		d := &now.deployments.Items[i]
		if slices.ContainsFunc(wanted, func(w wantedDeployment) bool { return w.name == d.Name }) {
			continue
		}
		left = append(left, d.Name)
		if err := operation.Delete(ctx, seed, d); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return &operation.Wait{For: "MachineDeployments to be deleted: " + strings.Join(left, ", "), After: pollInterval, Progress: 90}
	}
	return deleteClasses(ctx, seed, now, wanted)
}

// deleteClasses deletes the classes that no deployment uses, after their Secrets, which are not found without the classes.
func deleteClasses(ctx context.Context, seed client.Client, now *inventory, wanted []wantedDeployment) error {
	for i := range now.classes.Items {
		class := &now.classes.Items[i]
		if slices.ContainsFunc(wanted, func(w wantedDeployment) bool { return w.class == class.Name }) {
			continue
		}
		secret := (&wantedDeployment{class: class.Name}).classSecret(class.Namespace)
		if err := seed.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the user data of MachineClass %s in Secret %s/%s: %w", class.Name, secret.Namespace, secret.Name, err)
		}
		if err := operation.Delete(ctx, seed, class); err != nil {
			return err
		}
	}
	return nil
}

// forceDeletion marks machines so that they are deleted without draining their Nodes.
func forceDeletion(ctx context.Context, seed client.Client, all []machinev1alpha1.Machine) error {
	for i := range all {
		if err := operation.Patch(ctx, seed, &all[i], func(m *machinev1alpha1.Machine) {
			metav1.SetMetaDataLabel(&m.ObjectMeta, machines.LabelForceDeletion, machines.ForceDeletion)
		}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// watchMachines triggers a reconciliation of the Workers in a namespace when a MachineDeployment changes, or a Machine is
// gone. It finds Workers in the cache.
func watchMachines(b *builder.Builder, mgr manager.Manager) error {
	cache := mgr.GetCache()
	workers := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		list := &extensionsv1alpha1.WorkerList{}
		if cache.List(ctx, list, client.InNamespace(obj.GetNamespace())) != nil {
			return nil // a waiting Worker also polls
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
		}
		return requests
	})
	removed := predicate.NewPredicateFuncs(func(client.Object) bool { return false })
	removed.DeleteFunc = nil // all deletions
	b.Watches(&machinev1alpha1.MachineDeployment{}, workers)
	b.Watches(&machinev1alpha1.Machine{}, workers, builder.WithPredicates(removed))
	return nil
}
