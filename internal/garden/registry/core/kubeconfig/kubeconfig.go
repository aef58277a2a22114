package kubeconfig

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// form is a kubeconfig for a Shoot without a user's certificate and key, which are all that differs from one call to the
// next: to write YAML takes several times as long as to make those.
type form struct {
	// before, between and after are what stands around the two.
	before, between, after []byte
}

// form has a context for each address, in their order; the first one is the current one. All are for one user, who has the
// name of the first. The name of each begins with that of the Shoot.
func (c *cluster) newForm(shoot string) (*form, error) {
	first := shoot + "-" + c.addresses[0].Name
	cert, key := []byte(rand.Text()), []byte(rand.Text()) // nobody can know what to look for
	config := clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: first,
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: first, AuthInfo: clientcmdv1.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}}},
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
	before, rest, foundCert := bytes.Cut(data, encoded(cert))
	between, after, foundKey := bytes.Cut(rest, encoded(key))
	if !foundCert || !foundKey {
		return nil, errors.New("writing a kubeconfig: its user is not where it should be")
	}
	return &form{before, between, after}, nil
}

// fill is the kubeconfig of a user.
func (f *form) fill(certPEM, keyPEM []byte) []byte {
	size := len(f.before) + len(f.between) + len(f.after) + base64.StdEncoding.EncodedLen(len(certPEM)) + base64.StdEncoding.EncodedLen(len(keyPEM))
	data := append(make([]byte, 0, size), f.before...)
	data = base64.StdEncoding.AppendEncode(data, certPEM)
	data = append(data, f.between...)
	data = base64.StdEncoding.AppendEncode(data, keyPEM)
	return append(data, f.after...)
}

func encoded(data []byte) []byte { return base64.StdEncoding.AppendEncode(nil, data) }
