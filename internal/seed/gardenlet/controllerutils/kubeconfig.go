package controllerutils

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig for a user of the cluster that a client configuration names. Credentials in the
// configuration are ignored.
func Kubeconfig(cluster *rest.Config, name string, user *clientcmdapi.AuthInfo) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: cluster.Host, CertificateAuthorityData: cluster.CAData,
			InsecureSkipTLSVerify: cluster.Insecure, TLSServerName: cluster.ServerName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}
