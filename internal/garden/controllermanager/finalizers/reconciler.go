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

// DefaultRetry is the delay before it is checked again whether something that is being deleted is still in use.
const DefaultRetry = time.Minute

// shownUsers is how many users a message names.
const shownUsers = 10

// Kind is a kind of thing that is protected.
type Kind struct {
	// Name is the name of its controller, which is Gardener's.
	Name string
	// Finalizer is what keeps the thing.
	Finalizer string

	object func() client.Object
	uses   []use
	// clearsItself says that the users are deleted together with the object: no event asks a user to delete them, and
	// the deletion of each is watched.
	clearsItself bool
	// watches are other objects that want a thing of this kind looked at again.
	watches []watch
	// settle does what there is to do for a thing that stays, release what has to be undone before it may go. Both are
	// called again after errors.
	settle  func(context.Context, *Reconciler, client.Object) (reconcile.Result, error)
	release func(context.Context, *Reconciler, client.Object) error
}

// use is a way to be in use.
type use struct {
	// by is what uses, in the plural.
	by     string
	object client.Object
	list   func() client.ObjectList
	// refers are the names of the things of the kind that a user refers to.
	refers func(user client.Object) []types.NamespacedName
}

// watch says which things of the kind have to be looked at after a change of an object.
type watch struct {
	object client.Object
	names  func(context.Context, client.Reader, client.Object) []types.NamespacedName
}

// Reconciler reconciles the things of one kind.
type Reconciler struct {
	Kind   Kind
	Client client.Client
	// Reader asks the garden itself.
	Reader   client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Retry is DefaultRetry by default.
	Retry time.Duration
}

// Reconcile reconciles one thing.
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

// users are the users of a thing, one entry for each kind of user, as they are shown.
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

// Add puts a finalizer on an object, which is left as the garden has it then.
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

// Remove takes a finalizer from an object. One that is gone is all right.
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

// patchFinalizers locks optimistically: a merge patch of a list replaces all of it.
func patchFinalizers(ctx context.Context, c client.Client, obj, before client.Object) error {
	return c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
