package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/utils/ptr"
)

// endpointTimeout is how long reading the endpoints of a Service may take.
const endpointTimeout = 5 * time.Second

// services resolves the Services of webhooks and aggregated APIs: those that this process serves itself, and those
// whose Pods are processes of this machine. Other Services with a selector are not reachable.
type services struct {
	local     map[string]*url.URL
	standIns  map[string]func(context.Context) (net.Conn, error)
	client    kubernetes.Interface
	servesPod func(netip.AddrPort) bool
	fallback  aggregatorapiserver.ServiceResolver
	itself    string // the host and port of the API server
}

func newServices(c *genericapiserver.Config, shared informers.SharedInformerFactory, cfg *Config,
	servesPod func(netip.AddrPort) bool) (*services, error) {
	loopback, err := url.Parse(c.LoopbackClientConfig.Host)
	if err != nil {
		return nil, fmt.Errorf("the address of the server for itself: %w", err)
	}
	client, err := kubernetes.NewForConfig(c.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making the client that reads endpoints: %w", err)
	}
	fallback := aggregatorapiserver.NewClusterIPServiceResolver(shared.Core().V1().Services().Lister())
	return &services{cfg.Services, cfg.StandIns, client, servesPod, aggregatorapiserver.NewLoopbackServiceResolver(fallback, loopback),
		loopback.Host}, nil
}

func (s *services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	if at, ok := s.local[namespace+"/"+name]; ok && port == servicePort {
		return at, nil
	}
	if s.servesPod == nil || namespace == metav1.NamespaceDefault && name == "kubernetes" {
		return s.fallback.ResolveEndpoint(namespace, name, port)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endpointTimeout)
	defer cancel()
	service, err := s.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if len(service.Spec.Selector) == 0 || service.Spec.Type == corev1.ServiceTypeExternalName {
		return s.fallback.ResolveEndpoint(namespace, name, port)
	}
	slices, err := s.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{discoveryv1.LabelServiceName: name}.String(),
	})
	if err != nil {
		return nil, err
	}
	if target, ok := s.endpoint(service, slices.Items, port); ok {
		return &url.URL{Scheme: "https", Host: target.String()}, nil
	}
	if _, ok := s.standIns[namespace+"/"+name]; ok && port == servicePort {
		return &url.URL{Scheme: "https", Host: name + "." + namespace + standInSuffix}, nil
	}
	return nil, fmt.Errorf("service %s/%s has no ready Pod that runs as a process", namespace, name)
}

// standInSuffix follows the name and the namespace of a Service in the address of its stand-in.
const standInSuffix = ".stand-in:443"

// standIn returns the function that connects to the stand-in with an address, nil if there is none.
func (s *services) standIn(address string) func(context.Context) (net.Conn, error) {
	if service, ok := strings.CutSuffix(address, standInSuffix); ok {
		name, namespace, _ := strings.Cut(service, ".")
		return s.standIns[namespace+"/"+name]
	}
	return s.standIns[address]
}

// endpoint returns the address of a Pod behind the Service that is ready and is a process of this machine.
func (s *services) endpoint(service *corev1.Service, all []discoveryv1.EndpointSlice, port int32) (netip.AddrPort,
	bool) {
	name, found := "", false
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			name, found = p.Name, true
		}
	}
	for _, slice := range all {
		for _, p := range slice.Ports {
			if !found || p.Port == nil || ptr.Deref(p.Name, "") != name {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if !ptr.Deref(endpoint.Conditions.Ready, true) || len(endpoint.Addresses) == 0 {
					continue
				}
				address, err := netip.ParseAddr(endpoint.Addresses[0])
				if at := netip.AddrPortFrom(address, uint16(*p.Port)); err == nil && s.servesPod(at) {
					return at, true
				}
			}
		}
	}
	return netip.AddrPort{}, false
}

// dial is the only way from the API server to Pods, Services and aggregated APIs. It connects to processes of the
// cluster's own Pods, which are at the loopback address, to the Services that this process serves, and to the API
// server itself: nothing else of this machine or its network is reachable through an API server.
func (s *services) dial(ctx context.Context, network, address string) (net.Conn, error) {
	isLocal := address == s.itself
	for _, at := range s.local {
		isLocal = isLocal || address == at.Host
	}
	if isLocal {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || s.servesPod == nil || !s.servesPod(at) {
		return nil, fmt.Errorf("there is nothing at %s: the API server reaches only Pods that run as processes", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(at.Port()))))
}

// discreet wraps the clients of webhooks. Errors contain nothing of an answer that is no JSON object with code 200: the
// address of a webhook may be that of any server that this machine reaches.
func (s *services) discreet(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	wrap := func(config *rest.Config, err error) (*rest.Config, error) {
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return discreetTransport{next} })
		next := config.Dial
		if len(s.standIns) == 0 {
			return config, nil
		}
		if next == nil {
			next = (&net.Dialer{}).DialContext
		}
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dial := s.standIn(address); dial != nil {
				return dial(ctx)
			}
			return next(ctx, network, address)
		}
		return config, nil
	}
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*rest.Config, error) { return wrap(delegate.ClientConfigFor(hostPort)) },
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			return wrap(delegate.ClientConfigForService(name, namespace, port))
		},
	}
}

type discreetTransport struct{ next http.RoundTripper }

func (t discreetTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := bufio.NewReader(response.Body)
	begin, _ := body.Peek(body.Size())
	if response.StatusCode == http.StatusOK && bytes.HasPrefix(bytes.TrimSpace(begin), []byte("{")) {
		response.Body = struct {
			io.Reader
			io.Closer
		}{body, response.Body}
		return response, nil
	}
	_ = response.Body.Close()
	response.Header = http.Header{"Content-Type": {"text/plain"}}
	response.ContentLength, response.Body = 0, http.NoBody
	return response, nil
}
