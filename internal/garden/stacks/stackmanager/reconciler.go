package stackmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

// retryAfter is the requeue period for a package that could not be read or was refused.
const retryAfter = 30 * time.Second

// Reconciler installs and uninstalls the stacks of one of the two kinds of installs.
type Reconciler struct {
	client.Client
	// Live reads from the API server: which stack owns a CRD must not be decided with outdated objects from the cache.
	Live      client.Reader
	Instances metadata.Interface
	Discovery discovery.ServerResourcesInterface
	Clock     clock.PassiveClock

	kind     v1alpha1.Install
	packages *packages
	// claims is held while the owner of a CRD is determined.
	claims *sync.Mutex

	controller controller.Controller
	cache      cache.Cache
	watching   sync.Mutex
	watches    bool
}

// refusal is an error that a retry with the same package does not resolve, so it is retried without backoff after
// retryAfter.
type refusal struct{ error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// conflict is the refusal of a package that conflicts with another stack. It is not retried until the install changes.
type conflict struct{ error }

func conflictf(format string, args ...any) error {
	return conflict{fmt.Errorf(format+"; an install that was refused for this stays refused: "+
		"delete it and create it again when the other stack is uninstalled", args...)}
}

// waiting is the error of an installation that waits for another object, whose watch triggers the next reconciliation. If the
// object is not one of the stack, no watch does, and requeueAfter is the requeue period.
type waiting struct {
	error
	requeueAfter time.Duration
}

func wait(format string, args ...any) error { return waiting{error: fmt.Errorf(format, args...)} }

func (r *Reconciler) addToManager(mgr manager.Manager) (err error) {
	r.cache = mgr.GetCache()
	r.controller, err = component.NewControllerBuilder(mgr, strings.ToLower(r.kind.Kind())).For(r.kind).Build(r)
	return err
}

// watch starts the watches for the objects of stacks when the first install is reconciled.
func (r *Reconciler) watch() error {
	r.watching.Lock()
	defer r.watching.Unlock()
	if r.watches || r.controller == nil {
		return nil
	}
	ofStack := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		labels := object.GetLabels()
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: labels[namespaceLabel], Name: labels[stackLabel]}}}
	})
	handlers := map[client.Object]handler.EventHandler{
		&v1alpha1.Stack{}: &handler.EnqueueRequestForObject{},
		&apiextensionsv1.CustomResourceDefinition{}: handler.EnqueueRequestsFromMapFunc(r.usersOf),
	}
	for _, object := range controlled() {
		handlers[object] = ofStack
	}
	for object, handler := range handlers {
		if err := r.controller.Watch(source.Kind(r.cache, object, handler)); err != nil {
			return err
		}
	}
	r.watches = true
	return nil
}

// usersOf returns requests for the installs whose package owns the CRD or depends on it, and for those that are being
// deleted.
func (r *Reconciler) usersOf(ctx context.Context, crd client.Object) (requests []reconcile.Request) {
	installs, err := v1alpha1.ListInstalls(ctx, r)
	if err != nil {
		return nil
	}
	for _, install := range installs {
		concerned := r.packages.uses(install.GetUID(), crd.GetName()) || !install.GetDeletionTimestamp().IsZero()
		if install.Kind() == r.kind.Kind() && concerned {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(install)})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	install := r.kind.DeepCopyObject().(v1alpha1.Install)
	if err := r.Get(ctx, request.NamespacedName, install); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.watch(); err != nil {
		return reconcile.Result{}, err
	}
	if !install.GetDeletionTimestamp().IsZero() {
		return r.reconcileDeletion(ctx, install)
	}
	if err := operation.AddFinalizer(ctx, r.Client, install, finalizer); err != nil {
		return reconcile.Result{}, err
	}
	ready, warnings, err := r.install(ctx, install)
	return r.report(ctx, install, ready, warnings, err)
}

// report writes the result of a reconciliation to the status.
func (r *Reconciler) report(ctx context.Context, install v1alpha1.Install, ready v1alpha1.Condition, warnings []string, err error,
) (reconcile.Result, error) {
	synced := v1alpha1.Condition{Type: v1alpha1.Synced, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonReconcileSuccess,
		Message: strings.Join(warnings, "; ")}
	result := reconcile.Result{}
	var isWaiting waiting
	var isRefused refusal
	var isConflict conflict
	switch {
	case errors.As(err, &isWaiting):
		ready, err = notReady(v1alpha1.ReasonCreating, err.Error()), nil
		result.RequeueAfter = isWaiting.requeueAfter
	case err != nil && (apierrors.IsConflict(err) || ctx.Err() != nil):
		return reconcile.Result{}, err // retried, without a change of the status
	case err != nil:
		synced = v1alpha1.Condition{Type: v1alpha1.Synced, Status: corev1.ConditionFalse,
			Reason: v1alpha1.ReasonReconcileError, Message: err.Error()}
		if ready.Type == "" {
			ready = notReady(v1alpha1.ReasonUnavailable, "it is not installed: "+err.Error())
		}
		switch {
		case errors.As(err, &isRefused):
			result.RequeueAfter, err = retryAfter, nil
		case errors.As(err, &isConflict):
			synced.Reason, err = v1alpha1.ReasonConflict, nil
		}
	}
	return result, errors.Join(err, r.setStatus(ctx, install, ready, synced))
}

