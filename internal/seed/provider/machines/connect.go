package machines

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
func Connect(kubeconfig []byte) (client.WithWatch, func(), error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
		config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
		return nil, nil, errors.New("the kubeconfig names files or programs of the host; put certificates and tokens themselves into it")
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
