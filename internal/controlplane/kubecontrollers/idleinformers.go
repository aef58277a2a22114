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

// idleInformers are the informers of resources without objects. In a cluster with few objects they are most of the informers
// that the garbage collector and the quota controller use, and each would take memory and a watch.
type idleInformers struct {
	client metadata.Interface
	idle   func(resource schema.GroupResource, except string, wake func()) bool

	// making is held while the datastore is asked whether a resource has objects.
	making sync.Mutex

	mu      sync.Mutex
	all     map[schema.GroupVersionResource]*idleInformer
	ctx     context.Context
	running sync.WaitGroup
}

// forResource returns the informer of a resource if it has no objects, nil otherwise. Once returned, an informer
// remains that of its resource.
func (s *idleInformers) forResource(resource schema.GroupVersionResource) informers.GenericInformer {
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
	made := &idleInformer{all: s, real: metadatainformer.NewFilteredMetadataInformer(
		s.client, resource, "", resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil)}
	made.SharedIndexInformer = made.real.Informer()
	if made.SetTransform(dropUnowned) != nil || !s.idle(resource.GroupResource(), "", made.wake) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[schema.GroupVersionResource]*idleInformer{}
	}
	s.all[resource] = made
	return made
}

// start runs the informers whose resource has an object by now. The others run as soon as theirs has one.
func (s *idleInformers) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
	for _, one := range s.all {
		if one.started {
			s.run(one)
		}
	}
}

// run runs an informer. The caller holds the lock.
func (s *idleInformers) run(one *idleInformer) {
	if s.ctx != nil && s.ctx.Err() == nil {
		ctx := s.ctx
		s.running.Go(func() { one.RunWithContext(ctx) })
	}
}

// shutdown waits until all informers have ended. Their context must have ended before.
func (s *idleInformers) shutdown() {
	s.mu.Lock()
	s.ctx = nil // from now on, run does nothing
	s.mu.Unlock()
	s.running.Wait()
}

// idleInformer is an informer that starts to watch when the resource has its first object. Until then it behaves like an
// informer that has synced and is empty.
type idleInformer struct {
	cache.SharedIndexInformer
	real informers.GenericInformer
	all  *idleInformers

	started  bool
	handlers []idleHandler
}

type idleHandler struct {
	handler cache.ResourceEventHandler
	resync  time.Duration
}

// wake is called when the first object is created.
func (s *idleInformer) wake() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.started {
		return
	}
	s.started = true
	for _, h := range s.handlers {
		_, _ = s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h.handler, h.resync) // fails only if the informer has ended
	}
	s.handlers = nil
	s.all.run(s)
}

func (s *idleInformer) Informer() cache.SharedIndexInformer { return s }

// Lister implements informers.GenericInformer. The lister is empty until the informer watches.
func (s *idleInformer) Lister() cache.GenericLister { return s.real.Lister() }

// AddEventHandlerWithResyncPeriod keeps the handler until the informer watches.
func (s *idleInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (
	cache.ResourceEventHandlerRegistration, error) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.started {
		return s.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, resync)
	}
	s.handlers = append(s.handlers, idleHandler{handler, resync})
	return s, nil
}

// HasSynced reports true also while the informer is idle.
func (s *idleInformer) HasSynced() bool {
	s.all.mu.Lock()
	idle := !s.started
	s.all.mu.Unlock()
	return idle || s.SharedIndexInformer.HasSynced()
}

// GetController returns a controller that callers use for HasSynced only.
func (s *idleInformer) GetController() cache.Controller { return idleController{s} }

// idleController is a controller that callers cannot run, like that of every shared informer.
type idleController struct{ *idleInformer }

func (idleController) Run(<-chan struct{})            {}
func (idleController) RunWithContext(context.Context) {}
