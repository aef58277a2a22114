package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	testingclock "k8s.io/utils/clock/testing"
)

func load(t *testing.T, dir string, clock *testingclock.FakePassiveClock) *PKI {
	t.Helper()
	p, err := Load(Config{Dir: dir, Name: "garden", Hosts: []string{"127.0.0.1", "localhost"}, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[strings.TrimPrefix(path, dir+"/")] = read(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func changed(before, after map[string]string) (names []string) {
	for name, content := range after {
		if before[name] != content {
			names = append(names, name)
		}
	}
	return names
}

func TestNothingChangesUntilRenewal(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := load(t, dir, clock)
	if _, err := p.Client("admin", "admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	clock.SetTime(clock.Now().Add(250 * 24 * time.Hour))
	load(t, dir, clock)
	if names := changed(before, contents(t, dir)); len(names) > 0 {
		t.Errorf("changed after 250 of 365 days: %v", names)
	}
	for name := range before {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, error %v", name, info.Mode(), err)
		}
	}
}

func TestLeavesAreRenewedAndStillTrusted(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := load(t, dir, clock)
	if _, err := p.Client("admin", "admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	clock.SetTime(clock.Now().Add(300 * 24 * time.Hour))
	if err := p.Renew(); err != nil {
		t.Fatal(err)
	}
	after := contents(t, dir)
	for name, want := range map[string]bool{
		"apiserver.crt": true, "front-proxy-client.crt": true, "clients/admin.crt": true,
		"ca.crt": false, "ca.key": false, "service-account.key": false, "apiserver.key": false, "front-proxy-ca.crt": false,
	} {
		if got := before[name] != after[name]; got != want {
			t.Errorf("%s: changed %t, should be %t", name, got, want)
		}
	}
	verify(t, before["ca.crt"], dir+"/clients/admin.crt", clock.Now().Add(300*24*time.Hour))
}

// TestLeavesOfAClockAheadAreReplaced checks that certificates that are not valid yet are replaced: they were made while the clock
// was ahead.
func TestLeavesOfAClockAheadAreReplaced(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if _, err := load(t, dir, clock).Client("admin", "admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	ca, right := read(t, dir+"/ca.crt"), clock.Now().Add(time.Hour)
	clock.SetTime(right.Add(300 * 24 * time.Hour))
	load(t, dir, clock)
	clock.SetTime(right)
	load(t, dir, clock)
	for _, name := range []string{"apiserver", "clients/admin"} {
		verify(t, ca, dir+"/"+name+".crt", right)
	}
}

func TestAuthorityIsRenewedWithItsKey(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	load(t, dir, clock)
	before := contents(t, dir)
	clock.SetTime(clock.Now().Add(9 * 365 * 24 * time.Hour))
	load(t, dir, clock)
	after := contents(t, dir)
	if before["ca.crt"] == after["ca.crt"] || before["ca.key"] != after["ca.key"] {
		t.Error("after nine of ten years the authority should have a new certificate for the same key")
	}
	// A client that trusts the old certificate while it is valid accepts certificates that were signed after the
	// renewal.
	verify(t, before["ca.crt"], dir+"/apiserver.crt", clock.Now())
}

// TestRenewalWhileCertificatesAreIssued is for the race detector: the authority is renewed while others use it.
func TestRenewalWhileCertificatesAreIssued(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := load(t, dir, clock)
	before := read(t, dir+"/ca.crt")
	var issuing errgroup.Group
	for i := range 4 {
		issuing.Go(func() error {
			name := fmt.Sprintf("user-%d", i)
			if _, err := p.Client(name, name); err != nil {
				return err
			}
			if _, _, err := p.Issue(name, nil, time.Hour); err != nil {
				return err
			}
			if len(p.CAPEM()) == 0 {
				return errors.New("there is no authority")
			}
			return nil
		})
	}
	clock.SetTime(clock.Now().Add(9 * 365 * 24 * time.Hour))
	if err := errors.Join(p.Renew(), issuing.Wait()); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		verify(t, before, fmt.Sprintf("%s/clients/user-%d.crt", dir, i), clock.Now())
	}
}

func verify(t *testing.T, caPEM, certFile string, at time.Time) {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(caPEM)) {
		t.Fatal("no authority")
	}
	cert, _, err := readCert(certFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(
		x509.VerifyOptions{Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		t.Errorf("%s at %s: %v", certFile, at, err)
	}
}

func TestDamage(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   string
	}{
		"clock back":            {func(*testing.T, string) {}, "clock has gone back"},
		"authority's key lost":  {remove("ca.key"), "its key"},
		"authority damaged":     {write("ca.crt"), "reading a certificate authority"},
		"authority key damaged": {write("ca.key"), "reading the key"},
		"token key damaged":     {write("service-account.key"), "service account tokens"},
		"serving cert damaged":  {write("apiserver.crt"), ""},
		"serving key lost":      {remove("apiserver.key"), ""},
		"killed between files":  {remove("ca.crt"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clock := testingclock.NewFakePassiveClock(now)
			load(t, dir, clock)
			test.damage(t, dir)
			if name == "clock back" {
				clock.SetTime(now.Add(-24 * time.Hour))
			}
			_, err := Load(Config{Dir: dir, Name: "garden", Hosts: []string{"127.0.0.1"}, Clock: clock})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error is %v, should have %q", err, test.want)
			}
		})
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func write(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("no PEM"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServingCertificateFollowsHosts(t *testing.T) {
	dir := t.TempDir()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	load(t, dir, clock)
	before := contents(t, dir)
	if _, err := Load(Config{Dir: dir, Name: "garden", Hosts: []string{"192.0.2.1"}, Clock: clock}); err != nil {
		t.Fatal(err)
	}
	if names := changed(before, contents(t, dir)); len(names) != 1 || names[0] != "apiserver.crt" {
		t.Errorf("changed %v", names)
	}
}
