// Package certificates says how long certificates are valid for a landscape. They are issued by the real clock, so that clients that do
// not know the landscape's trust them, and their life passes by the landscape's.
package certificates

import (
	"crypto/x509"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// Backdate is how long before they are issued certificates are valid, those of Kubernetes' signer too: clocks that are a little behind
// accept a new one. From it follows when one was issued.
const Backdate = 5 * time.Minute

// ByClock returns a certificate with the time for which it is valid by the clock of a landscape. Its signature is that of the other
// time, so it is for reading only.
func ByClock(certificate *x509.Certificate, clk clock.PassiveClock) *x509.Certificate {
	issued := certificate.NotBefore.Add(Backdate)
	moved := landscapeclock.At(clk, issued).Sub(issued)
	if moved == 0 {
		return certificate
	}
	here := *certificate
	here.NotBefore, here.NotAfter = certificate.NotBefore.Add(moved), certificate.NotAfter.Add(moved)
	return &here
}

// ValidFor reports whether a certificate is valid now, and for more than the given time. One that is not valid yet was
// made while the clock was ahead: no client or server accepts it.
func ValidFor(certificate *x509.Certificate, clk clock.PassiveClock, left time.Duration) bool {
	now, here := clk.Now(), ByClock(certificate, clk)
	return !now.Before(here.NotBefore) && now.Add(left).Before(here.NotAfter)
}
