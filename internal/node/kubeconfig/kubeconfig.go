// Package kubeconfig writes and reads the kubeconfigs of a node: one cluster, one user. It may import API types only:
// client-go's own functions would bring far more than such a file needs.
package kubeconfig

import (
	"errors"
	"fmt"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// WithToken returns a kubeconfig with a token.
func WithToken(server string, ca []byte, token string) ([]byte, error) {
	return write(server, ca, clientcmdv1.AuthInfo{Token: token})
}

// WithFile returns a kubeconfig that names a file with a certificate and its key.
func WithFile(server string, ca []byte, path string) ([]byte, error) {
	return write(server, ca, clientcmdv1.AuthInfo{ClientCertificate: path, ClientKey: path})
}

func write(server string, ca []byte, user clientcmdv1.AuthInfo) ([]byte, error) {
	data, err := yaml.Marshal(&clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "default",
		Clusters:  []clientcmdv1.NamedCluster{{Name: "default", Cluster: clientcmdv1.Cluster{Server: server, CertificateAuthorityData: ca}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: "default", AuthInfo: user}},
		Contexts:  []clientcmdv1.NamedContext{{Name: "default", Context: clientcmdv1.Context{Cluster: "default", AuthInfo: "default"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return data, nil
}

// Token returns the token in a kubeconfig.
func Token(data []byte) (string, error) {
	config := clientcmdv1.Config{}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("reading a kubeconfig: %w", err)
	}
	if len(config.AuthInfos) == 0 || config.AuthInfos[0].AuthInfo.Token == "" {
		return "", errors.New("there is no token in the kubeconfig")
	}
	return config.AuthInfos[0].AuthInfo.Token, nil
}
