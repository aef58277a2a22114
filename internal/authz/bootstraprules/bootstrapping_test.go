package bootstraprules

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSeedOf(t *testing.T) {
	good := []certificatesv1.KeyUsage{"key encipherment", "client auth", "digital signature"}
	subject := func(name string, organizations ...string) x509.CertificateRequest {
		return x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: organizations}}
	}
	const name, group = "gardener.cloud:system:seed:a", "gardener.cloud:system:seeds"
	withAddress := subject(name, group)
	withAddress.IPAddresses = []net.IP{net.IPv4zero}
	for what, c := range map[string]struct {
		request x509.CertificateRequest
		usages  []certificatesv1.KeyUsage
		seed    string
	}{
		"as it should be":      {subject(name, group), good, "a"},
		"usage twice":          {subject(name, group), append([]certificatesv1.KeyUsage{"client auth"}, good...), "a"},
		"no seed":              {subject("gardener.cloud:system:seed:", group), good, ""},
		"another name":         {subject("a", group), good, ""},
		"another organization": {subject(name, "system:masters"), good, ""},
		"one more":             {subject(name, group, "system:masters"), good, ""},
		"an address":           {withAddress, good, ""},
		"a usage too few":      {subject(name, group), good[:2], ""},
		"a usage too many":     {subject(name, group), append([]certificatesv1.KeyUsage{"server auth"}, good...), ""},
	} {
		seed, why := SeedOf(&c.request, c.usages)
		if seed != c.seed || (why == "") != (c.seed != "") {
			t.Errorf("%s: seed %q because %q", what, seed, why)
		}
	}
}

func TestParse(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	good := block(RequestPEMType, der)
	if request, err := Parse([]byte(good + " \n")); err != nil || request.Subject.CommonName != "a" {
		t.Errorf("%v, %v", request, err)
	}
	for what, text := range map[string]string{
		"nothing": "", "two": good + good, "text after it": good + "x", "another type": block("CERTIFICATE", der),
		"another content": block(RequestPEMType, der[1:]),
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestDone(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	seed := func(expires time.Duration) *gardencorev1beta1.Seed {
		at := metav1.NewTime(now.Add(expires))
		return &gardencorev1beta1.Seed{Status: gardencorev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: &at}}
	}
	of := &metav1.ObjectMeta{}
	renews := &metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}}
	for what, c := range map[string]struct {
		of   *metav1.ObjectMeta
		seed *gardencorev1beta1.Seed
		want bool
	}{
		"no seed":              {of, nil, false},
		"no certificate known": {of, &gardencorev1beta1.Seed{}, true},
		"valid":                {of, seed(time.Second), true},
		"just now":             {of, seed(0), true},
		"expired":              {of, seed(-time.Second), false},
		"renewed":              {renews, seed(time.Hour), false},
	} {
		if got := IsBootstrapped(c.of, c.seed, now); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestTokenID(t *testing.T) {
	// printf garden--a | sha256sum
	if id := TokenID("garden", "a"); string(id[:]) != "4c40cb" {
		t.Errorf("%s", id)
	}
	// printf garden--child | sha256sum
	if got, want := TokenSecret("garden", "child"), "bootstrap-token-872184"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { TokenID("garden", "a-name") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
