package controlplane

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/utils/ptr"
)

// endpointTimeout is how long reading the endpoints of a Service may take.
const endpointTimeout = 5 * time.Second

// services resolves the Services of webhooks and aggregated APIs: those that this process serves itself, and those
// whose Pods are processes of this machine. Other Services with a selector are not reachable.
type services struct {
	local     map[string]*url.URL
	client    kubernetes.Interface
	servesPod func(netip.AddrPort) bool
	fallback  aggregatorapiserver.ServiceResolver
}

func newServices(c *genericapiserver.Config, shared informers.SharedInformerFactory, local map[string]*url.URL,
	servesPod func(netip.AddrPort) bool) (aggregatorapiserver.ServiceResolver, error) {
	loopback, err := url.Parse(c.LoopbackClientConfig.Host)
	if err != nil {
		return nil, fmt.Errorf("the address of the server for itself: %w", err)
	}
	client, err := kubernetes.NewForConfig(c.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making the client that reads endpoints: %w", err)
	}
	fallback := aggregatorapiserver.NewClusterIPServiceResolver(shared.Core().V1().Services().Lister())
	return &services{local, client, servesPod, aggregatorapiserver.NewLoopbackServiceResolver(fallback, loopback)}, nil
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
		return &url.URL{Scheme: "https", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(target)))}, nil
	}
	return nil, fmt.Errorf("service %s/%s has no ready Pod that runs as a process", namespace, name)
}

// endpoint returns the port of a Pod behind the Service that is ready and is a process of this machine.
func (s *services) endpoint(service *corev1.Service, all []discoveryv1.EndpointSlice, port int32) (int32, bool) {
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
				if address, err := netip.ParseAddr(endpoint.Addresses[0]); err == nil && s.servesPod(netip.AddrPortFrom(address, uint16(*p.Port))) {
					return *p.Port, true
				}
			}
		}
	}
	return 0, false
}
