package harness

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// groupVersions are those that gardener-apiserver serves.
var groupVersions = []struct{ group, version string }{
	{"core.gardener.cloud", "v1"}, {"core.gardener.cloud", "v1beta1"}, {"operations.gardener.cloud", "v1alpha1"},
	{"security.gardener.cloud", "v1alpha1"}, {"seedmanagement.gardener.cloud", "v1alpha1"},
}

// WithGardener starts the three servers of a garden (etcd, kube-apiserver and gardener-apiserver, with defaults), and
// calls fn once a client of kube-apiserver can list all of the resources. Took is the time until then.
func WithGardener(ctx context.Context, folder string, resources []string, fn func(BaselineServer) error) error {
	// gardener-apiserver reads from kube-apiserver how to authenticate, so it cannot begin before that is ready.
	return WithBaseline(ctx, folder, func(s BaselineServer) error {
		client, err := rest.HTTPClientFor(s.Config)
		if err != nil {
			return err
		}
		kubeconfig := s.Kubeconfig()
		if err := WriteKubeconfig(s.Config, kubeconfig); err != nil {
			return err
		}
		port := FreePort()
		server, err := Start(s.Dir, filepath.Join(folder, "gardener-apiserver"),
			"--etcd-servers="+s.etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			"--tls-cert-file="+s.Certificate, "--tls-private-key-file="+s.Key, "--kubeconfig="+kubeconfig,
			"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig, "--cluster-identity=bench",
			"--workload-identity-token-issuer=https://bench.invalid", "--workload-identity-signing-key-file="+s.Key)
		if err != nil {
			return err
		}
		defer server.End()
		s.processes = append(s.processes, server)
		if err := register(client, s.Config.Host, port); err != nil {
			return err
		}
		if err := s.wait(ctx, func() bool { return ListAll(client, s.Config.Host, resources) }); err != nil {
			return err
		}
		s.Took = time.Since(s.begin)
		return fn(s)
	})
}

// Kubeconfig is the file of a user with all rights, once gardener-apiserver runs.
func (s BaselineServer) Kubeconfig() string { return filepath.Join(s.Dir, "kubeconfig") }

// register makes kube-apiserver send the requests for Gardener's groups to gardener-apiserver.
func register(client *http.Client, host string, port int) error {
	create := func(path, body string) error {
		response, err := client.Post(host+path, "application/json", bytes.NewBufferString(body))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		return nil
	}
	if err := create("/api/v1/namespaces/default/services", `{"apiVersion":"v1","kind":"Service",
		"metadata":{"name":"gardener-apiserver"},"spec":{"type":"ExternalName","externalName":"localhost"}}`); err != nil {
		return err
	}
	for _, v := range groupVersions {
		if err := create("/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(`{
			"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"%[2]s.%[1]s"},
			"spec":{"group":%[1]q,"version":%[2]q,"groupPriorityMinimum":9000,"versionPriority":10,
			"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"gardener-apiserver","port":%[3]d}}}`,
			v.group, v.version, port)); err != nil {
			return err
		}
	}
	return nil
}

// ListAll reports whether the API server at host is ready and every resource (GROUP/VERSION/NAME) can be listed.
func ListAll(client *http.Client, host string, resources []string) bool {
	if Get(client, host+"/readyz") != nil {
		return false
	}
	// In parallel: a consistent list waits up to 100 ms for the watch cache, in every kube-apiserver.
	failed := make(chan bool, len(resources))
	for _, resource := range resources {
		go func() { failed <- Get(client, host+"/apis/"+resource) != nil }()
	}
	ok := true
	for range resources {
		ok = !<-failed && ok
	}
	return ok
}

// WriteKubeconfig writes a kubeconfig for a configuration with a token.
func WriteKubeconfig(config *rest.Config, file string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"bench": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bench": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"bench": {Cluster: "bench", AuthInfo: "bench"}},
		CurrentContext: "bench",
	}, file)
}
