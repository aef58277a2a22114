package kubeconfig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// TestStencil: what is cut is what x509.CreateCertificate makes, for every kind of key and every kind of user.
func TestStencil(t *testing.T) {
	ecKey := func(curve elliptic.Curve) crypto.Signer {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	for name, key := range map[string]crypto.Signer{
		"P-256": ecKey(elliptic.P256()), "P-384": ecKey(elliptic.P384()), "P-521": ecKey(elliptic.P521()), "RSA": rsaKey, "Ed25519": edKey,
	} {
		t.Run(name, func(t *testing.T) {
			template := &x509.Certificate{
				SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(100, 0, 0),
				IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte{1, 2, 3},
			}
			der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			authority, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			s, err := newStencil(authority, key)
			if err != nil {
				t.Fatal(err)
			}
			for _, user := range []string{"alice", "", "Жанна д'Арк", "漢字🌱", "a\"b\\c,d=e+f", "a*b@c", " '()+,-./:=?azAZ09", "a&b", "_", strings.Repeat("x", maxUserName)} {
				for _, end := range []time.Time{now.Add(10 * time.Minute), now.AddDate(60, 0, 0)} {
					for _, public := range []crypto.PublicKey{ecKey(elliptic.P256()).Public(), rsaKey.Public()} {
						serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
						if err != nil {
							t.Fatal(err)
						}
						name := pkix.Name{CommonName: user, Organization: []string{"system:masters"}}
						cutDER, err := s.cut(serial, subject{user, "system:masters"}, public, now, end)
						if err != nil {
							t.Fatal(err)
						}
						got, err := x509.ParseCertificate(cutDER)
						if err != nil {
							t.Fatalf("%q: %v", user, err)
						}
						if err := got.CheckSignatureFrom(authority); err != nil {
							t.Errorf("%q: %v", user, err)
						}
						wantDER, err := x509.CreateCertificate(rand.Reader, clientTemplate(serial, name, now, end), authority, public, key)
						if err != nil {
							t.Fatal(err)
						}
						want, err := x509.ParseCertificate(wantDER)
						if err != nil {
							t.Fatal(err)
						}
						if !bytes.Equal(got.RawTBSCertificate, want.RawTBSCertificate) || got.SignatureAlgorithm != want.SignatureAlgorithm {
							t.Errorf("%q until %s: %+v, not %+v", user, end, got, want)
						}
					}
				}
			}
		})
	}
}

// TestP256Form: keys are written as x509 writes them.
func TestP256Form(t *testing.T) {
	for range 100 {
		key, err := ECDSA.generate()
		if err != nil {
			t.Fatal(err)
		}
		want, err := keyutil.MarshalPrivateKeyToPEM(key.signer)
		if err != nil || !bytes.Equal(key.pem, want) {
			t.Fatalf("a key is written as %s, x509 writes %s, %v", key.pem, want, err)
		}
		gotPublic, err := marshalPublic(key.signer.Public())
		if err != nil {
			t.Fatal(err)
		}
		if wantPublic, err := x509.MarshalPKIXPublicKey(key.signer.Public()); err != nil || !bytes.Equal(gotPublic, wantPublic) {
			t.Fatalf("a public key is written as %x, x509 writes %x, %v", gotPublic, wantPublic, err)
		}
	}
}

// An authority whose key belongs to another certificate makes nothing.
func TestStencilOfAnotherKey(t *testing.T) {
	one, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, one.Public(), one)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newStencil(authority, other); err == nil {
		t.Error("there is a stencil")
	}
}
