package bootstrap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// advance steps the clock after waiting for a timer, so that no step is lost.
func advance(t *testing.T, g *garden, d time.Duration) {
	t.Helper()
	testutil.EventuallyTrue(t, "waiting", g.clock.HasWaiters)
	g.clock.Step(d)
}

func TestRotationTime(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 80 * time.Hour, 0.5: 85 * time.Hour, 0.99: 89*time.Hour + 54*time.Minute} {
		g := newGarden(t)
		cfg := config(t, g, seedWith(inSeed(KubeconfigSecret, g.kubeconfig(t, me, start))))
		cfg.Rand = func() float64 { return random }
		if _, at := obtain(t, cfg).state(); at.Sub(start).Round(time.Second) != want {
			t.Errorf("%g: rotated at %s", random, at.Sub(start))
		}
	}
}

func TestRotates(t *testing.T) {
	g := newGarden(t)
	seed := seedWith(inSeed(KubeconfigSecret, g.kubeconfig(t, me, start)))
	identity := obtain(t, config(t, g, seed))
	told := make(chan time.Time, 1)
	identity.Observe(func(expiration time.Time, err error) {
		if err != nil {
			t.Error(err)
		}
		told <- expiration
	})
	run(t, identity)
	advance(t, g, 85*time.Hour-time.Second)
	advance(t, g, 0)
	if n := len(g.called()); n > 0 {
		t.Errorf("%d requests before it was time", n)
	}
	advance(t, g, time.Second)
	if expiration := <-told; !expiration.Equal(start.Add(85*time.Hour+life)) || !identity.Expiration().Equal(expiration) {
		t.Errorf("expires %s", expiration)
	}
	for name, csr := range g.requests {
		if csr.Spec.Username != me || !strings.HasPrefix(name, "seed-csr-") {
			t.Errorf("%s by %s", name, csr.Spec.Username)
		}
	}
	if len(g.requests) != 1 || !isClean(t, seed) {
		t.Errorf("%d requests", len(g.requests))
	}
	again := obtain(t, config(t, g, seed))
	if !again.Expiration().Equal(identity.Expiration()) {
		t.Errorf("what is stored expires %s", again.Expiration())
	}
}

func TestRotationFails(t *testing.T) {
	g := newGarden(t)
	g.decide = func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied", Message: "not today"}}
	}
	identity := obtain(t, config(t, g, seedWith(inSeed(KubeconfigSecret, g.kubeconfig(t, me, start)))))
	failed, done := make(chan error, 100), make(chan time.Time, 1)
	identity.Observe(func(expiration time.Time, err error) {
		if err != nil {
			failed <- err
			g.inspect(func() { g.decide = nil })
			return
		}
		done <- expiration
	})
	run(t, identity)
	advance(t, g, 85*time.Hour)
	if err := <-failed; !strings.Contains(err.Error(), "not today") || hasSecret(err.Error()) {
		t.Error(err)
	}
	if expiration := <-done; !expiration.Equal(start.Add(85*time.Hour + life)) {
		t.Errorf("expires %s", expiration)
	}
}

func TestRenewal(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *garden, client.Client){
		"asked for by annotation": func(t *testing.T, _ *garden, seed client.Client) {
			secret := secretOf(t, seed, KubeconfigSecret)
			secret.Annotations = map[string]string{"gardener.cloud/operation": "renew"}
			if err := seed.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		},
		"by another gardenlet of the seed": func(t *testing.T, g *garden, seed client.Client) {
			secret := secretOf(t, seed, KubeconfigSecret)
			secret.Data["kubeconfig"] = g.kubeconfig(t, me, start.Add(10*time.Second))
			if err := seed.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden(t)
			seed := seedWith(inSeed(KubeconfigSecret, g.kubeconfig(t, me, start)))
			identity := obtain(t, config(t, g, seed))
			run(t, identity)
			testutil.EventuallyTrue(t, "waiting", g.clock.HasWaiters)
			change(t, g, seed)
			g.clock.Step(10 * time.Second)
			testutil.EventuallyTrue(t, "new certificate", func() bool { return identity.Expiration().Equal(start.Add(life + 10*time.Second)) })
			testutil.EventuallyTrue(t, "waiting", g.clock.HasWaiters)
			if secret := secretOf(t, seed, KubeconfigSecret); secret.Annotations["gardener.cloud/operation"] != "" {
				t.Error("the annotation is still there")
			}
		})
	}
}

