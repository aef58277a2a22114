// Package kubeconfig reads kubeconfigs that come from a cluster: whoever may write them there chooses what the
// programs that use them do on this machine. It imports nothing of the project.
package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Load reads a kubeconfig of which clusters have an address, a server name and a CA, and users a client certificate
// with its key, a token, or a name and a password. It refuses one with more: programs that clients run, files that
// they read, proxies. The error has nothing of the kubeconfig but the names of its entries, because that has
// credentials.
func Load(data []byte) (*clientcmdapi.Config, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("it cannot be read as a kubeconfig")
	}
	for _, name := range slices.Sorted(maps.Keys(config.Clusters)) {
		c := config.Clusters[name]
		plain := &clientcmdapi.Cluster{Server: c.Server, TLSServerName: c.TLSServerName,
			CertificateAuthorityData: c.CertificateAuthorityData, InsecureSkipTLSVerify: c.InsecureSkipTLSVerify,
			DisableCompression: c.DisableCompression, Extensions: c.Extensions}
		if !reflect.DeepEqual(c, plain) {
			return nil, fmt.Errorf("its cluster %q has more than server, tls-server-name, certificate-authority-data and "+
				"insecure-skip-tls-verify: files and proxies of this machine are not used for it", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		u := config.AuthInfos[name]
		plain := &clientcmdapi.AuthInfo{ClientCertificateData: u.ClientCertificateData, ClientKeyData: u.ClientKeyData,
			Token: u.Token, Username: u.Username, Password: u.Password, Extensions: u.Extensions}
		if !reflect.DeepEqual(u, plain) {
			return nil, fmt.Errorf("its user %q has more than client-certificate-data, client-key-data, token, username and "+
				"password: programs and files of this machine are not used for it", name)
		}
	}
	return config, nil
}

// RESTConfig returns the client configuration of a kubeconfig that Load accepts.
func RESTConfig(data []byte) (*rest.Config, error) {
	config, err := Load(data)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
}
