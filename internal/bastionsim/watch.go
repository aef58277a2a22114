package extensions

import (
	"context"
	"fmt"
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
)

// bastionLook is how often it is looked whether bastions run.
const bastionLook = time.Second

// bastionWatch notices bastions that stop running, or do so again, outside of an operation: a cloud tells nobody. Their next
// operation says it in the status.
type bastionWatch struct {
	bastions
	cache  client.Reader
	log    logr.Logger
	events chan event.GenericEvent
	// seen is what each instance did, and its status said, when it was last looked at, so that one that has gone astray is
	// told of once, and not each time: operations that fail are tried again after a time that grows.
	seen map[types.UID]string
}

// watch adds the looking to a controller of Bastions.
func (b bastions) watch(controller *builder.Builder, mgr manager.Manager) error {
	w := &bastionWatch{bastions: b, cache: mgr.GetCache(), log: mgr.GetLogger().WithName("bastion-watch"), events: make(chan event.GenericEvent)}
	controller.WatchesRawSource(source.Channel(w.events, &handler.EnqueueRequestForObject{}))
	if err := mgr.Add(manager.RunnableFunc(w.run)); err != nil {
		return fmt.Errorf("adding what looks after running bastions: %w", err)
	}
	return nil
}

// run looks again and again, until ctx ends.
func (w *bastionWatch) run(ctx context.Context) error {
	ticker := w.clock.NewTicker(bastionLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		changed, err := w.look(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error(err, "Looking whether bastions run failed, it is tried again")
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

// look returns the Bastions that have begun, since it was last looked, to be other than their status says.
func (w *bastionWatch) look(ctx context.Context) (changed []*extensionsv1alpha1.Bastion, err error) {
	list := &extensionsv1alpha1.BastionList{}
	if err := w.cache.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the seed's Bastions: %w", err)
	}
	seen := make(map[types.UID]string, len(list.Items))
	for n := range list.Items {
		bastion := &list.Items[n]
		instance, _ := w.cloud.Instance(bastionID(bastion))
		told := conditions.Find(bastion.Status.Conditions, operationsv1alpha1.BastionReady)
		does := fmt.Sprint(told.Status, " ", instance.State, " ", instance.Message)
		seen[bastion.UID] = does
		if was, ok := w.seen[bastion.UID]; (!ok || was != does) && w.astray(bastion) {
			changed = append(changed, bastion)
		}
	}
	w.seen = seen
	return changed, nil
}

// astray says that the instance of a Bastion runs and its status says that it does not, or the other way round. One that
// boots is given the time for that, and one that was never told of, or is being deleted, is its operation's to look after.
func (b bastions) astray(obj extensionsv1alpha1.Object) bool {
	bastion, ok := obj.(*extensionsv1alpha1.Bastion)
	if !ok || bastion.DeletionTimestamp != nil {
		return false
	}
	told := conditions.Get(bastion.Status.Conditions, operationsv1alpha1.BastionReady)
	instance, found := b.cloud.Instance(bastionID(bastion))
	if told == nil || found && instance.State == cloud.Pending && instance.Message == "" {
		return false
	}
	runs := found && instance.Network == bastion.Namespace && instance.State == cloud.Running && instance.Message == ""
	return runs != (told.Status == corev1beta1.ConditionTrue)
}
