package security

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// The shortest and the longest validity of tokens, whatever a request asks for, as in Gardener.
const (
	MinTokenLife = time.Hour
	MaxTokenLife = 48 * time.Hour
)

// algorithm is the signature algorithm of keys on the curve P-256.
const algorithm = "ES256"

// Issuer signs the tokens of WorkloadIdentities.
type Issuer struct {
	// URL is the issuer in the tokens. Below it are the documents with which other parties verify them.
	URL string
	// Key is on the curve P-256.
	Key   *ecdsa.PrivateKey
	Clock clock.PassiveClock
}

// claims are the claims of a token.
type claims struct {
	Issuer    string        `json:"iss"`
	Subject   string        `json:"sub"`
	Audience  []string      `json:"aud"`
	Expiry    int64         `json:"exp"`
	NotBefore int64         `json:"nbf"`
	IssuedAt  int64         `json:"iat"`
	ID        string        `json:"jti"`
	Gardener  gardenerClaim `json:"gardener.cloud"`
}

// issue returns a signed token and its expiration time.
func (i *Issuer) issue(subject string, audience []string, seconds int64, claim gardenerClaim) (string, time.Time, error) {
	now := landscapeclock.Real(i.Clock)
	life := time.Duration(min(seconds, int64(MaxTokenLife/time.Second))) * time.Second
	expiry := now.Add(max(life, MinTokenLife)).Truncate(time.Second)
	token, err := i.sign(claims{
		Issuer: i.URL, Subject: subject, Audience: audience, Expiry: expiry.Unix(), NotBefore: now.Unix(), IssuedAt: now.Unix(),
		ID: string(uuid.NewUUID()), Gardener: claim,
	})
	return token, expiry, err
}

// sign returns a JSON Web Token in its compact form.
func (i *Issuer) sign(c claims) (string, error) {
	id, err := i.keyID()
	if err != nil {
		return "", err
	}
	header, err := json.Marshal(map[string]string{"alg": algorithm, "kid": id})
	if err != nil {
		return "", fmt.Errorf("encoding the header of a token: %w", err)
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encoding the claims of a token: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.Key, digest[:])
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	signature := make([]byte, 64) // r and s, of 32 bytes each
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// keyID returns the ID of the key, computed as Kubernetes does for its service account tokens.
func (i *Issuer) keyID() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(i.Key.Public())
	if err != nil {
		return "", fmt.Errorf("encoding the public key of the issuer of tokens: %w", err)
	}
	digest := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(digest[:]), nil
}

// The paths of the documents below the issuer's URL.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/jwks"
)

// Documents returns the documents of OpenID Connect discovery, by their path below the issuer's URL.
func (i *Issuer) Documents() (map[string][]byte, error) {
	id, err := i.keyID()
	if err != nil {
		return nil, err
	}
	point, err := i.Key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encoding the public key of the issuer of tokens: %w", err)
	}
	x, y := point[1:33], point[33:] // after the byte that marks an uncompressed point
	discovery, errDiscovery := json.Marshal(map[string]any{
		"issuer": i.URL, "jwks_uri": i.URL + KeysPath, "response_types_supported": []string{"id_token"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{algorithm},
	})
	keys, errKeys := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": algorithm, "kid": id,
		"x": base64.RawURLEncoding.EncodeToString(x), "y": base64.RawURLEncoding.EncodeToString(y),
	}}})
	return map[string][]byte{DiscoveryPath: discovery, KeysPath: keys}, errors.Join(errDiscovery, errKeys)
}