// If the clock jumps, or the garden is down for too long, the certificate has expired and cannot be used for rotation.
func TestExpiresWhileRunning(t *testing.T) {
	g := newGarden(t)
	seed := seedWith(inSeed(KubeconfigSecret, g.kubeconfig(t, me, start)))
	identity := obtain(t, config(t, g, seed))
	failed := make(chan error, 1000)
	identity.Observe(func(_ time.Time, err error) {
		if err != nil {
			failed <- err
		}
	})
	run(t, identity)
	advance(t, g, life)
	if err := <-failed; !strings.Contains(err.Error(), "gardenlite token create --seed a") {
		t.Error(err)
	}
	if err := seed.Create(t.Context(), inSeed(BootstrapKubeconfigSecret, g.withToken(t, ownToken))); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "bootstrapped again", func() bool { return identity.Expiration().Equal(start.Add(2 * life)) })
	testutil.EventuallyTrue(t, "clean", func() bool { return isClean(t, seed) })
	if got := g.deletions(); len(got) != 1 {
		t.Errorf("deleted %q", got)
	}
}

// A signer whose certificates are already due for rotation does not make the gardenlet request them in a loop.
func TestSignerWithAnotherClock(t *testing.T) {
	g := newGarden(t)
	g.decide = func(csr *certificatesv1.CertificateSigningRequest) { g.sign(csr, g.clock.Now().Add(time.Hour-life)) }
	cfg := config(t, g, seedWith())
	cfg.Bootstrap = g.withToken(t, ownToken)
	if _, at := obtain(t, cfg).state(); !at.Equal(start.Add(30 * time.Minute)) {
		t.Errorf("rotated at %s", at)
	}
}

// TestGardenMoved checks that the configured address of the garden overrides the stored one.
func TestGardenMoved(t *testing.T) {
	g := newGarden(t)
	stored := strings.Replace(string(g.kubeconfig(t, me, start)), g.URL, "https://127.0.0.1:1", 1)
	cfg := config(t, g, seedWith(inSeed(KubeconfigSecret, []byte(stored))))
	cfg.Garden = &rest.Config{Host: g.URL, BearerToken: ownToken, TLSClientConfig: rest.TLSClientConfig{CAData: func() []byte {
		config, err := parseKubeconfig([]byte(stored))
		if err != nil {
			t.Fatal(err)
		}
		return config.CAData
	}()}}
	if config := obtain(t, cfg).RESTConfig(); config.Host != g.URL || config.BearerToken != "" {
		t.Errorf("%s", config.Host)
	}
}

// TestRotatesUnderLoad rotates while requests are sent and a watch runs. No request may fail, the watch must continue, and
// the old connections must be closed.
func TestRotatesUnderLoad(t *testing.T) {
	for name, major := range map[string]int{"HTTP/2": 2, "HTTP/1.1": 1} {
		t.Run(name, func(t *testing.T) { rotatesUnderLoad(t, major) })
	}
}

