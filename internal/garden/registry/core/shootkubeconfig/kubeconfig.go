package shootkubeconfig

import (
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// newKubeconfig returns a kubeconfig with one cluster and one context for each address, in their order. The first is
// the current context. All have the same user, named after the first. The Shoot's name is the prefix of all names.
func newKubeconfig(shoot string, addresses []gardencore.ShootAdvertisedAddress, caBundle, certPEM, keyPEM []byte) ([]byte, error) {
	first := shoot + "-" + addresses[0].Name
	config := clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: first,
		AuthInfos: []clientcmdv1.NamedAuthInfo{
			{Name: first, AuthInfo: clientcmdv1.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}}},
	}
	for _, address := range addresses {
		name, server := shoot+"-"+address.Name, clientcmdv1.Cluster{Server: address.URL}
		if address.Name != constants.AdvertisedAddressWildcardTLSSeedBound { // its certificate is publicly trusted
			server.CertificateAuthorityData = caBundle
		}
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{Name: name, Cluster: server})
		config.Contexts = append(
			config.Contexts, clientcmdv1.NamedContext{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: first}})
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return data, nil
}
