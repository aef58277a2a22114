package bootstrap

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/component/kubeconfig"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// credential is a certificate with its key, and the garden that it belongs to.
type credential struct {
	garden          *rest.Config // address and CA only
	certPEM, keyPEM []byte
	leaf            *x509.Certificate
}

// newCredential checks that certificate and key match and belong to the seed. It does not check the validity period.
func newCredential(garden *rest.Config, certPEM, keyPEM []byte, seedName string, clk clock.PassiveClock) (*credential, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate and key do not go together: %w", err)
	}
	user := constants.SeedUserNamePrefix + seedName
	if subject := pair.Leaf.Subject; subject.CommonName != user || !slices.Contains(subject.Organization, constants.SeedsGroup) {
		return nil, fmt.Errorf("the certificate is that of %q, not of %s", subject.CommonName, user)
	}
	return &credential{endpointOf(garden), certPEM, keyPEM, certificates.ByClock(pair.Leaf, clk)}, nil
}

func (c *credential) validAt(now time.Time) bool {
	return !now.Before(c.leaf.NotBefore) && now.Before(c.leaf.NotAfter)
}

// config returns a configuration that contains the credential, for a client that does not support rotation.
func (c *credential) config() *rest.Config {
	config := rest.CopyConfig(c.garden)
	config.CertData, config.KeyData = c.certPEM, c.keyPEM
	return config
}

func (c *credential) kubeconfig() ([]byte, error) {
	user := &clientcmdapi.AuthInfo{ClientCertificateData: c.certPEM, ClientKeyData: c.keyPEM}
	return controllerutils.Kubeconfig(c.garden, "gardenlet", user)
}

// parseCredential reads the credential from a stored kubeconfig.
func parseCredential(stored []byte, seedName string, clk clock.PassiveClock) (*credential, error) {
	config, err := kubeconfig.RESTConfig(stored)
	if err != nil {
		return nil, err
	}
	if len(config.CertData) == 0 || len(config.KeyData) == 0 {
		return nil, errors.New("it has no client certificate with its key in it")
	}
	return newCredential(config, config.CertData, config.KeyData, seedName, clk)
}

// parseBootstrap reads a bootstrap kubeconfig.
func parseBootstrap(data []byte) (*rest.Config, error) {
	config, err := parseKubeconfig(data)
	switch {
	case err != nil:
		return nil, err
	case config.ExecProvider != nil || config.AuthProvider != nil:
		return nil, errors.New("it starts a program to authenticate: it must have a token or a client certificate in it")
	case config.BearerToken == "" && config.BearerTokenFile == "" && len(config.CertData) == 0:
		return nil, errors.New("it has neither a token nor a client certificate in it")
	}
	return config, nil
}

// parseKubeconfig omits the cause from its errors, because it may contain the token.
func parseKubeconfig(data []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil || config.Host == "" {
		return nil, errors.New("it cannot be read as a kubeconfig")
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, errors.New("it names files of certificates or keys that cannot be read")
	}
	return config, nil
}

// endpointOf returns the configuration without its credentials.
func endpointOf(config *rest.Config) *rest.Config {
	endpoint := rest.AnonymousClientConfig(config)
	endpoint.CAFile = ""
	if !strings.Contains(endpoint.Host, "://") {
		endpoint.Host = "https://" + endpoint.Host
	}
	return endpoint
}
