package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/machines"
)

// delete deletes all machines of a Worker, and waits until they are gone. The Shoot and its Cluster may be gone already.
func (w *workers) delete(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker) error {
	now, err := takeInventory(ctx, seed, worker.Namespace)
	if err != nil {
		return err
	}
	if err := forceDeletion(ctx, seed, now.machines.Items); err != nil {
		return err
	}
	// The sets and machines of a deployment are deleted with it. Those without a deployment would stay.
	all := []client.ObjectList{&now.deployments, &now.machines}
	left := len(now.deployments.Items) + len(now.machines.Items)
	if left == 0 {
		all = []client.ObjectList{&now.sets}
	}
	for _, list := range all {
		err := meta.EachListItem(list, func(obj runtime.Object) error { return operation.Delete(ctx, seed, obj.(client.Object)) })
		if err != nil {
			return err
		}
	}
	if left > 0 {
		return &operation.Wait{For: fmt.Sprintf("%d machine(s) of %d deployment(s) to be deleted", len(now.machines.Items),
			len(now.deployments.Items)), After: pollInterval, Progress: 50}
	}
	if err := deleteClasses(ctx, seed, now, nil); err != nil {
		return err
	}
	return w.deleteOrphans(ctx, worker.Namespace)
}

// deleteOrphans deletes instances without a Machine, which the restoration of an old state can leave.
func (w *workers) deleteOrphans(ctx context.Context, namespace string) error {
	for _, instance := range w.cloud.Instances(namespace) {
		if instance.Tags[cloud.TagMachine] != namespace {
			continue
		}
		if err := w.cloud.DeleteInstance(ctx, instance.ID); err != nil {
			return fmt.Errorf("deleting the instance %s, which is no machine's, from the cloud: %w", instance.ID, err)
		}
	}
	return nil
}

// setState writes the state of the machines into the status, from which a migration restores them.
func setState(worker *extensionsv1alpha1.Worker, state *machines.State) error {
	raw, err := state.Marshal()
	if err != nil {
		return fmt.Errorf("keeping the machines of Worker %s/%s: %w", worker.Namespace, worker.Name, err)
	}
	worker.Status.State = &runtime.RawExtension{Raw: raw}
	return nil
}

func (w *workers) stateOf(now *inventory) *machines.State {
	return machines.NewState(w.cloud, now.deployments.Items, now.sets.Items, now.machines.Items)
}

// storedState returns the state of the machines in the status of a Worker.
func storedState(worker *extensionsv1alpha1.Worker) (*machines.State, error) {
	if worker.Status.State == nil {
		return &machines.State{}, nil
	}
	state, err := machines.UnmarshalState(worker.Status.State.Raw)
	if err != nil {
		return nil, fmt.Errorf("keeping the machines of Worker %s/%s: %w", worker.Namespace, worker.Name, err)
	}
	return state, nil
}

// migrate stores the state of the machines and deletes their objects. The instances keep running, and belong to the next
// seed. The machine controller stops working in the namespace of a migrated Worker, and the guard waits for it. The state
// is stored before the first object is deleted, and is extended if the migration continues after an interruption.
func (w *workers) migrate(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker) error {
	release, err := w.guard.Lock(ctx, worker.Namespace)
	if err != nil {
		return fmt.Errorf("waiting for the machine controller to stop in namespace %s: %w", worker.Namespace, err)
	}
	defer release()
	now, err := takeInventory(ctx, seed, worker.Namespace)
	if err != nil {
		return err
	}
	if err := w.writeState(ctx, seed, worker, now); err != nil {
		return err
	}
	for i := range now.machines.Items {
		if m := &now.machines.Items[i]; m.DeletionTimestamp != nil {
			if err := w.deleteInstance(ctx, worker.Namespace, m.Name); err != nil {
				return err
			}
		}
	}
	// Owned objects are deleted before their owner: if the garbage collector deleted a Machine, its instance would go, too.
	for _, list := range []client.ObjectList{&now.machines, &now.sets, &now.deployments} {
		err := meta.EachListItem(list, func(obj runtime.Object) error { return abandon(ctx, seed, obj.(client.Object)) })
		if err != nil {
			return err
		}
	}
	return deleteClasses(ctx, seed, now, nil)
}

