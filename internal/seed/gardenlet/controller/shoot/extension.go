package shoot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// extension is an extension resource in the state that the Shoot wants.
type extension struct {
	kind string
	// obj initially has only its namespace and name. Reading the resource fills it.
	obj extensionsv1alpha1.Object
	// specify writes the spec into obj, and labels if there are any.
	specify func()
}

// deploy creates or patches an extension resource, and requests a reconciliation of it once per operation.
func (b *botanist) deploy(ctx context.Context, e *extension) error {
	key := client.ObjectKeyFromObject(e.obj)
	err := b.SeedReader.Get(ctx, key, e.obj)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s %s: %w", e.kind, key, err)
	case err == nil && e.obj.GetDeletionTimestamp() != nil:
		return flow.Pending("%s %s is being deleted", e.kind, key)
	}
	before := e.obj.DeepCopyObject().(extensionsv1alpha1.Object)
	e.specify()
	injection.PassFromShoot(b.shoot, e.obj, e.kind)
	exists := err == nil
	if b.restores() {
		return b.restore(ctx, e, before, exists)
	}
	if !exists || !extensionops.Same(before.GetExtensionSpec(), e.obj.GetExtensionSpec()) || b.requestedBefore(before) {
		b.requestOperation(e.obj, constants.GardenerOperationReconcile)
	}
	return b.write(ctx, e, before, exists)
}

// restore makes an extension take over the state from another seed: it creates the resource with the operation
// wait-for-state, writes the state, and only then requests the restoration.
func (b *botanist) restore(ctx context.Context, e *extension, before extensionsv1alpha1.Object, exists bool) error {
	requested := operation.RequestedOperation(before)
	last := before.GetExtensionStatus().GetLastOperation()
	begun := last != nil && last.Type == corev1beta1.LastOperationTypeRestore || requested == constants.GardenerOperationRestore
	if !exists || !begun && requested != constants.GardenerOperationWaitForState {
		b.requestOperation(e.obj, constants.GardenerOperationWaitForState)
	}
	if begun && b.requestedBefore(before) {
		b.requestOperation(e.obj, constants.GardenerOperationRestore)
	}
	if err := b.write(ctx, e, before, exists); err != nil || begun {
		return err
	}
	if err := extensionops.RestoreState(ctx, b.SeedClient, e.kind, e.obj, b.state); err != nil {
		return err
	}
	before = e.obj.DeepCopyObject().(extensionsv1alpha1.Object)
	b.requestOperation(e.obj, constants.GardenerOperationRestore)
	return b.write(ctx, e, before, true)
}

func (b *botanist) write(ctx context.Context, e *extension, before extensionsv1alpha1.Object, exists bool) error {
	if !exists {
		if err := b.SeedClient.Create(ctx, e.obj); err != nil {
			return fmt.Errorf("creating %s %s: %w", e.kind, client.ObjectKeyFromObject(e.obj), err)
		}
		return nil
	}
	if same(before, e.obj) {
		return nil
	}
	if err := b.SeedClient.Patch(ctx, e.obj, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing %s %s: %w", e.kind, client.ObjectKeyFromObject(e.obj), err)
	}
	return nil
}

// same reports whether there is nothing to write.
func same(before, after extensionsv1alpha1.Object) bool {
	return maps.Equal(before.GetAnnotations(), after.GetAnnotations()) && maps.Equal(before.GetLabels(), after.GetLabels()) &&
		extensionops.Same(before.GetExtensionSpec(), after.GetExtensionSpec())
}

// requestOperation requests an operation from an extension.
func (b *botanist) requestOperation(obj metav1.Object, what string) {
	annotate(obj, constants.GardenerOperation, what)
	b.stamp(obj)
}

// stamp sets the time of the request on an object, and remembers that this botanist made the request.
func (b *botanist) stamp(obj metav1.Object) {
	annotate(obj, constants.GardenerTimestamp, b.Clock.Now().UTC().Format(time.RFC3339Nano))
	b.requested.Store(requestKey(obj), true)
}

func requestKey(obj metav1.Object) string { return fmt.Sprintf("%T %s", obj, obj.GetName()) }

func annotate(obj metav1.Object, name, value string) {
	obj.SetAnnotations(labels.Merge(obj.GetAnnotations(), map[string]string{name: value}))
}

// annotateOrNot sets an annotation, or removes it if the value is empty.
func annotateOrNot(obj metav1.Object, name, value string) {
	if value != "" {
		annotate(obj, name, value)
		return
	}
	annotations := maps.Clone(obj.GetAnnotations())
	delete(annotations, name)
	obj.SetAnnotations(annotations)
}

// requestedBefore reports whether the last request to an extension was made before this operation began. The begin in
// the status has no fractions of seconds: a request in the same second counts for this operation only if this botanist
// made it. After a restart that is not known, and the request is repeated.
func (b *botanist) requestedBefore(obj metav1.Object) bool {
	began := b.since.Truncate(time.Second)
	if _, here := b.requested.Load(requestKey(obj)); !here {
		began = began.Add(time.Second)
	}
	return operation.AskedAt(obj).Before(began)
}

// ready returns nil when an extension has completed the last request, and Pending or its failure otherwise.
func (b *botanist) ready(ctx context.Context, e *extension) error {
	key := client.ObjectKeyFromObject(e.obj)
	if err := b.SeedReader.Get(ctx, key, e.obj); err != nil {
		return fmt.Errorf("reading %s %s: %w", e.kind, key, err)
	}
	return b.explain(ctx, e.kind, e.obj, answered(e.kind, e.obj, ""))
}

func isFailure(err error) bool { return err != nil && !flow.IsPending(err) }

