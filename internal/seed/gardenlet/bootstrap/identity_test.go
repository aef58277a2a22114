package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

const me = "gardener.cloud:system:seed:a"

func inSeed(key client.ObjectKey, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data: map[string][]byte{"kubeconfig": kubeconfig}}
}

func seedWith(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
}

func config(t *testing.T, g *garden, seed client.Client) Config {
	logged := &notes{}
	t.Cleanup(func() {
		if logged.hasSecret() {
			t.Errorf("a secret in the log:\n%s", logged.text.String())
		}
	})
	return Config{
		SeedName: "a", SeedClient: seed, Clock: g.clock, Log: funcr.New(logged.add, funcr.Options{Verbosity: 9}),
		Rand: func() float64 { return 0.5 },
		Durations: Durations{PollFrom: time.Millisecond, PollTo: 5 * time.Millisecond, OwnPoll: time.Millisecond, Approval: testutil.Timeout,
			Refusal: 20 * time.Millisecond, RetryFrom: time.Millisecond, RetryTo: 5 * time.Millisecond},
	}
}

func obtain(t *testing.T, cfg Config) *Identity {
	t.Helper()
	identity, err := Obtain(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(identity.Close)
	return identity
}

// run runs the identity until the test ends or the returned function is called.
func run(t *testing.T, i *Identity) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := i.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func secretOf(t *testing.T, c client.Client, key client.ObjectKey) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(context.WithoutCancel(t.Context()), key, secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return secret
}

func isClean(t *testing.T, c client.Client) bool {
	s := secretOf(t, c, KubeconfigSecret)
	return s != nil && s.Annotations[bootstrappedBy] == "" && len(s.Data) == 1
}

func TestBootstrap(t *testing.T) {
	for name, test := range map[string]struct {
		token   func(*garden) string
		deleted []string
	}{
		"its own bootstrap token": {func(*garden) string { return ownToken },
			[]string{"/api/v1/namespaces/kube-system/secrets/bootstrap-token-4c40cb"}},
		"a token of another ID": {func(*garden) string { return anotherToken }, nil},
		"its ServiceAccount": {func(g *garden) string { return g.accountToken("gardenlet-bootstrap-a") }, []string{
			"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a",
			"/api/v1/namespaces/garden/serviceaccounts/gardenlet-bootstrap-a"}},
		"another ServiceAccount": {func(g *garden) string { return g.accountToken("gardenlet-bootstrap-b") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden(t)
			bootstrap := g.withToken(t, test.token(g))
			seed := seedWith(inSeed(BootstrapKubeconfigSecret, bootstrap))
			g.before = func(r *http.Request) int {
				if stored := secretOf(t, seed, KubeconfigSecret); r.Method == http.MethodDelete && len(stored.Data["kubeconfig"]) == 0 {
					t.Error("deleted before the kubeconfig was stored")
				}
				return 0
			}
			cfg := config(t, g, seed)
			validity := 24 * time.Hour
			cfg.Validity = &validity
			identity := obtain(t, cfg)
			if expires := identity.Expiration(); !expires.Equal(start.Add(life)) {
				t.Errorf("expires %s", expires)
			}
			for name, csr := range g.requests {
				if !strings.HasPrefix(name, "seed-csr-") || csr.Spec.SignerName != "kubernetes.io/kube-apiserver-client" ||
					*csr.Spec.ExpirationSeconds != 86400 ||
					!slices.Equal(csr.Spec.Usages, []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"}) {
					t.Errorf("%s: %+v", name, csr.Spec)
				}
			}
			run(t, identity)
			testutil.EventuallyTrue(t, "clean", func() bool { return isClean(t, seed) })
			if secretOf(t, seed, BootstrapKubeconfigSecret) != nil {
				t.Error("the bootstrap kubeconfig is still in the seed")
			}
			var want []string
			for _, path := range test.deleted {
				want = append(want, me+" "+path)
			}
			if got := g.deletions(); !slices.Equal(got, want) {
				t.Errorf("deleted %q", got)
			}
			kubeconfig, err := identity.Kubeconfig()
			if stored := secretOf(t, seed, KubeconfigSecret).Data["kubeconfig"]; err != nil || string(kubeconfig) != string(stored) {
				t.Errorf("Kubeconfig is not what is stored: %v", err)
			}
		})
	}
}

func TestStored(t *testing.T) {
	g := newGarden(t)
	corrupt := []byte("token: {4c40cb.0123456789abcdef")
	swapped := strings.Replace(string(g.kubeconfig(t, me, start)), "client-key-data: ",
		"client-key-data: "+keyData(g.kubeconfig(t, me, start))+"\n    old: ", 1)
	for name, test := range map[string]struct {
		kubeconfig []byte
		why        string // why the stored kubeconfig is not used
	}{
		"valid":              {g.kubeconfig(t, me, start.Add(-life/2)), ""},
		"in its last hour":   {g.kubeconfig(t, me, start.Add(time.Hour-life)), ""},
		"expired":            {g.kubeconfig(t, me, start.Add(-life)), "until 2026-01-01T00:00:00Z only"},
		"not valid yet":      {g.kubeconfig(t, me, start.Add(time.Minute)), "valid from 2026-01-01T00:01:00Z"},
		"another seed's":     {g.kubeconfig(t, "gardener.cloud:system:seed:b", start), `is that of "gardener.cloud:system:seed:b"`},
		"with another key":   {[]byte(swapped), "do not go together"},
		"with a token":       {g.withToken(t, ownToken), "no client certificate"},
		"corrupt":            {corrupt, "cannot be read as a kubeconfig"},
		"without kubeconfig": {nil, "no kubeconfig in it"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := len(g.called())
			seed := seedWith(inSeed(KubeconfigSecret, test.kubeconfig))
			identity, err := Obtain(t.Context(), config(t, g, seed))
			if made := len(g.called()) - calls; made > 0 {
				t.Errorf("%d requests", made)
			}
			if test.why == "" {
				if err != nil {
					t.Fatal(err)
				}
				identity.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.why) ||
				!strings.Contains(err.Error(), "`gardenlite token create --seed a`") || hasSecret(err.Error()) {
				t.Errorf("error: %v", err)
			}
			cfg := config(t, g, seed)
			cfg.Bootstrap = g.withToken(t, ownToken)
			if expires := obtain(t, cfg).Expiration(); !expires.Equal(start.Add(life)) {
				t.Errorf("bootstrapped again, it expires %s", expires)
			}
		})
	}
}

