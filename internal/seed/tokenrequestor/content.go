package tokenrequestor

import (
	"bytes"
	"fmt"
	"strconv"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// content gives access to the token in a Secret. The token belongs to the user of the current context if the Secret has a
// kubeconfig, otherwise it is under a key of its own. The same holds for the cluster's CA, for Secrets that ask for it.
type content struct {
	secret     *corev1.Secret
	ca         []byte // nil if it is not asked for
	kubeconfig *clientcmdapi.Config
	user       *clientcmdapi.AuthInfo
	cluster    *clientcmdapi.Cluster
}

// wantedCA returns the CA of the cluster if a Secret asks for it, nil otherwise.
func wantedCA(secret *corev1.Secret, config *rest.Config) []byte {
	if wanted, _ := strconv.ParseBool(secret.Annotations[resourcesv1alpha1.ServiceAccountInjectCABundle]); wanted {
		return config.CAData
	}
	return nil
}

func contentOf(secret *corev1.Secret, ca []byte) (*content, error) {
	c := &content{secret: secret, ca: ca}
	data, ok := secret.Data[resourcesv1alpha1.DataKeyKubeconfig]
	if !ok {
		return c, nil
	}
	kubeconfig, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig in Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	current := kubeconfig.Contexts[kubeconfig.CurrentContext]
	if current == nil || kubeconfig.AuthInfos[current.AuthInfo] == nil || kubeconfig.Clusters[current.Cluster] == nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s must have a current context, with its cluster and its user",
			client.ObjectKeyFromObject(secret))
	}
	c.kubeconfig, c.user, c.cluster = kubeconfig, kubeconfig.AuthInfos[current.AuthInfo], kubeconfig.Clusters[current.Cluster]
	return c, nil
}

func (c *content) token() string {
	if c.kubeconfig != nil {
		return c.user.Token
	}
	return string(c.secret.Data[resourcesv1alpha1.DataKeyToken])
}

// hasCurrentCA reports whether the Secret has the cluster's current CA, or does not ask for it.
func (c *content) hasCurrentCA() bool {
	switch {
	case c.ca == nil:
		return true
	case c.kubeconfig != nil:
		return bytes.Equal(c.cluster.CertificateAuthorityData, c.ca)
	}
	return bytes.Equal(c.secret.Data[resourcesv1alpha1.DataKeyCABundle], c.ca)
}

// fill writes a token, and the cluster's CA unless it is nil, into a Secret.
func fill(secret *corev1.Secret, token string, ca []byte) error {
	c, err := contentOf(secret, ca)
	if err != nil {
		return err
	}
	if c.secret.Data == nil {
		c.secret.Data = map[string][]byte{}
	}
	if c.kubeconfig == nil {
		c.secret.Data[resourcesv1alpha1.DataKeyToken] = []byte(token)
		delete(c.secret.Data, resourcesv1alpha1.DataKeyCABundle)
		if c.ca != nil {
			c.secret.Data[resourcesv1alpha1.DataKeyCABundle] = c.ca
		}
		return nil
	}
	c.user.Token = token
	if c.ca != nil {
		c.cluster.CertificateAuthorityData = c.ca
	}
	data, err := clientcmd.Write(*c.kubeconfig)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig in Secret %s: %w", client.ObjectKeyFromObject(c.secret), err)
	}
	c.secret.Data[resourcesv1alpha1.DataKeyKubeconfig] = data
	return nil
}
