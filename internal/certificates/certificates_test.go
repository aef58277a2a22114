package certificates

import (
	"crypto/x509"
	"testing"
	"time"
)

func TestValidFor(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		from, to, left time.Duration
		valid          bool
	}{
		"valid":               {-time.Hour, time.Hour, 0, true},
		"from now on":         {0, time.Hour, 0, true},
		"not yet":             {time.Second, time.Hour, 0, false},
		"not any more":        {-time.Hour, 0, 0, false},
		"for long enough":     {-time.Hour, time.Hour, time.Minute, true},
		"not for long enough": {-time.Hour, time.Hour, time.Hour, false},
	} {
		certificate := &x509.Certificate{NotBefore: now.Add(tc.from), NotAfter: now.Add(tc.to)}
		if valid := ValidFor(certificate, now, tc.left); valid != tc.valid {
			t.Errorf("%s: %t", name, valid)
		}
	}
}