func notReady(reason, message string) v1alpha1.Condition {
	return v1alpha1.Condition{Type: v1alpha1.Ready, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// setStatus writes the conditions to the status of an install and its Stack.
func (r *Reconciler) setStatus(ctx context.Context, install v1alpha1.Install, conditions ...v1alpha1.Condition) error {
	current := r.kind.DeepCopyObject().(v1alpha1.Install)
	if err := r.Get(ctx, client.ObjectKeyFromObject(install), current); err != nil {
		return client.IgnoreNotFound(err)
	}
	install.State().ObservedGeneration = install.GetGeneration()
	install.State().SetConditions(metav1.NewTime(r.Clock.Now()), conditions...)
	if !apiequality.Semantic.DeepEqual(current.State(), install.State()) {
		before := current.DeepCopyObject().(client.Object)
		*current.State() = *install.State()
		if err := r.Status().Patch(ctx, current, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	stack := &v1alpha1.Stack{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(install), stack); err != nil || !metav1.IsControlledBy(stack, install) {
		return client.IgnoreNotFound(err)
	}
	before := stack.DeepCopyObject().(client.Object)
	stack.Status.SetConditions(metav1.NewTime(r.Clock.Now()), conditions...)
	stack.Status.ControllerRef = controllerRef(stack)
	if apiequality.Semantic.DeepEqual(before.(*v1alpha1.Stack).Status, stack.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Status().Patch(ctx, stack, client.MergeFrom(before)))
}

// controllerRef returns the reference to a stack's controller, and nil if it has none.
func controllerRef(stack *v1alpha1.Stack) *corev1.ObjectReference {
	switch c := stack.Spec.Controller; {
	case c.Deployment != nil:
		return &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: stack.Namespace, Name: c.Deployment.Name}
	case c.Job != nil:
		return &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: stack.Namespace, Name: c.Job.Name}
	}
	return nil
}

// install performs the missing steps of an installation. The process may end after each of them.
func (r *Reconciler) install(ctx context.Context, install v1alpha1.Install) (ready v1alpha1.Condition, warnings []string, err error) {
	key := client.ObjectKeyFromObject(install)
	if err := v1alpha1.CheckPlace(key.Namespace, key.Name); err != nil {
		return ready, nil, cmp.Or(r.withdraw(ctx, install), error(refusal{err}))
	}
	state := install.State()
	if synced := state.Condition(v1alpha1.Synced); synced.Reason == v1alpha1.ReasonConflict &&
		state.ObservedGeneration == install.GetGeneration() {
		return r.availability(ctx, install), nil, conflict{errors.New(synced.Message)}
	}
	spec := install.Request()
	if spec.Package == "" {
		return ready, nil, refuse("spec.package is missing; no package is found by spec.crd")
	}
	p, err := r.packages.of(ctx, install)
	if err != nil {
		return r.availability(ctx, install), nil, refusal{err}
	}
	if p.App.PermissionScope != install.Scope() {
		return r.availability(ctx, install), nil, refuse("the package has permissionScope %s, and a %s installs stacks with %s only: use a %s",
			p.App.PermissionScope, install.Kind(), install.Scope(), kindFor(p.App.PermissionScope))
	}
	planned, err := r.plan(ctx, install, p)
	if err != nil {
		return r.availability(ctx, install), nil, err
	}
	if err := r.apply(ctx, install, p, planned); err != nil {
		return ready, nil, err
	}
	state.Package, state.Digest = spec.Reference(), p.Digest
	state.StackRecord = &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.StackKind,
		Namespace: key.Namespace, Name: key.Name, UID: planned.stack.UID}
	ready = r.availability(ctx, install)
	if ready.Status == corev1.ConditionTrue && p.Deployment != nil && ptr.Deref(p.Deployment.Spec.Replicas, 1) > 0 {
		err = r.settling(ctx, key, p.Digest)
	}
	return ready, append(slices.Clone(p.Warnings), planned.warnings...), err
}

func kindFor(scope stackpackage.Scope) string {
	if scope == stackpackage.ClusterScope {
		return v1alpha1.ClusterStackInstallKind
	}
	return v1alpha1.StackInstallKind
}