func keyData(kubeconfig []byte) string {
	_, after, _ := strings.Cut(string(kubeconfig), "client-key-data: ")
	return strings.Fields(after)[0]
}

func TestRefused(t *testing.T) {
	deny := func(kind certificatesv1.RequestConditionType) func(*garden) {
		return func(g *garden) {
			g.decide = func(csr *certificatesv1.CertificateSigningRequest) {
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
					{Type: kind, Reason: "RequestDenied", Message: `the token is for seed "b"`}}
			}
		}
	}
	for name, test := range map[string]struct {
		garden  func(*garden)
		token   string
		message []string
	}{
		"denied":        {deny("Denied"), ownToken, []string{"denied (RequestDenied)", `the token is for seed "b"`, "seed-csr-"}},
		"failed":        {deny("Failed"), ownToken, []string{"could not be signed", `the token is for seed "b"`}},
		"unknown token": {func(*garden) {}, "aaaaaa.0123456789abcdef", []string{"may have expired", "gardenlite token create --seed a"}},
		"not allowed": {func(g *garden) { g.before = func(*http.Request) int { return 403 } }, ownToken,
			[]string{"refuses the bootstrap kubeconfig"}},
		"invalid request": {func(g *garden) { g.before = func(*http.Request) int { return 422 } }, ownToken, []string{"seed-csr-"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden(t, test.garden)
			seed := seedWith()
			cfg := config(t, g, seed)
			cfg.Bootstrap = g.withToken(t, test.token)
			_, err := Obtain(t.Context(), cfg)
			for _, part := range test.message {
				if err == nil || !strings.Contains(err.Error(), part) || hasSecret(err.Error()) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			// It works once the problem is solved, whatever was left behind.
			g.inspect(func() { g.decide, g.before = nil, nil })
			cfg.Bootstrap = g.withToken(t, anotherToken)
			obtain(t, cfg)
		})
	}
}

