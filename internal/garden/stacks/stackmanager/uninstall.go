package stackmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

const (
	// waitingRetry is the requeue period of an uninstallation that is blocked by instances, or waits, and of an installation
	// that waits for an object of another install.
	waitingRetry = 2 * time.Second
	// namedInstances is the maximum number of instances of a CRD that a message names.
	namedInstances = 5
)

// blocked is the reason why an uninstallation does not start until it is resolved or the deletion is confirmed.
type blocked struct{ error }

func (r *Reconciler) reconcileDeletion(ctx context.Context, install v1alpha1.Install) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(install, finalizer) {
		return reconcile.Result{}, nil
	}
	err := r.uninstall(ctx, install)
	var isBlocked blocked
	var isWaiting waiting
	switch {
	case errors.As(err, &isBlocked): // the controller keeps running
		return reconcile.Result{RequeueAfter: waitingRetry}, r.setStatus(ctx, install, v1alpha1.Condition{Type: v1alpha1.Synced,
			Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonDeletionBlocked, Message: err.Error()})
	case errors.As(err, &isWaiting):
		return reconcile.Result{RequeueAfter: waitingRetry}, r.setStatus(ctx, install,
			v1alpha1.Condition{Type: v1alpha1.Synced, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonReconcileSuccess},
			notReady(v1alpha1.ReasonDeleting, err.Error()))
	case err != nil:
		return reconcile.Result{}, err
	}
	r.packages.forget(install.GetUID())
	return reconcile.Result{}, operation.RemoveFinalizers(ctx, r.Client, install, finalizer)
}

// uninstall deletes the objects of a stack: first the instances and CRDs, while the controller can still remove its
// finalizers, then the controller and its permissions.
func (r *Reconciler) uninstall(ctx context.Context, install v1alpha1.Install) error {
	key := client.ObjectKeyFromObject(install)
	stack := &v1alpha1.Stack{}
	if err := r.Live.Get(ctx, key, stack); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(stack, install) {
		return nil
	}
	last, shared, dependents, err := r.ownedBy(ctx, stack)
	if err != nil {
		return err
	}
	if err := r.ensureListing(ctx, slices.Concat(last, shared)); err != nil {
		return err
	}
	if install.GetAnnotations()[v1beta1constants.ConfirmationDeletion] != "true" {
		if err := r.inTheWay(ctx, install, last, shared, dependents); err != nil {
			return err
		}
	}
	for _, crd := range last {
		err := r.Delete(ctx, crd, client.Preconditions{UID: ptr.To(crd.UID)})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if len(last) > 0 {
		return wait("waiting for the deletion of the CRD %s and its instances", last[0].Name)
	}
	if err := r.removeController(ctx, install, stack); err != nil {
		return err
	}
	if err := r.endListing(ctx, stack); err != nil {
		return err
	}
	return r.release(ctx, stack)
}

// removeController ends the controller of a stack, and removes its permissions.
func (r *Reconciler) removeController(ctx context.Context, install v1alpha1.Install, stack *v1alpha1.Stack) error {
	key := client.ObjectKeyFromObject(install)
	if err := r.endControllers(ctx, key, nil); err != nil {
		return err
	}
	role, binding := permissionsOf(key, install.Scope(), nil)
	for _, object := range []client.Object{binding, role, serviceAccountOf(key)} {
		if err := r.remove(ctx, stack, object); err != nil {
			return err
		}
	}
	return nil
}

// withdraw removes the controller and the permissions of a stack that an earlier version has installed where no stack
// may be any more. Its CRDs and their instances stay until it is uninstalled.
func (r *Reconciler) withdraw(ctx context.Context, install v1alpha1.Install) error {
	stack := &v1alpha1.Stack{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(install), stack)
	if err != nil || !metav1.IsControlledBy(stack, install) {
		return client.IgnoreNotFound(err)
	}
	return r.removeController(ctx, install, stack)
}

// release deletes the Stack, unless it has become the last owner of a CRD in the meantime.
func (r *Reconciler) release(ctx context.Context, stack *v1alpha1.Stack) error {
	r.claims.Lock()
	defer r.claims.Unlock()
	last, _, _, err := r.ownedBy(ctx, stack)
	if err != nil {
		return err
	}
	if len(last) > 0 {
		return wait("the CRD %s has no other owner any more", last[0].Name)
	}
	return client.IgnoreNotFound(r.Delete(ctx, stack, client.Preconditions{UID: ptr.To(stack.UID)}))
}

// ownedBy returns the CRDs that the stack owns: last are those without another owner, shared are those with other
// owners. dependents describes the stacks that depend on CRDs in last.
func (r *Reconciler) ownedBy(ctx context.Context, stack *v1alpha1.Stack) (
	last, shared []*apiextensionsv1.CustomResourceDefinition, dependents []string, err error) {
	stacks := &v1alpha1.StackList{}
	if err := r.Live.List(ctx, stacks); err != nil {
		return nil, nil, nil, err
	}
	others := slices.DeleteFunc(stacks.Items, func(other v1alpha1.Stack) bool { return other.UID == stack.UID })
	for _, owned := range stack.Spec.CustomResourceDefinitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := r.Live.Get(ctx, client.ObjectKey{Name: owned.Name}, crd)
		if apierrors.IsNotFound(err) || err == nil && crd.Labels[stackpackage.ManagedByLabel] != stackpackage.ManagedBy {
			continue
		}
		if err != nil {
			return nil, nil, nil, err
		}
		if slices.ContainsFunc(others, func(other v1alpha1.Stack) bool { return owns(&other, crd.Name) }) {
			shared = append(shared, crd)
			continue
		}
		last = append(last, crd)
		for i := range others {
			if dependsOn(&others[i], crd.Name) {
				dependents = append(dependents, fmt.Sprintf("the stack %s/%s depends on %s", others[i].Namespace, others[i].Name, crd.Name))
			}
		}
	}
	return last, shared, dependents, nil
}

