package bastion

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "bastion"

const (
	// AnnotationNamespace, on a Bastion of the seed, is the namespace of its Bastion in the garden.
	AnnotationNamespace = "gardenlite.dev/garden-namespace"

	// requeueDeletion is the delay before the next check whether a Bastion of the seed is gone. An event of the seed
	// triggers the check earlier.
	requeueDeletion = 5 * time.Second
)

// Reconciler reconciles the Bastions of a seed.
type Reconciler struct {
	controllerutils.Base
	// ConcurrentSyncs is the number of Bastions that are reconciled at the same time.
	ConcurrentSyncs int

	deleted operation.DeletedObjects
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: r.ConcurrentSyncs}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &operationsv1alpha1.Bastion{},
			&handler.EnqueueRequestForObject{}, changed())).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{},
			handler.EnqueueRequestsFromMapFunc(r.bastionsOf), moved())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &extensionsv1alpha1.Bastion{},
			handler.EnqueueRequestsFromMapFunc(inGarden), predicate.Or(operation.OperationEndedPredicate(operation.OfExtension), statusChanged()))).
		Complete(r)
}

// changed returns a predicate for changes of the spec, the annotations and the deletion timestamp of a Bastion.
// Heartbeats and other changes of the status do not pass.
func changed() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		component.ChangesIf(func(before, after client.Object) bool {
			return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
		}))
}

// moved returns a predicate for updates of a Shoot that change its seed or its namespace in the seed.
func moved() predicate.Predicate {
	return component.ChangesIf(func(before, after *corev1beta1.Shoot) bool {
		return ptr.Deref(before.Spec.SeedName, "") != ptr.Deref(after.Spec.SeedName, "") ||
			ptr.Deref(before.Status.SeedName, "") != ptr.Deref(after.Status.SeedName, "") ||
			before.Status.TechnicalID != after.Status.TechnicalID
	})
}

// statusChanged returns a predicate for a Bastion of the seed whose SSH port, address, last error or conditions have
// changed, which also happens outside of an operation.
func statusChanged() predicate.Predicate {
	return component.UpdatesIf(func(before, after *extensionsv1alpha1.Bastion) bool {
		return before.Annotations[operation.AnnotationSSHPort] != after.Annotations[operation.AnnotationSSHPort] ||
			!equality.Semantic.DeepEqual(before.Status.Ingress, after.Status.Ingress) ||
			!reflect.DeepEqual(before.Status.LastError, after.Status.LastError) ||
			!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	})
}

// inGarden maps a Bastion of the seed to the Bastion of the garden that it was created for.
func inGarden(_ context.Context, obj client.Object) []reconcile.Request {
	namespace := obj.GetAnnotations()[AnnotationNamespace]
	if namespace == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: obj.GetName()}}}
}

// bastionsOf maps a Shoot to its Bastions.
func (r *Reconciler) bastionsOf(ctx context.Context, shoot client.Object) (requests []reconcile.Request) {
	bastions := &operationsv1alpha1.BastionList{}
	if err := r.GardenClient.List(ctx, bastions, client.InNamespace(shoot.GetNamespace())); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Bastions", "namespace", shoot.GetNamespace())
		return nil
	}
	for i := range bastions.Items {
		if bastions.Items[i].Spec.ShootRef.Name == shoot.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&bastions.Items[i])})
		}
	}
	return requests
}

// Reconcile reconciles one Bastion.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bastion := &operationsv1alpha1.Bastion{}
	found, err := r.deleted.Read(ctx, r.GardenClient, request.NamespacedName, bastion)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the Bastion %s: %w", request.NamespacedName, err)
	}
	if !found {
		return reconcile.Result{}, r.cleanUpDeleted(ctx, request.NamespacedName)
	}
	shoot, err := r.shoot(ctx, bastion)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case bastion.DeletionTimestamp != nil:
		return r.delete(ctx, bastion, shoot)
	case shoot == nil || !r.has(shoot):
		return r.cleanUpForeign(ctx, bastion, shoot)
	}
	return reconcile.Result{}, r.reconcile(ctx, bastion, shoot)
}

// shoot returns the Shoot of a Bastion, nil if it does not exist.
func (r *Reconciler) shoot(ctx context.Context, bastion *operationsv1alpha1.Bastion) (*corev1beta1.Shoot, error) {
	shoot := &corev1beta1.Shoot{}
	key := client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}
	if err := r.GardenClient.Get(ctx, key, shoot); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the Shoot %s of the Bastion %s: %w", key, bastion.Name, err)
	}
	return shoot, nil
}

// has reports whether a Shoot is on this seed, and is not being migrated.
func (r *Reconciler) has(shoot *corev1beta1.Shoot) bool {
	return ptr.Deref(shoot.Spec.SeedName, r.SeedName) == r.SeedName && ptr.Deref(shoot.Status.SeedName, r.SeedName) == r.SeedName
}