// TestBootstrapAgain checks that a certificate that the garden refuses is replaced, and kept if the gardenlet cannot be
// bootstrapped.
func TestBootstrapAgain(t *testing.T) {
	g := newGarden(t)
	seed := seedWith()
	cfg := config(t, g, seed)
	cfg.Bootstrap = g.withToken(t, ownToken)
	stored := func() string { return string(secretOf(t, seed, KubeconfigSecret).Data["kubeconfig"]) }
	refused := errors.New("the certificate is refused")
	identity := obtain(t, cfg)
	first := stored()
	if err := identity.BootstrapAgain(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	second := stored()
	if used, err := identity.Kubeconfig(); err != nil || second == first || string(used) != second {
		t.Errorf("the certificate is not replaced (stored: %t), or not used: %v", second != first, err)
	}
	cfg.Bootstrap = nil
	err := obtain(t, cfg).BootstrapAgain(t.Context(), refused)
	if err == nil || !errors.Is(err, refused) || !strings.Contains(err.Error(), "gardenlite token create --seed a") {
		t.Errorf("without a bootstrap kubeconfig: %v", err)
	}
	if stored() != second {
		t.Error("the stored certificate is lost")
	}
}

// TestWaits checks that Obtain retries while the garden does not know the token yet or is not ready.
func TestWaits(t *testing.T) {
	g := newGarden(t)
	var n atomic.Int32
	g.before = func(*http.Request) int { return []int{401, 503, 403, 500, 0, 404, 0}[min(n.Add(1)-1, 6)] }
	cfg := config(t, g, seedWith())
	cfg.Bootstrap = g.withToken(t, ownToken)
	obtain(t, cfg)
	if len(g.requests) != 1 {
		t.Errorf("%d requests", len(g.requests))
	}
}

// undecided lets Obtain time out after its request has reached the garden, and returns the error.
func undecided(t *testing.T, g *garden, cfg Config) error {
	t.Helper()
	for cfg.Durations.Approval = 50 * time.Millisecond; ; cfg.Durations.Approval *= 2 {
		_, err := Obtain(t.Context(), cfg)
		if err == nil {
			t.Fatal("no error")
		}
		requested := false
		g.inspect(func() { requested = len(g.requests) > 0 })
		if requested {
			return err
		}
	}
}

func TestNotDecided(t *testing.T) {
	g := newGarden(t, func(g *garden) { g.decide = func(*certificatesv1.CertificateSigningRequest) {} })
	seed := seedWith()
	cfg := config(t, g, seed)
	cfg.Bootstrap = g.withToken(t, ownToken)
	if err := undecided(t, g, cfg); !strings.Contains(err.Error(), "kubectl certificate approve") {
		t.Errorf("error: %v", err)
	}
	g.inspect(func() {
		for _, csr := range g.requests {
			g.sign(csr, start)
		}
	})
	obtain(t, cfg)
	if len(g.requests) != 1 {
		t.Errorf("the request is not gone on with: %d", len(g.requests))
	}
}

// An earlier request that was denied, deleted, or whose certificate has expired, is no obstacle.
func TestLeftBehind(t *testing.T) {
	for name, left := range map[string]func(g *garden, csr *certificatesv1.CertificateSigningRequest){
		"denied": func(_ *garden, csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied"}}
		},
		"expired": func(g *garden, csr *certificatesv1.CertificateSigningRequest) { g.sign(csr, start.Add(-life)) },
		"cleaned": func(g *garden, csr *certificatesv1.CertificateSigningRequest) { delete(g.requests, csr.Name) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden(t, func(g *garden) { g.decide = func(*certificatesv1.CertificateSigningRequest) {} })
			cfg := config(t, g, seedWith())
			cfg.Bootstrap = g.withToken(t, ownToken)
			_ = undecided(t, g, cfg)
			g.inspect(func() {
				for _, csr := range g.requests {
					left(g, csr)
				}
				g.decide = nil
			})
			obtain(t, cfg)
		})
	}
}