func dependsOn(stack *v1alpha1.Stack, crd string) bool {
	return slices.ContainsFunc(stack.Spec.DependsOn, func(d stackpackage.Dependency) bool {
		name, _, _ := strings.Cut(d.CRD, "/")
		return name == crd
	})
}

// inTheWay returns a blocked error with everything that would be lost without a confirmation: instances whose CRD or
// controller would be deleted, and stacks that depend on the CRDs.
func (r *Reconciler) inTheWay(ctx context.Context, install v1alpha1.Install, last, shared []*apiextensionsv1.CustomResourceDefinition,
	dependents []string,
) error {
	reasons := dependents
	for _, crd := range slices.Concat(last, shared) {
		if stackpackage.IsReservedGroup(crd.Spec.Group) { // installed by an earlier version
			reasons = append(reasons,
				fmt.Sprintf("whether there are instances of %s is not known: its group is not that of a stack", crd.Name))
			continue
		}
		namespace := metav1.NamespaceAll
		if slices.Contains(shared, crd) { // other namespaces have controllers of their own
			namespace = install.GetNamespace()
		}
		names, more, err := r.instancesOf(ctx, crd, namespace)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			reasons = append(reasons, fmt.Sprintf("there are instances of %s: %s%s", crd.Name, strings.Join(names, ", "), more))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return blocked{fmt.Errorf("%s; delete them, or confirm that the stack is uninstalled nevertheless: annotation %s=true, "+
		"or gardenlite stack uninstall --confirm; until then the stack stays as it is, and its uninstallation is pending: "+
		"gardenlite stack install with the same package takes it back", strings.Join(reasons, "; "),
		v1beta1constants.ConfirmationDeletion)}
}

// instancesOf returns the names of up to namedInstances instances of a CRD, and a suffix if there are more.
func (r *Reconciler) instancesOf(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, namespace string) (
	names []string, more string, err error) {
	served := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
	if served < 0 {
		return nil, "", nil
	}
	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[served].Name, Resource: crd.Spec.Names.Plural}
	list, err := r.Instances.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: namedInstances})
	if err != nil {
		return nil, "", client.IgnoreNotFound(err)
	}
	for _, item := range list.Items {
		names = append(names, item.Namespace+"/"+item.Name)
	}
	if list.Continue != "" {
		more = " and others"
	}
	return names, more, nil
}

// remove deletes an object if it belongs to the stack.
func (r *Reconciler) remove(ctx context.Context, stack *v1alpha1.Stack, object client.Object) error {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err != nil || !belongsTo(object, stack) {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())}))
}
