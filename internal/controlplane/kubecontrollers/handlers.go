package kubecontrollers

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// handlers are the event handlers of one controller, deferred until the controller has been created. A constructor adds
// them before it has set all fields that they use, because the informers of a kube-controller-manager do not run yet
// when it creates its controllers. Here they may run already.
type handlers struct{ waiting []func() error }

func (h *handlers) add() error {
	for _, add := range h.waiting {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// typed is the common interface of client-go's informers: L is their lister.
type typed[L any] interface {
	Informer() cache.SharedIndexInformer
	Lister() L
}

// hold returns an informer that defers its handlers.
func hold[L any](h *handlers, informer typed[L]) *held[L] {
	return &held[L]{informer.Informer(), informer.Lister(), h}
}

type held[L any] struct {
	cache.SharedIndexInformer
	lister   L
	handlers *handlers
}

func (i *held[L]) Informer() cache.SharedIndexInformer { return i }

func (i *held[L]) Lister() L { return i.lister }

func (i *held[L]) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

func (i *held[L]) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (
	cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resync})
}

func (i *held[L]) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (
	cache.ResourceEventHandlerRegistration, error) {
	registered := &registration{}
	i.handlers.waiting = append(i.handlers.waiting, func() (err error) {
		registered.ResourceEventHandlerRegistration, err = i.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
		return err
	})
	return registered, nil
}

// registration is the registration of the informer once the handler has been added. A controller uses it only while it
// runs.
type registration struct {
	cache.ResourceEventHandlerRegistration
}
