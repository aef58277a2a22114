package kubeconfig

import (
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// kubeconfig has a context for each address, in their order; the first one is the current one. All are for one user, who
// has the name of the first. The name of each begins with that of the Shoot.
func (c *cluster) kubeconfig(shoot string, certPEM, keyPEM []byte) ([]byte, error) {
	first := shoot + "-" + c.addresses[0].Name
	config := clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: first,
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: first, AuthInfo: clientcmdv1.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}}},
	}
	for _, address := range c.addresses {
		name, server := shoot+"-"+address.Name, clientcmdv1.Cluster{Server: address.URL}
		if address.Name != constants.AdvertisedAddressWildcardTLSSeedBound { // its certificate is one that everybody trusts
			server.CertificateAuthorityData = c.bundle
		}
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{Name: name, Cluster: server})
		config.Contexts = append(config.Contexts, clientcmdv1.NamedContext{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: first}})
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return data, nil
}