func rotatesUnderLoad(t *testing.T, major int) {
	const rotations = 20
	g := newGarden(t, func(g *garden) { g.EnableHTTP2 = major == 2 })
	seed := seedWith(inSeed(KubeconfigSecret, g.kubeconfig(t, me, start)))
	identity := obtain(t, config(t, g, seed))
	run(t, identity)
	httpClient, err := rest.HTTPClientFor(identity.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	event, endWatch := watch(t, httpClient, g, major)
	load, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var sent [8]atomic.Int64
	for i := range sent {
		group.Go(func() {
			for load.Err() == nil {
				if err := get(httpClient, g.URL+"/load"); err != nil {
					t.Error(err)
					return
				}
				sent[i].Add(1)
			}
		})
	}
	for range rotations {
		before := identity.Expiration()
		advance(t, g, 85*time.Hour)
		testutil.EventuallyTrue(t, "rotated", func() bool { return identity.Expiration().After(before) })
		// Before the clock jumps, no request may use the old certificate any more, which will have expired by then.
		for i := range sent {
			since := sent[i].Load()
			testutil.EventuallyTrue(t, "requests since", func() bool { return sent[i].Load() >= since+5 || t.Failed() })
		}
	}
	event()
	stop()
	group.Wait()
	open := func() (n int) { g.inspect(func() { n = len(g.conns) }); return n }
	// The only old connection left is that of the watch.
	testutil.EventuallyTrue(t, "the old connections are closed but the watch's", func() bool { return major == 1 || open() == 2 })
	if err := endWatch(); err != nil {
		t.Error(err)
	}
	testutil.EventuallyTrue(t, "the old connections are closed", func() bool {
		generations, conns := inUse(identity.transport)
		return generations == 1 && open() == conns && (major == 1 || conns == 1)
	})
	if serial := serialOf(t, httpClient, g.URL); serial != rotations+1 {
		t.Errorf("the certificate is number %d", serial)
	}
	identity.Close()
	testutil.EventuallyTrue(t, "all connections are closed", func() bool { return open() == 0 })
	if err := get(httpClient, g.URL+"/load"); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
	if n := len(identity.transport.generations); n > 0 {
		t.Errorf("%d generations", n)
	}
}

func inUse(t *transport) (generations, conns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.mu.Lock()
	defer t.current.mu.Unlock()
	return len(t.generations), len(t.current.conns)
}

func get(c *http.Client, url string) error {
	response, err := c.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func serialOf(t *testing.T, c *http.Client, url string) (serial int64) {
	t.Helper()
	response, err := c.Get(url + "/load")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, digit := range strings.TrimSpace(string(body)) {
		serial = serial*10 + int64(digit-'0')
	}
	return serial
}

// watch starts a watch. It returns functions that await an event and that end the watch.
func watch(t *testing.T, c *http.Client, g *garden, major int) (event func(), end func() error) {
	t.Helper()
	response, err := c.Get(g.URL + "/watch")
	if err != nil {
		t.Fatal(err)
	}
	if response.ProtoMajor != major {
		t.Errorf("HTTP/%d", response.ProtoMajor)
	}
	return func() {
		t.Helper()
		select {
		case g.events <- struct{}{}:
		case <-time.After(testutil.Timeout):
			t.Error("the watch has stopped")
			return
		}
		if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil {
			t.Errorf("the watch ended: %v", err)
		}
	}, response.Body.Close
}

// Clients of client-go and controller-runtime can be made of the configuration.
func TestRESTConfig(t *testing.T) {
	g := newGarden(t)
	identity := obtain(t, config(t, g, seedWith(inSeed(KubeconfigSecret, g.kubeconfig(t, me, start)))))
	restConfig := identity.RESTConfig()
	restConfig.QPS = -1
	c, err := client.New(restConfig, client.Options{Mapper: nil})
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(csr), csr); err == nil {
		t.Error("there is no such object")
	}
	if calls := g.called(); len(calls) == 0 || slices.Contains(calls, "") {
		t.Errorf("requests %q", calls)
	}
	if identity.transport.TLSClientConfig() == nil {
		t.Error("no TLS configuration")
	}
	identity.Close()
	if identity.transport.TLSClientConfig() != nil {
		t.Error("a TLS configuration after Close")
	}
}