// TestKilled kills the gardenlet before and after each call to the garden or the seed, and starts it again.
func TestKilled(t *testing.T) {
	const most = 100
	for n := int32(1); n < most; n++ {
		g := newGarden(t)
		seed := seedWith(inSeed(BootstrapKubeconfigSecret, g.withToken(t, ownToken)))
		if !killedAt(t, g, seed, n) {
			t.Logf("%d steps", n)
			if n < 15 {
				t.Errorf("only %d steps", n)
			}
			return
		}
		identity := obtain(t, config(t, g, seed))
		stop := run(t, identity)
		testutil.EventuallyTrue(t, fmt.Sprintf("clean after being killed at %d", n), func() bool { return isClean(t, seed) })
		stop()
		if len(g.requests) != 1 {
			t.Errorf("killed at %d: %d requests", n, len(g.requests))
		}
		if got := g.deletions(); secretOf(t, seed, BootstrapKubeconfigSecret) != nil || len(got) == 0 {
			t.Errorf("killed at %d: something is left behind; deleted %q", n, got)
		}
		identity.Close()
	}
	t.Error("it goes on for ever")
}

// killedAt reports whether the gardenlet was killed at step n, before it was done.
func killedAt(t *testing.T, g *garden, seed client.WithWatch, n int32) bool {
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var steps atomic.Int32
	var killed atomic.Bool
	step := func() bool { // returns false if the gardenlet is dead
		if steps.Add(1) >= n {
			killed.Store(true)
			kill()
		}
		return ctx.Err() == nil
	}
	around := func(do func() error) error {
		if !step() {
			return context.Canceled
		}
		if err := do(); err != nil {
			return err
		}
		if !step() {
			return context.Canceled
		}
		return nil
	}
	g.before = func(*http.Request) int {
		if !step() {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	g.after = func(*http.Request) { step() }
	defer g.inspect(func() { g.before, g.after = nil, nil })
	cfg := config(t, g, interceptor.NewClient(seed, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			return around(func() error { return c.Create(ctx, obj, o...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			return around(func() error { return c.Update(ctx, obj, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return around(func() error { return c.Delete(ctx, obj, o...) })
		},
	}))
	identity, err := Obtain(ctx, cfg)
	if err != nil {
		return true
	}
	defer identity.Close()
	done := make(chan struct{})
	go func() { defer close(done); identity.Run(ctx) }()
	testutil.EventuallyTrue(t, "killed or clean", func() bool { return ctx.Err() != nil || isClean(t, seed) })
	kill()
	<-done // the step after the last deletion counts
	return killed.Load()
}

// Two gardenlets of a seed that start at the same time get one certificate.
func TestTwoAtOnce(t *testing.T) {
	g := newGarden(t)
	seed := seedWith(inSeed(BootstrapKubeconfigSecret, g.withToken(t, ownToken)))
	results := make(chan error, 2)
	for range 2 {
		cfg := config(t, g, seed)
		go func() {
			identity, err := Obtain(t.Context(), cfg)
			if err == nil {
				identity.Close()
			}
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if len(g.requests) != 1 {
		t.Errorf("%d requests", len(g.requests))
	}
}
