package bastionsim

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// watchPeriod is how often the Watcher compares Bastions with their instances.
const watchPeriod = time.Second

// Watcher enqueues Bastions whose instance stops running, or runs again, outside of an operation, so that their next
// operation updates the status. It polls, because the cloud sends no events.
type Watcher struct {
	Provider
	Cache  client.Reader
	log    logr.Logger
	events chan event.GenericEvent
	// seen has the condition status and the instance state of each Bastion at the last comparison. A Bastion that is
	// out of sync is enqueued once and not at each comparison: failed operations are retried with exponential backoff.
	seen map[types.UID]string
}

// Watch adds the watcher to a controller of Bastions.
func (b Provider) Watch(controller *builder.Builder, mgr manager.Manager) error {
	w := &Watcher{Provider: b, Cache: mgr.GetCache(), log: mgr.GetLogger().WithName("bastion-watch"), events: make(chan event.GenericEvent)}
	controller.WatchesRawSource(source.Channel(w.events, &handler.EnqueueRequestForObject{}))
	if err := mgr.Add(manager.RunnableFunc(w.run)); err != nil {
		return fmt.Errorf("adding the watcher of bastions: %w", err)
	}
	return nil
}

// run compares Bastions with their instances until ctx ends.
func (w *Watcher) run(ctx context.Context) error {
	ticker := w.Clock.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		changed, err := w.Compare(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error(err, "Comparing bastions with their status failed, it is tried again")
		}
		for _, bastion := range changed {
			select {
			case <-ctx.Done():
				return nil
			case w.events <- event.GenericEvent{Object: bastion}:
			}
		}
	}
}

// Compare returns the Bastions that have got out of sync with their status since the last comparison.
func (w *Watcher) Compare(ctx context.Context) (changed []*extensionsv1alpha1.Bastion, err error) {
	list := &extensionsv1alpha1.BastionList{}
	if err := w.Cache.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the seed's Bastions: %w", err)
	}
	seen := make(map[types.UID]string, len(list.Items))
	for n := range list.Items {
		bastion := &list.Items[n]
		instance, _ := w.Cloud.Instance(InstanceID(bastion))
		ready := conditions.Find(bastion.Status.Conditions, operationsv1alpha1.BastionReady)
		state := fmt.Sprint(ready.Status, " ", instance.State, " ", instance.Message, " ", instance.PublicAddress)
		seen[bastion.UID] = state
		if before, ok := w.seen[bastion.UID]; (!ok || before != state) && w.OutOfSync(bastion) {
			changed = append(changed, bastion)
		}
	}
	w.seen = seen
	return changed, nil
}

// OutOfSync reports whether the instance of a Bastion runs although the status says that it does not, or the other way
// round, or has another address. It returns false while the instance boots, and for a Bastion that has no condition
// BastionReady yet or is being deleted.
func (b Provider) OutOfSync(obj extensionsv1alpha1.Object) bool {
	bastion, ok := obj.(*extensionsv1alpha1.Bastion)
	if !ok || bastion.DeletionTimestamp != nil {
		return false
	}
	ready := conditions.Get(bastion.Status.Conditions, operationsv1alpha1.BastionReady)
	instance, found := b.Cloud.Instance(InstanceID(bastion))
	if ready == nil || found && instance.State == cloud.Pending && instance.Message == "" {
		return false
	}
	runs := found && instance.Network == bastion.Namespace && instance.State == cloud.Running && instance.Message == ""
	return runs != (ready.Status == corev1beta1.ConditionTrue) || runs && !hasAddress(bastion, instance.PublicAddress)
}

// hasAddress reports whether a Bastion says that it has an address.
func hasAddress(bastion *extensionsv1alpha1.Bastion, address netip.AddrPort) bool {
	return bastion.Status.Ingress != nil && bastion.Status.Ingress.IP == address.Addr().String() &&
		bastion.Annotations[operation.AnnotationSSHPort] == strconv.Itoa(int(address.Port()))
}
