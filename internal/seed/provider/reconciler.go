package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// Reconciler reconciles the objects of one kind.
type Reconciler struct {
	Kind   Kind
	Client client.Client
	// Reader reads directly from the seed, so that it always sees what this controller has written.
	Reader client.Reader
	Clock  clock.WithTicker
}

// Reconcile executes the operation that is due for an object, or waits for the end of its delay.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj := r.Kind.object()
	if err := r.Reader.Get(ctx, request.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.Kind.guard != nil && obj.GetExtensionSpec().GetExtensionType() == Type {
		if err := r.Kind.guard(ctx, obj); err != nil {
			logf.FromContext(ctx).Error(err, "Guarding an object outside of its operation failed", "kind", r.Kind.Title)
		}
	}
	task := &task{Reconciler: r, obj: obj, kind: operation.DueOperationType(obj, obj.GetExtensionStatus().GetLastOperation())}
	if !task.due() {
		return reconcile.Result{}, nil
	}
	wait, err := task.run(ctx)
	return component.RequeueAfter(wait, err)
}

// task is an operation on an object.
type task struct {
	*Reconciler
	obj  extensionsv1alpha1.Object
	kind corev1beta1.LastOperationType
}

// due reports whether the operation has to be executed.
func (t *task) due() bool {
	last := t.obj.GetExtensionStatus().GetLastOperation()
	switch {
	case t.obj.GetExtensionSpec().GetExtensionType() != Type ||
		operation.RequestedOperation(t.obj) == constants.GardenerOperationWaitForState:
		return false
	case t.kind == corev1beta1.LastOperationTypeMigrate || t.kind == corev1beta1.LastOperationTypeRestore:
		return true
	case operation.Is(last, corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationStateSucceeded):
		return false // it belongs to another seed now
	case t.kind == corev1beta1.LastOperationTypeDelete:
		return controllerutil.ContainsFinalizer(t.obj, t.Kind.Finalizer())
	}
	return operation.RequestedOperation(t.obj) != "" || last == nil || last.State != corev1beta1.LastOperationStateSucceeded ||
		t.Kind.outOfSync != nil && t.Kind.outOfSync(t.obj)
}

// run executes the next step of the operation, and returns the delay before the following one.
func (t *task) run(ctx context.Context) (time.Duration, error) {
	injected, wrong := t.injected()
	if err := t.begin(ctx, injected.Delay); err != nil {
		return 0, err
	}
	if wrong != nil {
		return 0, t.fail(ctx, t.obj, operation.ConfigurationProblem(wrong))
	}
	if wait := t.remaining(injected.Delay); wait > 0 {
		return wait, nil
	}
	if failure := injected.Failure; failure != nil {
		isOwn, err := t.claim(ctx, failure)
		if err != nil {
			return 0, err
		}
		if isOwn {
			return 0, t.failAsInjected(ctx, failure)
		}
	}
	if err := t.keepSecret(ctx); err != nil {
		return 0, t.fail(ctx, t.obj, err)
	}
	before := t.obj.DeepCopyObject().(extensionsv1alpha1.Object)
	err := t.Kind.act[t.kind](ctx, t.Client, t.obj)
	if wait := (*operation.Wait)(nil); errors.As(err, &wait) {
		return wait.After, t.patchWaiting(ctx, before, wait)
	}
	if err != nil {
		return 0, t.fail(ctx, before, err)
	}
	return 0, t.succeed(ctx, before)
}

// injected returns the delay and the failure that annotations request. A forced deletion ignores them.
func (t *task) injected() (injection.Injection, error) {
	if t.kind == corev1beta1.LastOperationTypeDelete && forced(t.obj) {
		return injection.Injection{}, nil
	}
	return injection.Parse(t.obj)
}

