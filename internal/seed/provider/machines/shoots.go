package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	componentkubeconfig "github.com/gardenlite/gardenlite/internal/component/kubeconfig"
)

// KubeconfigKey is the key of the Secret machine-controller-manager that has the kubeconfig for the shoot.
const KubeconfigKey = "kubeconfig"

const (
	// shootTimeout ends a request to a shoot's API server.
	shootTimeout = 5 * time.Second
	// Delays of the exponential backoff for a watch that has ended or could not be started.
	watchRetryFirst, watchRetryMax = 200 * time.Millisecond, 10 * time.Second
)

// errNoAccess says that there is no Secret with a kubeconfig for the shoot.
var errNoAccess = errors.New("there is no kubeconfig for the shoot")

// Shoots holds the clients for the API servers of shoots, one per namespace, and the watches of their Nodes.
type Shoots struct {
	// Seed reads the Secrets.
	Seed  client.Reader
	Clock clock.WithTicker
	// APIServer returns the URL of the API server of the shoot of a namespace, "" if it does not run.
	APIServer func(namespace string) string
	// Connect returns a client for a kubeconfig, and a function that closes its connections.
	Connect func(kubeconfig []byte) (client.WithWatch, func(), error)
	// Changed is called for a Node that was created or deleted, or whose readiness has changed, with the namespace in the
	// seed and the name of the Node.
	Changed func(client.ObjectKey)

	mu     sync.Mutex
	shoots map[string]*shoot
	closed bool
	wg     sync.WaitGroup
}

type shoot struct {
	kubeconfig []byte
	client     client.WithWatch
	disconnect func()
	// awaited are the machines that wait for their Nodes; stop ends the watch, and is nil if there is none.
	awaited map[string]struct{}
	stop    context.CancelFunc
	// orphansDeleted says that the Nodes of instances that are gone have been deleted.
	orphansDeleted bool
}

// Client returns a client for the shoot of a namespace. It returns errNoAccess if there is no Secret for it.
func (s *Shoots) Client(ctx context.Context, namespace string) (client.Client, error) {
	kubeconfig, err := s.kubeconfig(ctx, namespace)
	if err != nil {
		if errors.Is(err, errNoAccess) {
			s.Drop(namespace)
		}
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("no requests to shoots any more: this controller ends")
	}
	known := s.shoots[namespace]
	if known != nil && bytes.Equal(known.kubeconfig, kubeconfig) {
		return known.client, nil
	}
	made, disconnect, err := s.Connect(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("making a client for the shoot of namespace %s: %w", namespace, err)
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

// end ends the watch, without waiting for it, and closes the connections. The caller holds the lock.
func (s *shoot) end() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	s.disconnect()
}

// Await makes Changed be called for the Node of a machine, until StopAwaiting.
func (s *Shoots) Await(namespace, machine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shoots[namespace]; known != nil && !s.closed {
		known.awaited[machine] = struct{}{}
		s.watch(namespace, known)
	}
}

// StopAwaiting ends the waiting for the Node of a machine. The last one ends the watch.
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

// OrphansDeleted reports whether the Nodes of instances that are gone have been deleted in the shoot of a namespace.
func (s *Shoots) OrphansDeleted(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.shoots[namespace]
	return known != nil && known.orphansDeleted
}

// SetOrphansDeleted sets what OrphansDeleted returns, until the shoot is dropped.
func (s *Shoots) SetOrphansDeleted(namespace string, orphansDeleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shoots[namespace]; known != nil {
		known.orphansDeleted = orphansDeleted
	}
}

// Drop ends the watch and closes the connections for the shoot of a namespace.
func (s *Shoots) Drop(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shoots[namespace]; known != nil {
		known.end()
		delete(s.shoots, namespace)
	}
}

// Start waits until the context ends, and then calls Close.
func (s *Shoots) Start(ctx context.Context) error {
	<-ctx.Done()
	s.Close()
	return nil
}

// Close ends all watches and closes all connections, and waits until that is done.
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

// keepWatching restarts the watch with exponential backoff until the context ends.
func (s *Shoots) keepWatching(ctx context.Context, namespace string, shoot client.WithWatch) {
	for wait := watchRetryFirst; ctx.Err() == nil; wait = min(2*wait, watchRetryMax) {
		nodes, err := shoot.Watch(ctx, &corev1.NodeList{})
		if err == nil {
			if s.notifyChanges(ctx, namespace, nodes) {
				wait = watchRetryFirst
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

// notifyChanges calls Changed for changes of Nodes until the watch ends. It returns whether there was any event.
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
	_, condition := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// idle is how long an unused connection to a shoot stays open: there can be hundreds of shoots.
const idle = 10 * time.Second

// shootScheme and shootMapper contain the kinds that are used in shoots, so that no client needs discovery.
var shootScheme, shootMapper = func() (*runtime.Scheme, meta.RESTMapper) {
	scheme := runtime.NewScheme()
	corev1.AddToScheme(scheme)
	policyv1.AddToScheme(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	return scheme, mapper
}()

// Connect returns a client for a self-contained kubeconfig, and a function that closes its connections. The client does not
// share connections with others.
func Connect(data []byte) (client.WithWatch, func(), error) {
	config, err := componentkubeconfig.RESTConfig(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificates of the kubeconfig: %w", err)
	}
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: shootTimeout}).DialContext)
	transport := &http.Transport{
		TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, DialContext: dialer.DialContext,
		TLSHandshakeTimeout: shootTimeout, IdleConnTimeout: idle,
	}
	roundTripper, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client from the kubeconfig: %w", err)
	}
	config.QPS = -1
	made, err := client.NewWithWatch(config, client.Options{
		HTTPClient: &http.Client{Transport: roundTripper}, Scheme: shootScheme, Mapper: shootMapper,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making a client from the kubeconfig: %w", err)
	}
	return made, func() { transport.CloseIdleConnections(); dialer.CloseAll() }, nil
}
