package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestGiven signs with given authorities, and replaces them with others.
func TestGiven(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Now())
	cfg := Config{Dir: t.TempDir(), Name: "x", Hosts: []string{"127.0.0.1"}, Clock: clk, Given: given(t, clk)}
	p, err := Load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client, err := p.Client("alice", "alice")
	if err != nil {
		t.Fatal(err)
	}
	checkSigned(t, p.ServingCertFile(), cfg.Given.CABundle, x509.ExtKeyUsageServerAuth)
	checkSigned(t, client.CertFile, cfg.Given.ClientCABundle, x509.ExtKeyUsageClientAuth)
	for _, file := range []string{p.ClientCAFile(), p.SigningKeyFile(), p.ServiceAccountBundleFile()} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(file), info, err)
		}
	}

	cfg.Given = given(t, clk)
	if p, err = Load(cfg); err != nil {
		t.Fatal(err)
	}
	checkSigned(t, p.ServingCertFile(), cfg.Given.CABundle, x509.ExtKeyUsageServerAuth)
	checkSigned(t, client.CertFile, cfg.Given.ClientCABundle, x509.ExtKeyUsageClientAuth)
}

// TestGivenIsChecked checks the errors for unusable authorities. They must not contain secrets.
func TestGivenIsChecked(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Now())
	for name, test := range map[string]struct {
		spoil func(*Authorities)
		want  string
	}{
		"no certificate": {func(a *Authorities) { a.CA.Cert = nil }, "the certificate authority has no certificate"},
		"no bundle": {func(a *Authorities) { a.ClientCABundle = []byte("x") },
			"the bundle of whose clients are accepted has no certificate"},
		"no key": {func(a *Authorities) { a.ClientCA.Key = a.CA.Cert },
			"the key of the certificate authority of clients is no private key"},
		"no token keys":     {func(a *Authorities) { a.ServiceAccountBundle = nil }, "the bundle of keys for service account tokens has none"},
		"another one's key": {func(a *Authorities) { a.CA.Key = a.ClientCA.Key }, "do not belong together"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Dir: t.TempDir(), Name: "x", Clock: clk, Given: given(t, clk)}
			test.spoil(cfg.Given)
			if _, err := Load(cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// given returns authorities. The first one has an RSA key, like some of Gardener's.
func given(t *testing.T, clk *clocktesting.FakePassiveClock) *Authorities {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, certPEM, err := signAuthority("ca", key, clk.Now())
	if err != nil {
		t.Fatal(err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	others, err := Export(Config{Dir: t.TempDir(), Name: "others", Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	return &Authorities{
		CA: KeyPair{certPEM, keyPEM}, CABundle: certPEM,
		ClientCA: KeyPair{others["ca.crt"], others["ca.key"]}, ClientCABundle: others["ca.crt"],
		FrontProxyCA:      KeyPair{others["front-proxy-ca.crt"], others["front-proxy-ca.key"]},
		ServiceAccountKey: keyPEM, ServiceAccountBundle: append(keyPEM, others["service-account.key"]...),
	}
}

func checkSigned(t *testing.T, file string, bundle []byte, usage x509.ExtKeyUsage) {
	t.Helper()
	cert, _, err := readCert(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		t.Errorf("%s: %v", filepath.Base(file), err)
	}
}