// answered returns nil when an extension has completed the last request, with an operation of type t if that is not
// empty.
func answered(kind string, obj extensionsv1alpha1.Object, t corev1beta1.LastOperationType) error {
	status, key := obj.GetExtensionStatus(), client.ObjectKeyFromObject(obj)
	last := status.GetLastOperation()
	switch operation.RequestedOperation(obj) {
	case constants.GardenerOperationReconcile, constants.GardenerOperationWaitForState:
		return flow.Pending("%s %s waits for its extension", kind, key)
	case constants.GardenerOperationRestore:
		t = corev1beta1.LastOperationTypeRestore
	}
	current := isAnswered(obj) && (t == "" || last.Type == t)
	switch {
	case !current:
		return flow.Pending("%s %s waits for its extension", kind, key)
	case operation.Failing(last):
		return failureOf(kind, obj)
	case last.State != corev1beta1.LastOperationStateSucceeded || t == "" && status.GetObservedGeneration() != obj.GetGeneration():
		return flow.Pending("%s %s: %s", kind, key, last.Description)
	}
	return nil
}

// isAnswered reports whether an extension has written its status since the last request. A status has no fractions of seconds.
func isAnswered(obj extensionsv1alpha1.Object) bool {
	last := obj.GetExtensionStatus().GetLastOperation()
	return last != nil && !last.LastUpdateTime.Time.Before(operation.AskedAt(obj).Truncate(time.Second))
}

// failureOf returns the failure of an extension resource, with its codes.
func failureOf(kind string, obj extensionsv1alpha1.Object) error {
	status := obj.GetExtensionStatus()
	description := status.GetLastOperation().Description
	var codes []corev1beta1.ErrorCode
	if failure := status.GetLastError(); failure != nil {
		description, codes = failure.Description, failure.Codes
	}
	return flow.WithCodes(fmt.Errorf("%s %s: %s", kind, client.ObjectKeyFromObject(obj), description), codes...)
}

// destroy deletes the extension resource with the name of obj, and returns Pending until it is gone.
func (b *botanist) destroy(ctx context.Context, kind string, obj extensionsv1alpha1.Object) error {
	key := client.ObjectKeyFromObject(obj)
	if err := b.SeedReader.Get(ctx, key, obj); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading %s %s: %w", kind, key, err))
	}
	before := obj.DeepCopyObject().(extensionsv1alpha1.Object)
	injection.PassFromShoot(b.shoot, obj, kind)
	deleting, force := obj.GetDeletionTimestamp() != nil, b.needsForceDeletion() && !isForced(obj)
	if force {
		annotate(obj, constants.AnnotationConfirmationForceDeletion, "true")
	}
	if !deleting || force || b.requestedBefore(obj) {
		annotate(obj, constants.ConfirmationDeletion, "true")
		b.stamp(obj)
	}
	if !maps.Equal(before.GetAnnotations(), obj.GetAnnotations()) {
		if err := b.SeedClient.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("preparing the deletion of %s %s: %w", kind, key, err))
		}
	}
	if deleting && b.needsForceDeletion() {
		return b.removeFinalizers(ctx, kind, obj)
	}
	if deleting {
		if err := answered(kind, obj, corev1beta1.LastOperationTypeDelete); isFailure(err) {
			return err
		}
		return b.explain(ctx, kind, obj, flow.Pending("%s %s has not gone yet", kind, key))
	}
	if err := b.SeedClient.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, key, err)
	}
	return b.waitDeleted(ctx, kind, obj)
}

// waitDeleted returns Pending while an object is still in the seed.
func (b *botanist) waitDeleted(ctx context.Context, kind string, obj client.Object) error {
	key := client.ObjectKeyFromObject(obj)
	switch err := b.SeedReader.Get(ctx, key, obj); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking whether there still is %s %s: %w", kind, key, err)
	}
	return flow.Pending("%s %s has not gone yet", kind, key)
}

// migrate requests the migration of an extension resource, after which its state is in the status and the extension has
// released it. It returns Pending until then.
func (b *botanist) migrate(ctx context.Context, kind string, obj extensionsv1alpha1.Object) error {
	const t = corev1beta1.LastOperationTypeMigrate
	if obj.GetDeletionTimestamp() != nil ||
		operation.Is(obj.GetExtensionStatus().GetLastOperation(), t, corev1beta1.LastOperationStateSucceeded) {
		return nil
	}
	if operation.RequestedOperation(obj) != constants.GardenerOperationMigrate || b.requestedBefore(obj) {
		before := obj.DeepCopyObject().(extensionsv1alpha1.Object)
		b.requestOperation(obj, constants.GardenerOperationMigrate)
		if err := b.SeedClient.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("migrating %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
		}
	}
	return b.explain(ctx, kind, obj, answered(kind, obj, t))
}

// each calls a function for the extension resources of some kinds, all if none is given. It continues after errors, and
// returns Pending only if there is no other error.
func (b *botanist) each(ctx context.Context, do func(ctx context.Context, kind string, obj extensionsv1alpha1.Object) error,
	kinds ...string) error {
	if b.namespace() == "" { // the list would contain those of all Shoots
		return errors.New("the Shoot has no technical ID")
	}
	var failures, waits []error
	for _, k := range controllerutils.ShootExtensionKinds {
		if len(kinds) > 0 && !slices.Contains(kinds, k.Kind) {
			continue
		}
		err := k.Each(ctx, b.SeedReader, func(obj extensionsv1alpha1.Object) error {
			switch err := do(ctx, k.Kind, obj); {
			case err == nil:
			case isFailure(err):
				failures = append(failures, err)
			default:
				waits = append(waits, err)
			}
			return nil
		}, client.InNamespace(b.namespace()))
		if err != nil {
			return err
		}
	}
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	if len(waits) > 0 {
		return waits[0]
	}
	return nil
}