// begin records the start of the operation unless it has already started: it writes the status, adds the finalizer, removes
// the annotation that requested the operation, and starts the delay. The annotation is removed last, so that a restart does
// not lose the request.
func (t *task) begin(ctx context.Context, delay time.Duration) error {
	begun := operation.Is(t.obj.GetExtensionStatus().GetLastOperation(), t.kind, corev1beta1.LastOperationStateProcessing)
	if !begun {
		description := fmt.Sprintf("%s the %s", doing[t.kind], t.Kind.Title)
		if delay > 0 {
			description += fmt.Sprintf(", which takes %s because of the annotation %s", delay, injection.AnnotationDelay)
		}
		if err := t.report(ctx, t.obj, corev1beta1.LastOperationStateProcessing, 1, description, nil); err != nil {
			return err
		}
	}
	return operation.Patch(ctx, t.Client, t.obj, func(obj extensionsv1alpha1.Object) {
		if t.keepsFinalizers() {
			controllerutil.AddFinalizer(obj, t.Kind.Finalizer())
		}
		annotate(obj, func(annotations map[string]string) {
			if annotations[constants.GardenerOperation] == constants.GardenerOperationReconcile {
				delete(annotations, constants.GardenerOperation)
			}
			if _, ok := annotations[injection.AnnotationFail]; !ok {
				delete(annotations, injection.AnnotationFailed)
			}
			if delay == 0 {
				delete(annotations, injection.AnnotationStarted)
			} else if _, started := annotations[injection.AnnotationStarted]; !begun || !started {
				annotations[injection.AnnotationStarted] = t.Clock.Now().UTC().Format(time.RFC3339Nano)
			}
		})
	})
}

// keepsFinalizers reports whether the finalizers stay after the operation.
func (t *task) keepsFinalizers() bool {
	return t.kind != corev1beta1.LastOperationTypeDelete && t.kind != corev1beta1.LastOperationTypeMigrate
}

// remaining returns the rest of the delay. A start in the future, which a user could write, does not extend it.
func (t *task) remaining(delay time.Duration) time.Duration {
	started, err := time.Parse(time.RFC3339Nano, t.obj.GetAnnotations()[injection.AnnotationStarted])
	if err != nil {
		return 0
	}
	return min(started.Add(delay).Sub(t.Clock.Now()), delay)
}

// keepSecret adds the finalizer to the credentials of the object.
func (t *task) keepSecret(ctx context.Context) error {
	if !t.keepsFinalizers() {
		return nil
	}
	secret, err := t.secret(ctx)
	if err != nil || secret == nil {
		return err
	}
	return operation.AddFinalizer(ctx, t.Client, secret, t.Kind.Finalizer())
}

// secret returns the Secret with the credentials of the object, nil if it has none.
func (t *task) secret(ctx context.Context) (*corev1.Secret, error) {
	ref := t.Kind.secret(t.obj)
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := t.Reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading the credentials of %s %s in Secret %s/%s: %w", t.Kind.Title, t.obj.GetName(),
			ref.Namespace, ref.Name, err)
	}
	return secret, nil
}

// release removes the finalizers, so that the object and its Secret can be deleted.
func (t *task) release(ctx context.Context) error {
	secret, err := t.secret(ctx)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if secret != nil {
		if err := operation.RemoveFinalizers(ctx, t.Client, secret, t.Kind.Finalizer()); err != nil {
			return err
		}
	}
	return operation.RemoveFinalizers(ctx, t.Client, t.obj, t.Kind.Finalizer())
}

// AddToManager adds the controller of the kind to the manager. It sets the clients if they are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	b := component.NewControllerBuilder(mgr, "extension-"+r.Kind.Name, controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax),
	}).For(r.Kind.object(), builder.WithPredicates(ofProvider(), operationEvents(r.Kind.guard != nil)))
	if r.Kind.watch != nil {
		if err := r.Kind.watch(b, mgr); err != nil {
			return err
		}
	}
	return b.Complete(r)
}

func ofProvider() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		extension, ok := obj.(extensionsv1alpha1.Object)
		return ok && extension.GetExtensionSpec().GetExtensionType() == Type
	})
}

// operationEvents returns a predicate for events that start an operation or matter to one that waits. It passes only changes of what
// requests an operation, because the controller's own writes to the status or to annotations must not trigger it. For
// guarded kinds it also passes every change of the spec.
func operationEvents(guarded bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return operation.RequestedOperation(e.Object) != "" || e.Object.GetDeletionTimestamp() != nil || !succeeded(e.Object)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			asks, asked := operation.RequestedOperation(after), operation.RequestedOperation(before)
			again := before.GetAnnotations()[constants.GardenerTimestamp] != after.GetAnnotations()[constants.GardenerTimestamp]
			deleted := after.GetDeletionTimestamp() != nil
			return guarded && before.GetGeneration() != after.GetGeneration() || asks != "" && (asks != asked || again) ||
				deleted && (before.GetDeletionTimestamp() == nil || again || forced(after) && !forced(before)) ||
				!injection.Same(before, after) && (deleted || !succeeded(after))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func forced(obj client.Object) bool {
	return obj.GetAnnotations()[constants.AnnotationConfirmationForceDeletion] == "true"
}

func succeeded(obj client.Object) bool {
	last := operation.OfExtension(obj)
	return last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}
