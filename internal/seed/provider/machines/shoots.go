package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubeconfigKey is the key of the Secret machine-controller-manager that has the kubeconfig for the shoot.
const KubeconfigKey = "kubeconfig"

const (
	// shootTimeout ends a request to a shoot's API server.
	shootTimeout = 5 * time.Second
	// A watch that ends or cannot begin is tried again after a while, which doubles.
	watchAgain, watchAgainMax = 200 * time.Millisecond, 10 * time.Second
)

// errNoAccess is why there is no client for a shoot: it has no Secret for that.
var errNoAccess = errors.New("there is no kubeconfig for the shoot")

// Shoots are the clients for the API servers of shoots, one a namespace, and the watches of their Nodes.
type Shoots struct {
	// Seed reads the Secrets.
	Seed  client.Reader
	Clock clock.WithTicker
	// Connect makes a client from a kubeconfig, and the function that ends all that the client has open.
	Connect func(kubeconfig []byte) (client.WithWatch, func(), error)
	// Changed is called for a Node that was created or deleted, or became ready or not ready, by namespace in the seed and
	// Node's name.
	Changed func(client.ObjectKey)

	mu     sync.Mutex
	shoots map[string]*shoot
	closed bool
	wg     sync.WaitGroup
}

// shoot is what is known of one of them.
type shoot struct {
	kubeconfig []byte
	client     client.WithWatch
	disconnect func()
	// awaited are the machines whose Nodes are waited for; stop ends the watch, and is nil if there is none.
	awaited map[string]struct{}
	stop    context.CancelFunc
	// swept says that there is no Node of an instance that has gone.
	swept bool
}

// Client is a client for the shoot of a namespace: errNoAccess if there is no Secret for it.
func (s *Shoots) Client(ctx context.Context, namespace string) (client.Client, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: constants.DeploymentNameMachineControllerManager}
	if err := s.Seed.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		s.Drop(namespace)
		return nil, fmt.Errorf("%w: Secret %s is not there", errNoAccess, key)
	} else if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig for the shoot in Secret %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("no requests to shoots any more: this controller ends")
	}
	kubeconfig := secret.Data[KubeconfigKey]
	known := s.shoots[namespace]
	if known != nil && bytes.Equal(known.kubeconfig, kubeconfig) {
		return known.client, nil
	}
	made, disconnect, err := s.Connect(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("making a client for the shoot from Secret %s: %w", key, err)
	}
	fresh := &shoot{kubeconfig: kubeconfig, client: made, disconnect: disconnect, awaited: map[string]struct{}{}}
	if known != nil {
		known.end()
		fresh.awaited = known.awaited
	}
	if s.shoots == nil {
		s.shoots = map[string]*shoot{}
	}
	s.shoots[namespace] = fresh
	s.watch(namespace, fresh)
	return made, nil
}

// end ends the watch and the connections. The lock is held; who watches does not wait for it.
func (s *shoot) end() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	s.disconnect()
}

// Await has Changed told of the Node of a machine, until Forget.
func (s *Shoots) Await(namespace, machine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shoots[namespace]; known != nil && !s.closed {
		known.awaited[machine] = struct{}{}
		s.watch(namespace, known)
	}
}

// StopAwaiting says that the Node of a machine is not waited for any more. The last one ends the watch.
func (s *Shoots) StopAwaiting(namespace, machine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.shoots[namespace]
	if known == nil {
		return
	}
	if delete(known.awaited, machine); len(known.awaited) == 0 && known.stop != nil {
		known.stop()
		known.stop = nil
	}
}

// Swept says whether the shoot of a namespace is known to have no Node whose instance has gone.
func (s *Shoots) Swept(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.shoots[namespace]
	return known != nil && known.swept
}

// SetSwept remembers what Swept says, until the shoot is forgotten.
func (s *Shoots) SetSwept(namespace string, swept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shoots[namespace]; known != nil {
		known.swept = swept
	}
}

// Drop ends all that there is for the shoot of a namespace.
func (s *Shoots) Drop(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shoots[namespace]; known != nil {
		known.end()
		delete(s.shoots, namespace)
	}
}

// Start ends everything when the context ends, and waits for it.
func (s *Shoots) Start(ctx context.Context) error {
	<-ctx.Done()
	s.Close()
	return nil
}

// Close ends everything and waits for it.
func (s *Shoots) Close() {
	s.mu.Lock()
	s.closed = true
	for namespace, known := range s.shoots {
		known.end()
		delete(s.shoots, namespace)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// watch starts the watch of Nodes if a machine waits for its Node and there is no watch yet. The caller holds the lock.
func (s *Shoots) watch(namespace string, of *shoot) {
	if len(of.awaited) == 0 || of.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	of.stop = cancel
	s.wg.Go(func() {
		defer cancel()
		s.keepWatching(ctx, namespace, of.client)
	})
}

// keepWatching watches until the context ends.
func (s *Shoots) keepWatching(ctx context.Context, namespace string, shoot client.WithWatch) {
	for wait := watchAgain; ctx.Err() == nil; wait = min(2*wait, watchAgainMax) {
		nodes, err := shoot.Watch(ctx, &corev1.NodeList{})
		if err == nil {
			if s.notifyChanges(ctx, namespace, nodes) {
				wait = watchAgain
			}
			nodes.Stop()
		}
		timer := s.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// notifyChanges tells what changes of the Nodes, until the watch ends. It says whether there was anything.
func (s *Shoots) notifyChanges(ctx context.Context, namespace string, nodes watch.Interface) (any bool) {
	ready := map[string]bool{}
	for {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return any
		case event, open = <-nodes.ResultChan():
		}
		node, ok := event.Object.(*corev1.Node)
		if !open {
			return any
		} else if !ok {
			continue
		}
		any = true
		was, known := ready[node.Name]
		if event.Type == watch.Deleted {
			delete(ready, node.Name)
		} else if is := isReady(node); known && was == is {
			continue
		} else {
			ready[node.Name] = is
		}
		s.Changed(client.ObjectKey{Namespace: namespace, Name: node.Name})
	}
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