func (w *workers) writeState(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker, now *inventory) error {
	earlier, err := storedState(worker)
	if err != nil {
		return err
	}
	state := w.stateOf(now)
	state.Add(earlier, w.cloud)
	before := worker.DeepCopy()
	if err := setState(worker, state); err != nil {
		return err
	}
	return operation.WriteStatus(ctx, seed, worker, before)
}

// abandon deletes an object without the clean-up that its finalizer stands for.
func abandon(ctx context.Context, seed client.Client, obj client.Object) error {
	if err := operation.RemoveFinalizers(ctx, seed, obj, machines.Finalizer); err != nil {
		return err
	}
	if err := seed.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %T %s/%s from the seed: %w", obj, obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

// restore recreates the objects of running machines, and then reconciles like any Worker. A deployment is created last, so
// that it finds its machines; from then on the machine controller manages them.
func (w *workers) restore(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker) error {
	state, err := storedState(worker)
	if err != nil {
		return err
	}
	wanted, err := wantedDeployments(ctx, seed, worker)
	if err != nil {
		return err
	}
	if err := w.deleteUnwanted(ctx, worker.Namespace, state, wanted); err != nil {
		return err
	}
	for i := range wanted {
		of := state.MachineDeployments[wanted[i].name]
		if of == nil || len(of.MachineSets) == 0 {
			continue
		}
		if err := w.restoreDeployment(ctx, seed, worker, &wanted[i], of); err != nil {
			return err
		}
	}
	return w.reconcile(ctx, seed, worker)
}

// deleteUnwanted deletes the instances of pools that were removed from the Shoot shortly before its migration. It does so
// before the first Machine exists, because the machine controller then deletes the Nodes without an instance, once.
func (w *workers) deleteUnwanted(ctx context.Context, namespace string, state *machines.State, wanted []wantedDeployment) error {
	for name, of := range state.MachineDeployments {
		if slices.ContainsFunc(wanted, func(d wantedDeployment) bool { return d.name == name }) {
			continue
		}
		for i := range of.Machines {
			if err := w.deleteInstance(ctx, namespace, of.Machines[i].Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteInstance deletes the instance of a Machine, if there is one.
func (w *workers) deleteInstance(ctx context.Context, namespace, name string) error {
	if _, ok := machines.InstanceOf(w.cloud, namespace, name); !ok {
		return nil
	}
	if err := w.cloud.DeleteInstance(ctx, name); err != nil {
		return fmt.Errorf("deleting the instance %s from the cloud: %w", name, err)
	}
	return nil
}

func (w *workers) restoreDeployment(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker,
	d *wantedDeployment, state *machines.DeploymentState) error {
	deployment := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: d.name}}
	if err := seed.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading MachineDeployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	} else if err == nil {
		return nil
	}
	for i := range state.MachineSets {
		if err := recreate(ctx, seed, &state.MachineSets[i], worker.Namespace); err != nil {
			return err
		}
	}
	for i := range state.Machines {
		m := &state.Machines[i]
		if _, ok := machines.InstanceOf(w.cloud, worker.Namespace, m.Name); !ok {
			continue // it is gone, and will be replaced
		}
		m.Finalizers = []string{machines.Finalizer}
		if err := recreate(ctx, seed, m, worker.Namespace); err != nil {
			return err
		}
	}
	d.fillDeployment(deployment, state.Replicas)
	if err := seed.Create(ctx, deployment); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("restoring MachineDeployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

// recreate creates an object of a state, always in the namespace of the Worker.
func recreate(ctx context.Context, seed client.Client, obj client.Object, namespace string) error {
	obj.SetNamespace(namespace)
	obj.SetResourceVersion("")
	if err := seed.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("restoring %T %s/%s: %w", obj, namespace, obj.GetName(), err)
	}
	return nil
}

// workerStatus returns a providerStatus with the machine images in use. The fields are in the order in which an API server
// returns them, so that an unchanged status is recognized.
func workerStatus(images sets.Set[string]) []byte {
	type image struct {
		Image   string `json:"image"`
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	status := struct {
		APIVersion    string  `json:"apiVersion"`
		Kind          string  `json:"kind"`
		MachineImages []image `json:"machineImages,omitempty"`
	}{APIVersion: ProviderAPIVersion, Kind: "WorkerStatus"}
	for _, key := range sets.List(images) {
		name, version, _ := strings.Cut(key, "\n")
		status.MachineImages = append(status.MachineImages, image{name + ":" + version, name, version})
	}
	raw, _ := json.Marshal(status) // encoding strings cannot fail
	return raw
}
