package kit

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// IsOrWas passes objects that fit, or did before the update.
func IsOrWas(fits func(client.Object) bool) predicate.Predicate {
	passes := predicate.NewPredicateFuncs(fits)
	passes.UpdateFunc = func(e event.UpdateEvent) bool { return fits(e.ObjectOld) || fits(e.ObjectNew) }
	return passes
}

// RequestFor returns a request for the object with this namespace and name.
func RequestFor(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// RequestsIf returns requests for those objects of a list that fit. It logs an error, because a mapping function cannot
// return it.
func RequestsIf[T client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, fits func(T) bool,
	options ...client.ListOption) (requests []reconcile.Request) {
	if err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		logf.FromContext(ctx).Error(err, "Listing the objects to reconcile", "list", fmt.Sprintf("%T", list))
		return nil
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj := item.(T); fits(obj) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
		return nil
	})
	return requests
}

// AllSeeds returns requests for all Seeds.
func (b Base) AllSeeds(ctx context.Context, _ client.Object) []reconcile.Request {
	return RequestsIf(ctx, b.Client, &corev1beta1.SeedList{}, func(*corev1beta1.Seed) bool { return true })
}

// SeedsOf maps an object to requests for the Seeds that names returns.
func SeedsOf[T client.Object](names func(T) []*string) handler.MapFunc {
	return func(_ context.Context, obj client.Object) (requests []reconcile.Request) {
		for _, name := range names(obj.(T)) {
			if name != nil {
				requests = append(requests, RequestFor("", *name)...)
			}
		}
		return requests
	}
}

// OfInstallation and OfBucket return the name of the Seed of a ControllerInstallation and of a BackupBucket, for SeedsOf.
func OfInstallation(installation *corev1beta1.ControllerInstallation) []*string {
	if installation.Spec.SeedRef == nil {
		return nil
	}
	return []*string{&installation.Spec.SeedRef.Name}
}

func OfBucket(bucket *corev1beta1.BackupBucket) []*string { return []*string{bucket.Spec.SeedName} }
