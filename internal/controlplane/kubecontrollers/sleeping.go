package kubecontrollers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// sleepers are the informers of resources that have no objects. In a cluster with little in it they are most of those that
// the garbage collector and the quota controller ask for, and what each would cost is not little.
type sleepers struct {
	client metadata.Interface
	idle   func(resource schema.GroupResource, wake func()) bool

	// making is held while it is found out whether there are objects.
	making sync.Mutex

	mu      sync.Mutex
	all     map[schema.GroupVersionResource]*sleeper
	ctx     context.Context
	running sync.WaitGroup
}

// forResource is the informer of a resource if it has no objects, nil otherwise. Who has slept stays the informer.
func (s *sleepers) forResource(resource schema.GroupVersionResource) informers.GenericInformer {
	if s.idle == nil {
		return nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	s.mu.Lock()
	there := s.all[resource]
	s.mu.Unlock()
	if there != nil {
		return there
	}
	made := &sleeper{all: s, real: metadatainformer.NewFilteredMetadataInformer(
		s.client, resource, "", resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil)}
	made.SharedIndexInformer = made.real.Informer()
	if made.SetTransform(dropUnowned) != nil || !s.idle(resource.GroupResource(), made.wake) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[schema.GroupVersionResource]*sleeper{}
	}
	s.all[resource] = made
	return made
}

// start has those that were woken watch, and those that will be.
func (s *sleepers) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
	for _, one := range s.all {
		if one.awake {
			s.run(one)
		}
	}
}

// run runs an informer. The lock is held.
func (s *sleepers) run(one *sleeper) {
	if s.ctx != nil && s.ctx.Err() == nil {
		ctx := s.ctx
		s.running.Go(func() { one.RunWithContext(ctx) })
	}
}

// shutdown waits until all have ended. Their context has ended before.
func (s *sleepers) shutdown() {
	s.mu.Lock()
	s.ctx = nil // nothing is started any more
	s.mu.Unlock()
	s.running.Wait()
}

// sleeper is an informer that begins to watch when there is something to see. Until then it is as one that has seen that
// there is nothing.
type sleeper struct {
	cache.SharedIndexInformer
	real informers.GenericInformer
	all  *sleepers

	awake    bool
	handlers []sleepingHandler
}

type sleepingHandler struct {
	handler cache.ResourceEventHandler
	resync  time.Duration
}

// wake is called once there is an object.
func (s *sleeper) wake() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.awake {
		return
	}
	s.awake = true
	for _, h := range s.handlers {
		_, _ = s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h.handler, h.resync) // it fails once it has ended
	}
	s.handlers = nil
	s.all.run(s)
}

// Informer makes it an informers.GenericInformer.
func (s *sleeper) Informer() cache.SharedIndexInformer { return s }

// Lister lists nothing until it watches.
func (s *sleeper) Lister() cache.GenericLister { return s.real.Lister() }

// AddEventHandlerWithResyncPeriod keeps the handler until there is something to handle.
func (s *sleeper) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (
	cache.ResourceEventHandlerRegistration, error) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.awake {
		return s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, resync)
	}
	s.handlers = append(s.handlers, sleepingHandler{handler, resync})
	return s, nil
}

// HasSynced says that it has seen everything there is.
func (s *sleeper) HasSynced() bool {
	s.all.mu.Lock()
	asleep := !s.awake
	s.all.mu.Unlock()
	return asleep || s.SharedIndexInformer.HasSynced()
}

// GetController is what others ask whether it has synced.
func (s *sleeper) GetController() cache.Controller { return sleepingController{s} }

// sleepingController is a controller that others cannot run, as that of every shared informer.
type sleepingController struct{ *sleeper }

// Run does nothing.
func (sleepingController) Run(<-chan struct{}) {}

// RunWithContext does nothing.
func (sleepingController) RunWithContext(context.Context) {}
