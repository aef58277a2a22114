package extensionops

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
)

// Extensions writes the extension resources for objects of the garden.
type Extensions struct {
	Seed  client.Client
	Clock clock.PassiveClock
}

// Evaluate says whether an extension has to be asked to work on its resource, and what is wrong with it. The resource is as
// it was read (without a resource version if there is none), same is whether its specification is the wanted one, and
// since is when its credentials were written.
func Evaluate(extension extensionsv1alpha1.Object, same bool, since time.Time) (ask bool, failure *corev1beta1.LastError) {
	status := extension.GetExtensionStatus()
	last := status.GetLastOperation()
	switch {
	case extension.GetResourceVersion() == "" || !same:
		return true, nil
	case last == nil:
		return operation.Of(extension) == "", &corev1beta1.LastError{Description: "extension did not record a last operation yet"}
	case last.LastUpdateTime.Time.Before(since.Truncate(time.Second)): // the status has no fractions of seconds
		return true, nil
	}
	return last.State == corev1beta1.LastOperationStateFailed, Failure(extension)
}

// Failure is what went wrong with an extension resource, nil if nothing did.
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

// Ask writes an extension resource for an object of the garden so that the extension begins an operation.
func (e Extensions) Ask(ctx context.Context, garden metav1.Object, extension extensionsv1alpha1.Object, what string, specify func()) error {
	mutate := func(extension extensionsv1alpha1.Object) {
		e.annotate(extension, constants.GardenerOperation, what)
		injection.Pass(garden, extension)
		if specify != nil {
			specify()
		}
	}
	if extension.GetResourceVersion() != "" {
		return operation.Patch(ctx, e.Seed, extension, mutate)
	}
	mutate(extension)
	if err := e.Seed.Create(ctx, extension); err != nil {
		return fmt.Errorf("creating the extension's %T %s: %w", extension, extension.GetName(), err)
	}
	return nil
}

// PassOn brings changed annotations of an object of the garden to its extension resource, without asking for anything.
func (e Extensions) PassOn(ctx context.Context, garden metav1.Object, extension extensionsv1alpha1.Object) error {
	return operation.Patch(ctx, e.Seed, extension, func(extension extensionsv1alpha1.Object) { injection.Pass(garden, extension) })
}

// Delete deletes an extension resource, which has its name, and says whether it is gone. If not, it is read.
func (e Extensions) Delete(ctx context.Context, garden metav1.Object, extension extensionsv1alpha1.Object) (gone bool, err error) {
	err = e.Seed.Get(ctx, client.ObjectKeyFromObject(extension), extension)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the extension's %T %s: %w", extension, extension.GetName(), err)
	}
	if extension.GetDeletionTimestamp() != nil {
		return false, client.IgnoreNotFound(e.PassOn(ctx, garden, extension))
	}
	// Whether it exists is what the seed answers to a write: the cache may not have it yet. A server refuses a deletion
	// that is not confirmed.
	before := extension.DeepCopyObject().(client.Object)
	e.annotate(extension, constants.ConfirmationDeletion, "true")
	injection.Pass(garden, extension)
	err = e.Seed.Patch(ctx, extension, client.MergeFrom(before))
	if err == nil {
		err = e.Seed.Delete(ctx, extension)
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting the extension's %T %s: %w", extension, extension.GetName(), err)
	}
	return err != nil, nil
}

func (e Extensions) annotate(obj metav1.Object, name, value string) {
	annotations := map[string]string{}
	for k, v := range obj.GetAnnotations() {
		annotations[k] = v
	}
	annotations[name] = value
	annotations[constants.GardenerTimestamp] = e.Clock.Now().UTC().Format(time.RFC3339Nano)
	obj.SetAnnotations(annotations)
}

// Same says whether two specifications are the same. What providers put into them is compared as it is meant: a server may
// give back JSON that is written differently.
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
