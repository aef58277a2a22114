// Package certificates says how long certificates are valid. It imports nothing of the project.
package certificates

import (
	"crypto/x509"
	"time"
)

// ValidFor reports whether a certificate is valid now, and for more than the given time. One that is not valid yet was
// made while the clock was ahead: no client or server accepts it.
func ValidFor(certificate *x509.Certificate, now time.Time, left time.Duration) bool {
	return !now.Before(certificate.NotBefore) && now.Add(left).Before(certificate.NotAfter)
}
