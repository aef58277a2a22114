package pki

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// These files exist only in a PKI with given authorities.
const (
	clientCABundleFile       = "ca-client-bundle.crt"
	serviceAccountBundleFile = "service-account-bundle.key"
)

// KeyPair is a certificate and its key, in PEM.
type KeyPair struct{ Cert, Key []byte }

// Authorities are authorities and keys that the caller creates, renews and rotates, in PEM. The PKI signs with them.
type Authorities struct {
	// CA signs the serving certificate, ClientCA client certificates, FrontProxyCA the client certificate of the aggregator.
	CA, ClientCA, FrontProxyCA KeyPair
	// KubeletClient is what the API server shows to kubelets. It is optional: by default, it is signed by ClientCA.
	KubeletClient KeyPair
	// CABundle are the authorities that clients trust, ClientCABundle those whose client certificates are accepted.
	// During a rotation, they contain the old and the new authority.
	CABundle, ClientCABundle []byte
	// ServiceAccountKey signs service account tokens; ServiceAccountBundle has the keys whose tokens are accepted.
	ServiceAccountKey, ServiceAccountBundle []byte
}

// kubeletClientName is the name of the files with a given client certificate for kubelets.
const kubeletClientName = "kubelet-client"

// KubeletClient returns the client certificate that the API server shows to kubelets: the given one, or one for the user.
func (p *PKI) KubeletClient(user string) (Client, error) {
	if given := p.cfg.Given; given != nil && len(given.KubeletClient.Cert) > 0 {
		return Client{CertFile: p.file(kubeletClientName + ".crt"), KeyFile: p.file(kubeletClientName + ".key"), User: user}, nil
	}
	return p.Client("kube-apiserver-kubelet", user)
}

// takeGiven writes the given authorities and keys to the files of the PKI. It does not write files that have not
// changed.
func (p *PKI) takeGiven() error {
	given := p.cfg.Given
	if err := given.validate(); err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		data []byte
	}{
		{"ca.key", given.CA.Key}, {"ca.crt", given.CA.Cert},
		{"ca-client.key", given.ClientCA.Key}, {"ca-client.crt", given.ClientCA.Cert},
		{"front-proxy-ca.key", given.FrontProxyCA.Key}, {"front-proxy-ca.crt", given.FrontProxyCA.Cert},
		{"service-account.key", given.ServiceAccountKey}, {serviceAccountBundleFile, given.ServiceAccountBundle},
		{clientCABundleFile, given.ClientCABundle},
		{kubeletClientName + ".key", given.KubeletClient.Key}, {kubeletClientName + ".crt", given.KubeletClient.Cert},
	} {
		current, err := os.ReadFile(p.file(file.name))
		if err == nil && bytes.Equal(current, file.data) || len(file.data) == 0 { // the optional ones
			continue
		}
		if err := writeFile(p.file(file.name), file.data); err != nil {
			return err
		}
	}
	for name, into := range map[string]**authority{"ca": &p.ca, "ca-client": &p.clientCA, "front-proxy-ca": &p.frontProxy} {
		var err error
		if *into, err = p.readAuthority(name); err != nil {
			return err
		}
	}
	p.bundle = given.CABundle
	return nil
}

func (p *PKI) readAuthority(name string) (*authority, error) {
	crt, certPEM, err := readCert(p.file(name + ".crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the given certificate authority: %w", err)
	}
	key, err := readKey(p.file(name + ".key"))
	if err != nil {
		return nil, fmt.Errorf("reading the key of the given certificate authority: %w", err)
	}
	if !samePublicKey(crt, key) {
		return nil, fmt.Errorf("the given certificate authority %s and its key do not belong together", name)
	}
	return &authority{cert: crt, certPEM: certPEM, key: key}, nil
}

// validate returns what is missing or cannot be parsed, before anything is written.
func (a *Authorities) validate() error {
	var errs []error
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"the certificate authority", a.CA.Cert}, {"the certificate authority of clients", a.ClientCA.Cert},
		{"the certificate authority of the front proxy", a.FrontProxyCA.Cert},
		{"the bundle that clients trust", a.CABundle}, {"the bundle of whose clients are accepted", a.ClientCABundle},
	} {
		if _, err := cert.ParseCertsPEM(c.data); err != nil {
			errs = append(errs, fmt.Errorf("%s has no certificate", c.name))
		}
	}
	for _, k := range []struct {
		name string
		data []byte
	}{
		{"the key of the certificate authority", a.CA.Key}, {"the key of the certificate authority of clients", a.ClientCA.Key},
		{"the key of the certificate authority of the front proxy", a.FrontProxyCA.Key},
		{"the key for service account tokens", a.ServiceAccountKey},
	} {
		if _, err := keyutil.ParsePrivateKeyPEM(k.data); err != nil { // the error may contain a part of the key
			errs = append(errs, fmt.Errorf("%s is no private key", k.name))
		}
	}
	if _, err := keyutil.ParsePublicKeysPEM(a.ServiceAccountBundle); err != nil {
		errs = append(errs, errors.New("the bundle of keys for service account tokens has none"))
	}
	return errors.Join(errs...)
}

// ownOr returns the path of the file own, or given if the authorities were given.
func (p *PKI) ownOr(own, given string) string {
	if p.cfg.Given != nil {
		return p.file(given)
	}
	return p.file(own)
}
