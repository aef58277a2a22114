package finalizers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// DefaultRetry is the requeue period of an object in deletion that is still in use.
const DefaultRetry = time.Minute

// shownUsers is the maximum number of users that a message names.
const shownUsers = 10

// Kind is a kind of object that is protected.
type Kind struct {
	// Name is the name of the controller, as in Gardener.
	Name string
	// Finalizer is the finalizer that protects the object.
	Finalizer string

	object func() client.Object
	uses   []use
	// clearsItself is set if the users are deleted together with the object. Then no event reports them, and the object
	// is not requeued, because the deletion of each user triggers a reconciliation.
	clearsItself bool
	// watches are other objects whose changes trigger a reconciliation of objects of this kind.
	watches []watch
	// settle is called for an object that is not being deleted, and release before its finalizer is removed. Both are
	// called again after errors.
	settle  func(context.Context, *Reconciler, client.Object) (reconcile.Result, error)
	release func(context.Context, *Reconciler, client.Object) error
}

// use is one way in which objects of the kind can be in use.
type use struct {
	// by is the plural name of the users.
	by     string
	object client.Object
	list   func() client.ObjectList
	// refers returns the names of the objects of the kind that a user refers to.
	refers func(user client.Object) []types.NamespacedName
}

// watch maps a changed object to the names of the objects of the kind that must be reconciled.
type watch struct {
	object client.Object
	names  func(context.Context, client.Reader, client.Object) []types.NamespacedName
}

// Reconciler reconciles the objects of one kind.
type Reconciler struct {
	Kind   Kind
	Client client.Client
	// Reader reads from the API server of the garden, without the cache.
	Reader   client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Retry defaults to DefaultRetry.
	Retry time.Duration
}

// Reconcile reconciles one object.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj := r.Kind.object()
	if err := r.Client.Get(ctx, request.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if obj.GetDeletionTimestamp() != nil {
		return r.delete(ctx, obj)
	}
	if err := Add(ctx, r.Client, obj, r.Kind.Finalizer); err != nil {
		return reconcile.Result{}, err
	}
	if r.Kind.settle == nil {
		return reconcile.Result{}, nil
	}
	return r.Kind.settle(ctx, r, obj)
}

func (r *Reconciler) delete(ctx context.Context, obj client.Object) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer) {
		return reconcile.Result{}, nil
	}
	users, err := r.users(ctx, client.ObjectKeyFromObject(obj))
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(users) > 0 {
		logf.FromContext(ctx).Info("It is to be deleted, but is in use", "users", users)
		if r.Kind.clearsItself {
			return reconcile.Result{}, nil
		}
		r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, constants.EventResourceReferenced, corev1beta1.EventActionDelete,
			"It is deleted once nothing refers to it any more: %s", strings.Join(users, "; "))
		return reconcile.Result{RequeueAfter: r.retry()}, nil
	}
	if r.Kind.release != nil {
		if err := r.Kind.release(ctx, r, obj); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, Remove(ctx, r.Client, obj, r.Kind.Finalizer)
}

func (r *Reconciler) retry() time.Duration {
	if r.Retry > 0 {
		return r.Retry
	}
	return DefaultRetry
}

// users returns the users of an object for messages, with one entry for each kind of user.
func (r *Reconciler) users(ctx context.Context, thing types.NamespacedName) (all []string, err error) {
	for _, use := range r.Kind.uses {
		list := use.list()
		if err := r.Reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the %s that may use %s %s: %w", use.by, r.Kind.Name, thing, err)
		}
		var names []string
		err := meta.EachListItem(list, func(item runtime.Object) error {
			user := item.(client.Object)
			if slices.Contains(use.refers(user), thing) {
				names = append(names, strings.TrimPrefix(client.ObjectKeyFromObject(user).String(), "/"))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the %s that may use %s %s: %w", use.by, r.Kind.Name, thing, err)
		}
		if len(names) > 0 {
			all = append(all, use.by+" "+shorten(names))
		}
	}
	return all, nil
}

func shorten(names []string) string {
	slices.Sort(names)
	if more := len(names) - shownUsers; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownUsers], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Add adds a finalizer to an object, and updates obj to the result.
func Add(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	before := obj.DeepCopyObject().(client.Object)
	if !controllerutil.AddFinalizer(obj, finalizer) {
		return nil
	}
	if err := patchFinalizers(ctx, c, obj, before); err != nil {
		return fmt.Errorf("adding the finalizer %s: %w", finalizer, err)
	}
	return nil
}

// Remove removes a finalizer from an object. It returns nil if the object does not exist.
func Remove(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	before := obj.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(obj, finalizer) {
		return nil
	}
	if err := patchFinalizers(ctx, c, obj, before); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer %s: %w", finalizer, err)
	}
	return nil
}

// patchFinalizers uses optimistic locking, because a merge patch replaces the whole list of finalizers.
func patchFinalizers(ctx context.Context, c client.Client, obj, before client.Object) error {
	return c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
