package controllermanager

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// eventCleanerName is the name of the controller, as in Gardener.
const eventCleanerName = "event"

// DefaultEventTTL is the time to live of events that do not concern Shoots, as in Gardener.
const DefaultEventTTL = time.Hour

// EventCleaner deletes events that do not concern Shoots once they are an hour old; events for Shoots are kept as long
// as the API server of the garden keeps events.
//
// Only the metadata of events is cached: the complete event is read when it may have expired.
type EventCleaner struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *EventCleaner) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, eventCleanerName)
	return component.NewControllerBuilder(mgr, eventCleanerName).
		For(&corev1.Event{}, builder.OnlyMetadata, builder.WithPredicates(component.Creations())).
		Complete(r)
}

// Reconcile deletes an expired event, and requeues any other one for its expiration.
func (r *EventCleaner) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	known := &metav1.PartialObjectMetadata{}
	known.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	if err := r.Client.Get(ctx, request.NamespacedName, known); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if left := r.left(known.CreationTimestamp.Time); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	event := &corev1.Event{}
	if err := r.Reader.Get(ctx, request.NamespacedName, event); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if isAboutShoot(event) {
		return reconcile.Result{}, nil
	}
	if left := r.left(lastSeen(event)); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	// The precondition protects an event that has occurred again in the meantime.
	err := r.Client.Delete(ctx, event, client.Preconditions{UID: &event.UID, ResourceVersion: &event.ResourceVersion})
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: DefaultEventTTL}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("deleting the event %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}

func (r *EventCleaner) left(since time.Time) time.Duration {
	return landscapeclock.At(r.Clock, since).Add(DefaultEventTTL).Sub(r.Clock.Now())
}

// lastSeen returns the time of the last occurrence of an event. The field depends on the API with which the event was
// created.
func lastSeen(event *corev1.Event) time.Time {
	times := []time.Time{event.CreationTimestamp.Time, event.LastTimestamp.Time, event.EventTime.Time}
	if event.Series != nil {
		times = append(times, event.Series.LastObservedTime.Time)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

func isAboutShoot(event *corev1.Event) bool {
	gv, err := schema.ParseGroupVersion(event.InvolvedObject.APIVersion)
	return err == nil && gv.Group == corev1beta1.GroupName && event.InvolvedObject.Kind == "Shoot"
}