// reconcile writes a Bastion into the seed, and copies its status back to the garden.
func (r *Reconciler) reconcile(ctx context.Context, bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) error {
	if err := operation.AddFinalizer(ctx, r.GardenClient, bastion, corev1beta1.GardenerName); apierrors.IsNotFound(err) {
		return nil // the Bastion was deleted before this gardenlet handled it
	} else if err != nil {
		return err
	}
	if shoot.Status.TechnicalID == "" {
		return r.fail(ctx, bastion, &corev1beta1.LastError{Description: fmt.Sprintf("the Shoot %s is not on the seed yet", shoot.Name)})
	}
	wanted, err := specOf(bastion)
	if err != nil {
		return r.fail(ctx, bastion,
			&corev1beta1.LastError{Description: err.Error(), Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}})
	}
	extension := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: bastion.Name}}
	if err := r.SeedClient.Get(ctx, client.ObjectKeyFromObject(extension), extension); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the seed's Bastion %s: %w", client.ObjectKeyFromObject(extension), err)
	}
	if replaced, err := r.replace(ctx, bastion, extension, wanted); replaced || err != nil {
		return err
	}
	asked := operation.RequestedOperation(bastion) == constants.GardenerOperationReconcile
	due, failure := extensionops.Evaluate(extension, extensionops.Same(extension.Spec, wanted), time.Time{})
	if extension.Status.LastOperation == nil {
		failure = nil // the extension has not begun, so there is nothing to report
	}
	if due || asked {
		if failure != nil {
			if err := r.patchStatus(ctx, bastion, extension, failure); err != nil {
				return err
			}
		}
		return r.requestReconcile(ctx, bastion, extension, wanted)
	}
	if err := r.extensions().SyncInjectionAnnotations(ctx, bastion, extension); err != nil {
		return err
	}
	return r.patchStatus(ctx, bastion, extension, failure)
}

// specOf returns the spec of the Bastion in the seed for a Bastion of the garden.
func specOf(bastion *operationsv1alpha1.Bastion) (extensionsv1alpha1.BastionSpec, error) {
	data, err := userData(bastion.Spec.SSHPublicKey)
	if err != nil {
		return extensionsv1alpha1.BastionSpec{}, fmt.Errorf("spec.sshPublicKey of the Bastion: %w", err)
	}
	spec := extensionsv1alpha1.BastionSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: ptr.Deref(bastion.Spec.ProviderType, "")},
		UserData:    data, Ingress: make([]extensionsv1alpha1.BastionIngressPolicy, len(bastion.Spec.Ingress)),
	}
	for i, ingress := range bastion.Spec.Ingress {
		spec.Ingress[i] = extensionsv1alpha1.BastionIngressPolicy{IPBlock: ingress.IPBlock}
	}
	return spec, nil
}

// userData returns the script that a bastion runs at its first boot: it creates one user with one authorized key. Of
// the text that the user gave, the script contains only the parsed key, so that nothing else gets into the script or
// into authorized_keys.
func userData(publicKey string) ([]byte, error) {
	key, err := bastionspec.ParsePublicKey(publicKey)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `#!/bin/bash -eu

id gardener || useradd gardener -mU
mkdir -p /home/gardener/.ssh
echo "%s" > /home/gardener/.ssh/authorized_keys
chmod 700 /home/gardener/.ssh
chmod 600 /home/gardener/.ssh/authorized_keys
chown -R gardener:gardener /home/gardener/.ssh
mkdir -p /etc/sudoers.d
echo "gardener ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/99-gardener-user
chmod 440 /etc/sudoers.d/99-gardener-user
systemctl start sshd || systemctl start ssh
`, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))), nil
}

// replace deletes a Bastion of the seed with another key, because the user data of its machine cannot change. A new
// Bastion is created when the old one is gone. The same holds for a Bastion that another client has deleted.
func (r *Reconciler) replace(ctx context.Context, bastion *operationsv1alpha1.Bastion,
	extension *extensionsv1alpha1.Bastion, wanted extensionsv1alpha1.BastionSpec) (bool, error) {
	if extension.ResourceVersion == "" || extension.DeletionTimestamp == nil && string(extension.Spec.UserData) == string(wanted.UserData) {
		return false, nil
	}
	if _, err := r.remove(ctx, bastion, extension); err != nil {
		return true, err
	}
	return true, r.fail(ctx, bastion, &corev1beta1.LastError{Description: "the machine is being replaced"})
}

// requestReconcile writes the wanted spec, and requests a reconciliation from the extension.
func (r *Reconciler) requestReconcile(ctx context.Context, bastion *operationsv1alpha1.Bastion, extension *extensionsv1alpha1.Bastion,
	wanted extensionsv1alpha1.BastionSpec) error {
	err := r.extensions().RequestOperation(ctx, bastion, extension, constants.GardenerOperationReconcile, func() {
		metav1.SetMetaDataAnnotation(&extension.ObjectMeta, AnnotationNamespace, bastion.Namespace)
		extension.Spec = wanted
	})
	if apierrors.IsAlreadyExists(err) {
		return err // the cache does not have the resource yet
	}
	if err != nil {
		if statusErr := r.fail(ctx, bastion, &corev1beta1.LastError{Description: err.Error()}); statusErr != nil {
			return fmt.Errorf("%w (and the status could not be patched: %w)", err, statusErr)
		}
		return err
	}
	return operation.Patch(ctx, r.GardenClient, bastion, func(bastion *operationsv1alpha1.Bastion) {
		if operation.RequestedOperation(bastion) == constants.GardenerOperationReconcile {
			delete(bastion.Annotations, constants.GardenerOperation)
		}
	})
}

func (r *Reconciler) extensions() extensionops.Extensions {
	return extensionops.Extensions{Base: &r.Base}
}
