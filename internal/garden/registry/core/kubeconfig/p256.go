package kubeconfig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// p256Form is what x509 writes around keys of the curve P-256. It writes that anew, by reflection, for each key.
type p256Form struct {
	beforePublic                              []byte
	beforePrivate, betweenPrivate, endPrivate []byte
}

// p256 is the form, read off keys that x509 has written.
var p256 = sync.OnceValues(func() (*p256Form, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	scalar, point, err := p256Bytes(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	f := &p256Form{}
	var found [3]bool
	f.beforePublic, found[0] = bytes.CutSuffix(public, point)
	f.beforePrivate, f.betweenPrivate, found[1] = bytes.Cut(private, scalar)
	f.betweenPrivate, f.endPrivate, found[2] = bytes.Cut(f.betweenPrivate, point)
	if slices.Contains(found[:], false) {
		return nil, errors.New("encoding a key: it is not where it should be")
	}
	return f, nil
})

// p256Bytes are what is of a key's own in what x509 writes of it.
func p256Bytes(key *ecdsa.PrivateKey) (scalar, point []byte, err error) {
	if scalar, err = key.Bytes(); err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	if point, err = key.PublicKey.Bytes(); err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	return scalar, point, nil
}

// marshalPrivate is x509.MarshalECPrivateKey for a key of P-256.
func (f *p256Form) marshalPrivate(key *ecdsa.PrivateKey) ([]byte, error) {
	scalar, point, err := p256Bytes(key)
	if err != nil {
		return nil, err
	}
	return slices.Concat(f.beforePrivate, scalar, f.betweenPrivate, point, f.endPrivate), nil
}

// marshalPublic is x509.MarshalPKIXPublicKey.
func marshalPublic(public crypto.PublicKey) ([]byte, error) {
	if key, ok := public.(*ecdsa.PublicKey); ok && key.Curve == elliptic.P256() {
		form, err := p256()
		if err != nil {
			return nil, err
		}
		point, err := key.Bytes()
		if err != nil {
			return nil, fmt.Errorf("encoding a key: %w", err)
		}
		return slices.Concat(form.beforePublic, point), nil
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return der, nil
}
