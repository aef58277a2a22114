// Package ociregistry opens repositories of OCI registries. It imports nothing of the project.
package ociregistry

import (
	"errors"
	"net"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
)

// MaxManifest is the maximum size of a manifest, in bytes.
const MaxManifest = 1 << 20

// Open returns the repository of a reference, which needs a tag or a digest. The caller sets the client. A registry on
// this machine is accessed without TLS, as Docker does.
func Open(reference string) (*remote.Repository, error) {
	ref, err := registry.ParseReference(reference)
	if err != nil {
		return nil, err
	}
	if ref.Reference == "" {
		return nil, errors.New("it needs a tag or a digest")
	}
	return &remote.Repository{Reference: ref, PlainHTTP: IsLoopback(ref.Host()), MaxMetadataBytes: MaxManifest}, nil
}

// IsLoopback reports whether an address, with or without a port, is on this machine.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
