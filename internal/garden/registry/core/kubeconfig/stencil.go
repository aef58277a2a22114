package kubeconfig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cryptobyteasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// stencil is a client certificate of an authority without what differs from one user to the next.
//
// x509.CreateCertificate verifies each signature that it has made, which takes twice as long as to make it and all else
// together. So it makes one, and the others are cut after it.
type stencil struct {
	key  crypto.Signer
	hash crypto.Hash
	// algorithm, issuer and extensions are DER; the latter with their tag.
	algorithm, issuer, extensions []byte
}

// hashes are those of the signatures that a stencil makes.
var hashes = map[x509.SignatureAlgorithm]crypto.Hash{
	x509.ECDSAWithSHA256: crypto.SHA256, x509.ECDSAWithSHA384: crypto.SHA384, x509.ECDSAWithSHA512: crypto.SHA512,
	x509.SHA256WithRSA: crypto.SHA256, x509.PureEd25519: 0,
}

var extensionsTag = cryptobyteasn1.Tag(3).Constructed().ContextSpecific()

// clientTemplate is what x509.CreateCertificate makes client certificates of.
func clientTemplate(serial *big.Int, subject pkix.Name, notBefore, notAfter time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
}

func newStencil(authority *x509.Certificate, key crypto.Signer) (*stencil, error) {
	nobody, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	template := clientTemplate(big.NewInt(1), pkix.Name{}, authority.NotBefore, authority.NotAfter)
	der, err := x509.CreateCertificate(rand.Reader, template, authority, nobody.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing a client certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading a client certificate: %w", err)
	}
	s := &stencil{key: key, issuer: cert.RawIssuer}
	var ok bool
	if s.hash, ok = hashes[cert.SignatureAlgorithm]; !ok {
		return nil, fmt.Errorf("the authority's key signs with %s: use ECDSA, RSA or Ed25519", cert.SignatureAlgorithm)
	}
	var content, algorithm, extensions cryptobyte.String
	tbs := cryptobyte.String(cert.RawTBSCertificate)
	if !tbs.ReadASN1(&content, cryptobyteasn1.SEQUENCE) ||
		!content.SkipASN1(cryptobyteasn1.Tag(0).Constructed().ContextSpecific()) || !content.SkipASN1(cryptobyteasn1.INTEGER) ||
		!content.ReadASN1Element(&algorithm, cryptobyteasn1.SEQUENCE) ||
		!content.SkipASN1(cryptobyteasn1.SEQUENCE) || !content.SkipASN1(cryptobyteasn1.SEQUENCE) || // issuer and validity
		!content.SkipASN1(cryptobyteasn1.SEQUENCE) || !content.SkipASN1(cryptobyteasn1.SEQUENCE) || // subject and key
		!content.ReadASN1Element(&extensions, extensionsTag) || !content.Empty() {
		return nil, errors.New("reading a client certificate: it has another form than RFC 5280 gives it")
	}
	s.algorithm, s.extensions = algorithm, extensions
	return s, nil
}

// cut makes a certificate. Its times have no fractions of seconds.
func (s *stencil) cut(serial *big.Int, subject subject, public crypto.PublicKey, notBefore, notAfter time.Time) ([]byte, error) {
	key, err := marshalPublic(public)
	if err != nil {
		return nil, err
	}
	var b cryptobyte.Builder
	b.AddASN1(cryptobyteasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cryptobyteasn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) { b.AddASN1Int64(2) }) // version 3
		b.AddASN1BigInt(serial)
		b.AddBytes(s.algorithm)
		b.AddBytes(s.issuer)
		b.AddASN1(cryptobyteasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addTime(b, notBefore.UTC())
			addTime(b, notAfter.UTC())
		})
		b.AddASN1(cryptobyteasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addAttribute(b, organizationName, subject.group)
			addAttribute(b, commonName, subject.user)
		})
		b.AddBytes(key)
		b.AddBytes(s.extensions)
	})
	tbs, err := b.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encoding a client certificate: %w", err)
	}
	signature, err := crypto.SignMessage(s.key, rand.Reader, tbs, s.hash)
	if err != nil {
		return nil, fmt.Errorf("signing a client certificate: %w", err)
	}
	var whole cryptobyte.Builder
	whole.AddASN1(cryptobyteasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(tbs)
		b.AddBytes(s.algorithm)
		b.AddASN1BitString(signature)
	})
	return whole.Bytes()
}

// subject is who a certificate is for. Kubernetes takes the user from the common name, and groups from organizations.
type subject struct{ user, group string }

// The attributes of subjects, RFC 5280, appendix A.1.
var (
	commonName       = asn1.ObjectIdentifier{2, 5, 4, 3}
	organizationName = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// addAttribute adds one attribute of a subject, as crypto/x509 does it: none if it is empty, and a PrintableString where that
// is possible.
func addAttribute(b *cryptobyte.Builder, kind asn1.ObjectIdentifier, value string) {
	if value == "" {
		return
	}
	tag := cryptobyteasn1.Tag(asn1.TagPrintableString)
	if strings.ContainsFunc(value, func(r rune) bool { return !isPrintable(r) }) {
		tag = cryptobyteasn1.UTF8String
	}
	b.AddASN1(cryptobyteasn1.SET, func(b *cryptobyte.Builder) {
		b.AddASN1(cryptobyteasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(kind)
			b.AddASN1(tag, func(b *cryptobyte.Builder) { b.AddBytes([]byte(value)) })
		})
	})
}

// isPrintable says whether a PrintableString may have a character: X.680, section 41.4.
func isPrintable(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(" '()+,-./:=?", r)
}

// addTime adds a time as RFC 5280, section 4.1.2.5, wants it.
func addTime(b *cryptobyte.Builder, t time.Time) {
	if t.Year() < 2050 {
		b.AddASN1UTCTime(t)
	} else {
		b.AddASN1GeneralizedTime(t)
	}
}
