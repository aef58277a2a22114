package certificates

import (
	"crypto/x509"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
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
		if valid := ValidFor(certificate, clocktesting.NewFakePassiveClock(now), tc.left); valid != tc.valid {
			t.Errorf("%s: %t", name, valid)
		}
	}
}

// TestByClock: the life of a certificate passes by the clock of a landscape, from when it was issued by the real one.
func TestByClock(t *testing.T) {
	now := time.Now()
	old := &x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(23 * time.Hour)}
	fresh := &x509.Certificate{NotBefore: now.Add(-Backdate), NotAfter: now.Add(24 * time.Hour)}
	clk := landscapeclock.New(landscapeclock.History{
		{Real: now.Add(-2 * time.Hour), Time: now.Add(-2 * time.Hour), Rate: 1},
		{Real: now.Add(-time.Minute), Time: now.Add(48 * time.Hour), Rate: 1},
	}, nil)
	if ValidFor(old, clk, 0) || ByClock(old, clk) != old {
		t.Error("a certificate from before the advance is still valid")
	}
	if !ValidFor(fresh, clk, 23*time.Hour) || ValidFor(fresh, clk, 25*time.Hour) {
		t.Errorf("a new certificate is valid from %s to %s", ByClock(fresh, clk).NotBefore, ByClock(fresh, clk).NotAfter)
	}
}
