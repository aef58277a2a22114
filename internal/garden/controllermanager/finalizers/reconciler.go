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
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
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
	list   client.ObjectList
	// refers returns the names of the objects of the kind that a user refers to.
	refers func(user client.Object) []types.NamespacedName
}

// watch maps a changed object to requests for the objects of the kind that must be reconciled.
type watch struct {
	object   client.Object
	requests func(context.Context, client.Reader, client.Object) []reconcile.Request
}

// Reconciler reconciles the objects of one kind.
type Reconciler struct {
	Kind Kind
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, r.Kind.Name)
	b := component.NewControllerBuilder(mgr, r.Kind.Name).For(r.Kind.object(), builder.WithPredicates(changed()))
	for _, use := range r.Kind.uses {
		b = b.Watches(use.object, handler.EnqueueRequestsFromMapFunc(r.releasedBy(use)), builder.WithPredicates(mayRelease()))
	}
	for _, watch := range r.Kind.watches {
		b = b.Watches(watch.object, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return watch.requests(ctx, r.Client, obj)
		}), builder.WithPredicates(component.ChangesIf(respecified)))
	}
	return b.Complete(r)
}

// releasedBy returns a function that maps a user to requests for those objects in deletion that it refers to. In case
// of an update, the function is called with the old and the new user.
func (r *Reconciler) releasedBy(u use) handler.MapFunc {
	return func(ctx context.Context, user client.Object) (requests []reconcile.Request) {
		for _, name := range u.refers(user) {
			obj := r.Kind.object()
			if err := r.Client.Get(ctx, name, obj); err == nil && obj.GetDeletionTimestamp() != nil {
				requests = append(requests, reconcile.Request{NamespacedName: name})
			}
		}
		return requests
	}
}

// changed passes updates of the spec, the deletion timestamp and the finalizers, but not of the status, which this
// controller writes.
func changed() predicate.Predicate {
	return component.ChangesIf(func(before, after client.Object) bool {
		return respecified(before, after) ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			len(before.GetFinalizers()) != len(after.GetFinalizers())
	})
}

// mayRelease passes the updates and deletions after which a user may refer to fewer objects than before.
func mayRelease() predicate.Predicate { return component.DeletionsAndUpdatesIf(respecified) }

// respecified reports whether the spec may have changed. CloudProfiles, bindings and other kinds have no generation
// (0), so that every update counts.
func respecified(before, after client.Object) bool {
	return after.GetGeneration() == 0 || before.GetGeneration() != after.GetGeneration()
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
	if err := operation.AddFinalizer(ctx, r.Client, obj, r.Kind.Finalizer); err != nil {
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
		return reconcile.Result{RequeueAfter: DefaultRetry}, nil
	}
	if r.Kind.release != nil {
		if err := r.Kind.release(ctx, r, obj); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, operation.RemoveFinalizers(ctx, r.Client, obj, r.Kind.Finalizer)
}

// users returns the users of an object for messages, with one entry for each kind of user.
func (r *Reconciler) users(ctx context.Context, thing types.NamespacedName) (all []string, err error) {
	for _, use := range r.Kind.uses {
		list := use.list.DeepCopyObject().(client.ObjectList)
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
