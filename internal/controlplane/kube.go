package controlplane

import (
	"fmt"
	"net/netip"

	"k8s.io/apiserver/pkg/admission"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	kubeadmission "k8s.io/kubernetes/pkg/kubeapiserver/admission"

	"github.com/gardenlite/gardenlite/internal/controlplane/certwatch"
)

// servicePort is the port of the service "kubernetes".
const servicePort = 443

// kubeConfig is the configuration of the kube-apiserver in the chain, with the parts that other servers of the chain
// share.
type kubeConfig struct {
	*controlplane.Config
	services     *services
	initializers []admission.PluginInitializer
}

// newKubeConfig does the same as Kubernetes' CreateKubeAPIServerConfig, except for the resolution of services: no
// network routes to their addresses, so some services have an address in this process.
func newKubeConfig(opts options.CompletedOptions, g *generic, cfg *Config,
	servesPod func(netip.AddrPort) bool) (*kubeConfig, error) {
	capabilities.Setup(opts.AllowPrivileged, opts.MaxConnectionBytesPerSec)
	initializers, err := (&kubeadmission.Config{}).New()
	if err != nil {
		return nil, fmt.Errorf("preparing admission: %w", err)
	}
	kube := &kubeConfig{}
	if kube.services, err = newServices(g.config, g.informers, cfg, servesPod); err != nil {
		return nil, err
	}
	// The wrapper of a later initializer wraps that of an earlier one.
	initializers = append(initializers, webhookinit.NewPluginInitializer(kube.services.discreet, kube.services))
	shared, initializers, err := controlplaneapiserver.CreateConfig(opts.CompletedOptions, g.config, g.informers, g.storage,
		kube.services, initializers)
	if err != nil {
		return nil, err
	}
	// It is read at each connection.
	shared.ProxyTransport.DialContext, shared.ProxyTransport.Proxy = kube.services.dial, nil
	kube.initializers = initializers
	clients := &shared.ClusterAuthenticationInfo
	clients.ClientCA = certwatch.CA(clients.ClientCA, opts.Authentication.ClientCert.ClientCA)
	clients.RequestHeaderCA = certwatch.CA(clients.RequestHeaderCA, opts.Authentication.RequestHeader.ClientCAFile)
	kube.Config = &controlplane.Config{ControlPlane: *shared, Extra: controlplane.Extra{
		KubeletClientConfig:       opts.KubeletConfig,
		ServiceIPRange:            opts.PrimaryServiceClusterIPRange,
		APIServerServiceIP:        opts.APIServerServiceIP,
		SecondaryServiceIPRange:   opts.SecondaryServiceClusterIPRange,
		APIServerServicePort:      servicePort,
		ServiceNodePortRange:      opts.ServiceNodePortRange,
		KubernetesServiceNodePort: opts.KubernetesServiceNodePort,
		EndpointReconcilerType:    reconcilers.Type(opts.EndpointReconcilerType),
		MasterCount:               opts.MasterCount,
	}}
	return kube, nil
}
