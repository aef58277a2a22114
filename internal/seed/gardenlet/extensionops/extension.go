package extensionops

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// Extensions writes the extension resources for objects of the garden, and the credentials for them.
type Extensions struct {
	*controllerutils.Base
	// Namespace is the namespace of the credentials in the seed.
	Namespace string
}

// Evaluate returns whether an extension has to be asked to reconcile its resource, and the failure of the resource if there
// is one. The resource has no resource version if it does not exist; same says whether its spec is the wanted one, and
// since when its credentials were written.
func Evaluate(extension extensionsv1alpha1.Object, same bool, since time.Time) (ask bool, failure *corev1beta1.LastError) {
	status := extension.GetExtensionStatus()
	last := status.GetLastOperation()
	switch {
	case extension.GetResourceVersion() == "" || !same:
		return true, nil
	case last == nil:
		return operation.RequestedOperation(extension) == "", &corev1beta1.LastError{Description: "extension did not record a last operation yet"}
	case last.LastUpdateTime.Time.Before(since.Truncate(time.Second)): // the status has no fractions of seconds
		return true, nil
	}
	return last.State == corev1beta1.LastOperationStateFailed, Failure(extension)
}

// Failure returns the failure of an extension resource, nil if it has none.
func Failure(extension extensionsv1alpha1.Object) *corev1beta1.LastError {
	status := extension.GetExtensionStatus()
	if failure := status.GetLastError(); failure != nil {
		return &corev1beta1.LastError{Description: "error during reconciliation: " + failure.Description, Codes: failure.Codes}
	}
	if last := status.GetLastOperation(); operation.Failing(last) {
		return &corev1beta1.LastError{Description: fmt.Sprintf("extension state is not Succeeded but %s", last.State)}
	}
	return nil
}

// DeletionFailure returns the failure of the deletion of an extension resource, nil if it has not failed.
func DeletionFailure(extension extensionsv1alpha1.Object) *corev1beta1.LastError {
	if last := extension.GetExtensionStatus().GetLastOperation(); last == nil || last.Type != corev1beta1.LastOperationTypeDelete {
		return nil
	}
	return Failure(extension)
}

// RequestOperation creates or patches an extension resource for an object of the garden, and requests an operation of the
// extension.
func (e Extensions) RequestOperation(ctx context.Context, garden metav1.Object, extension extensionsv1alpha1.Object, what string,
	specify func()) error {
	mutate := func(extension extensionsv1alpha1.Object) {
		e.annotate(extension, constants.GardenerOperation, what)
		injection.Pass(garden, extension)
		if specify != nil {
			specify()
		}
	}
	if extension.GetResourceVersion() != "" {
		return operation.Patch(ctx, e.SeedClient, extension, mutate)
	}
	mutate(extension)
	if err := e.SeedClient.Create(ctx, extension); err != nil {
		return fmt.Errorf("creating the extension's %T %s: %w", extension, extension.GetName(), err)
	}
	return nil
}

// SyncInjectionAnnotations copies changed injection annotations of an object of the garden to its extension resource,
// without requesting an operation.
func (e Extensions) SyncInjectionAnnotations(ctx context.Context, garden metav1.Object, extension extensionsv1alpha1.Object) error {
	return operation.Patch(ctx, e.SeedClient, extension, func(extension extensionsv1alpha1.Object) { injection.Pass(garden, extension) })
}

// Delete deletes the extension resource with the name of the given one, and reports whether it is gone. If not, it is read
// into the given one.
func (e Extensions) Delete(ctx context.Context, garden metav1.Object, extension extensionsv1alpha1.Object) (gone bool, err error) {
	err = e.SeedClient.Get(ctx, client.ObjectKeyFromObject(extension), extension)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the extension's %T %s: %w", extension, extension.GetName(), err)
	}
	if extension.GetDeletionTimestamp() != nil {
		return false, client.IgnoreNotFound(e.SyncInjectionAnnotations(ctx, garden, extension))
	}
	// The result of the patch tells whether the resource exists, because the cache may not have it yet. The server refuses
	// a deletion without confirmation.
	before := extension.DeepCopyObject().(client.Object)
	e.annotate(extension, constants.ConfirmationDeletion, "true")
	injection.Pass(garden, extension)
	err = e.SeedClient.Patch(ctx, extension, client.MergeFrom(before))
	if err == nil {
		err = e.SeedClient.Delete(ctx, extension)
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting the extension's %T %s: %w", extension, extension.GetName(), err)
	}
	return err != nil, nil
}

func (e Extensions) annotate(obj metav1.Object, name, value string) {
	obj.SetAnnotations(labels.Merge(obj.GetAnnotations(), map[string]string{
		name: value, constants.GardenerTimestamp: e.Clock.Now().UTC().Format(time.RFC3339Nano),
	}))
}

// RestoreState writes the state that another seed has saved for an extension resource into it, if it has none yet.
func RestoreState(ctx context.Context, seed client.Client, kind string, extension extensionsv1alpha1.Object,
	state *corev1beta1.ShootState) error {
	i := slices.IndexFunc(state.Spec.Extensions, func(saved corev1beta1.ExtensionResourceState) bool {
		return saved.Kind == kind && ptr.Deref(saved.Name, "") == extension.GetName()
	})
	if i < 0 || extension.GetExtensionStatus().GetState() != nil {
		return nil
	}
	saved := state.Spec.Extensions[i]
	return operation.PatchStatus(ctx, seed, extension, func(extension extensionsv1alpha1.Object) {
		extension.GetExtensionStatus().SetState(saved.State)
		extension.GetExtensionStatus().SetResources(saved.Resources)
	})
}

// StateOf returns the state of an extension resource for a ShootState, nil if it has none or is being deleted.
func StateOf(kind string, extension extensionsv1alpha1.Object) *corev1beta1.ExtensionResourceState {
	status := extension.GetExtensionStatus()
	if extension.GetDeletionTimestamp() != nil || status.GetState() == nil && len(status.GetResources()) == 0 {
		return nil
	}
	return &corev1beta1.ExtensionResourceState{
		Kind: kind, Name: ptr.To(extension.GetName()), Purpose: extension.GetExtensionSpec().GetExtensionPurpose(),
		State: status.GetState(), Resources: status.GetResources(),
	}
}

// WriteShootState writes a ShootState with the time of the write. It creates the ShootState if it has no resource version;
// otherwise it patches what has changed since before, and fails with a conflict if another client has changed it meanwhile.
func WriteShootState(ctx context.Context, garden client.Client, state, before *corev1beta1.ShootState, now time.Time) (err error) {
	metav1.SetMetaDataAnnotation(&state.ObjectMeta, constants.GardenerTimestamp, now.UTC().Format(time.RFC3339))
	if state.ResourceVersion == "" {
		err = garden.Create(ctx, state)
	} else {
		err = garden.Patch(ctx, state, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return fmt.Errorf("writing ShootState %s: %w", client.ObjectKeyFromObject(state), err)
	}
	return nil
}

// Same reports whether two specs are equal. It compares raw provider configurations as JSON values, because a server may
// return JSON with another layout.
func Same(a, b any) bool {
	plainA, errA := plain(a)
	plainB, errB := plain(b)
	return errA == nil && errB == nil && reflect.DeepEqual(plainA, plainB)
}

func plain(v any) (out any, err error) {
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err
}
