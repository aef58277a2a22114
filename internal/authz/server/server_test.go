package server

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/webhook"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func TestMayDelete(t *testing.T) {
	g := graph.New()
	vertex := func(kind graph.Kind, namespace, name string) graph.Vertex {
		return graph.Vertex{Kind: kind, Namespace: namespace, Name: name}
	}
	seedA, seedB := vertex(graph.KindSeed, "", "a"), vertex(graph.KindSeed, "", "b")
	g.Set(seedA, []graph.Edge{
		{From: vertex(graph.KindSecret, "garden", "of-a"), To: seedA}, {From: vertex(graph.KindSecret, "garden", "shared"), To: seedA},
		{From: vertex(graph.KindConfigMap, "garden", "of-a"), To: seedA}, {From: vertex(graph.KindInternalSecret, "garden", "of-a"), To: seedA},
		{From: vertex(graph.KindShootState, "garden", "of-a"), To: seedA},
	})
	g.Set(seedB, []graph.Edge{{From: vertex(graph.KindSecret, "garden", "shared"), To: seedB}})
	synced := true
	a := access{authorizer: authorizer.New(g, authorizer.ReadsSeed), graph: g, seeds: func() []string { return []string{"a", "b", "c"} },
		synced: func() bool { return synced }}

	gardenlet := authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"}}
	extension := authenticationv1.UserInfo{Username: "system:serviceaccount:seed-a:extension-x",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-a"}}
	gardener := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: "core.gardener.cloud", Resource: resource}
	}
	core := func(resource string) schema.GroupResource { return schema.GroupResource{Resource: resource} }
	for _, test := range []struct {
		resource schema.GroupResource
		name     string
		want     bool
		why      string
	}{
		{core("secrets"), "of-a", true, ""},
		{core("configmaps"), "of-a", true, ""},
		{gardener("internalsecrets"), "of-a", true, ""},
		{gardener("shootstates"), "of-a", true, ""},
		{core("secrets"), "shared", false, "another seed"},
		{core("secrets"), "absent", false, "no path"},
		{core("configmaps"), "shared", false, "no path"},
		{gardener("shootstates"), "absent", false, "no path"},
	} {
		for _, who := range []authenticationv1.UserInfo{gardenlet, extension} {
			got, reason, err := a.MayDelete(t.Context(), who, test.resource, "garden", test.name)
			want, why := test.want, test.why
			if who.Username == extension.Username {
				want, why = false, "no rule"
			}
			if err != nil || got != want || !strings.Contains(reason, why) {
				t.Errorf("%s deletes %s %s: %t, %q, %v", who.Username, test.resource, test.name, got, reason, err)
			}
		}
	}
	if got, _, err := a.MayDelete(t.Context(), authenticationv1.UserInfo{Username: "admin"}, core("secrets"), "garden",
		"of-a"); got || err != nil {
		t.Errorf("another user: %t, %v", got, err)
	}
	if got, _, err := a.MayDelete(t.Context(), gardenlet, core("namespaces"), "", "of-a"); got || err == nil {
		t.Errorf("another resource: %t, %v", got, err)
	}
	synced = false
	if got, _, err := a.MayDelete(t.Context(), gardenlet, core("secrets"), "garden", "of-a"); got || err == nil {
		t.Errorf("while the graph is not synced: %t, %v", got, err)
	}
}

func TestGraphURL(t *testing.T) {
	for _, test := range []struct {
		ip, token, want string
		debug           bool
	}{
		{"127.0.0.1", "0123456789abcdef", "https://127.0.0.1:4711/debug/resource-dependency-graph?token=0123456789abcdef", true},
		{"127.0.0.1", "a&b=c 0123456789", "https://127.0.0.1:4711/debug/resource-dependency-graph?token=a%26b%3Dc+0123456789", true},
		{"0.0.0.0", "0123456789abcdef", "https://localhost:4711/debug/resource-dependency-graph?token=0123456789abcdef", true},
		{"::", "0123456789abcdef", "https://localhost:4711/debug/resource-dependency-graph?token=0123456789abcdef", true},
		{"::1", "0123456789abcdef", "https://[::1]:4711/debug/resource-dependency-graph?token=0123456789abcdef", true},
		{"127.0.0.1", "0123456789abcdef", "", false},
	} {
		c := &Controller{cfg: Config{Listener: at{net.TCPAddr{IP: net.ParseIP(test.ip), Port: 4711}}, Debug: test.debug}, token: test.token}
		got := c.GraphURL()
		if got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
		if parsed, err := url.Parse(got); err != nil || test.debug && parsed.Query().Get(webhook.TokenParameter) != test.token {
			t.Errorf("%s: %v", got, err)
		}
	}
}

type at struct{ addr net.TCPAddr }

func (at) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (at) Close() error              { return nil }
func (a at) Addr() net.Addr          { return &a.addr }

func TestAloneConfigIsRefused(t *testing.T) {
	for want, c := range map[string]StandaloneConfig{
		"say which garden":     {BindAddress: "127.0.0.1"},
		"not an IP address":    {Kubeconfig: "x", BindAddress: "localhost"},
		"--advertise-address":  {Kubeconfig: "x", BindAddress: "0.0.0.0"},
		"go together":          {Kubeconfig: "x", BindAddress: "127.0.0.1", CertFile: "x"},
		"needs that":           {Kubeconfig: "x", BindAddress: "127.0.0.1", CAFile: "x"},
		"allowed on loopback":  {Kubeconfig: "x", BindAddress: "192.0.2.1", CertFile: "x", KeyFile: "x"},
		"between 1 and 65535":  {Kubeconfig: "x", BindAddress: "127.0.0.1", Port: 65536},
		"--kubeconfig: stat x": {Kubeconfig: "x", BindAddress: "127.0.0.1"},
	} {
		_, err := NewStandalone(t.Context(), c)
		var usageErr *usage.Error
		if !errors.As(err, &usageErr) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// TestAloneTakesTheSamePort checks that the controller reuses the port of the last start, which is in the API server's
// files.
func TestAloneTakesTheSamePort(t *testing.T) {
	a := &Standalone{cfg: StandaloneConfig{Dir: t.TempDir(), BindAddress: "127.0.0.1"}}
	listen := func() net.Listener {
		t.Helper()
		listener, err := a.listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return listener
	}
	first := listen()
	other := listen() // while the first listener uses its port
	if first.Addr().String() == other.Addr().String() {
		t.Errorf("both listen on %s", first.Addr())
	}
	_ = other.Close()
	if again := listen(); again.Addr().String() != other.Addr().String() {
		t.Errorf("on %s, and before on %s", again.Addr(), other.Addr())
	}
}

// TestListensAgain checks that a controller that takes the place of one that has ended listens at the same address.
func TestListensAgain(t *testing.T) {
	embedded, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	port := embedded.Port()
	for range 3 {
		listener, err := embedded.take()
		if err != nil {
			t.Fatal(err)
		}
		if embedded.Port() != port || listener.Addr().String() != embedded.Services()["garden/"+ServiceName].Host {
			t.Errorf("it listens at %s, and the Service is %v; the first port was %d", listener.Addr(), embedded.Services(), port)
		}
		if err := listener.Close(); err != nil { // as a controller does when it ends
			t.Fatal(err)
		}
	}
}

// TestListensAfterFailure checks that a controller that could not be made does not keep the address from the next one.
func TestListensAfterFailure(t *testing.T) {
	embedded, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pki.Load(pki.Config{Dir: t.TempDir(), Name: "garden", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	unreachable := &rest.Config{Host: "https://127.0.0.1:1"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the webhook cannot be installed
	for range 2 {
		if _, err := embedded.New(ctx, Config{REST: unreachable, Log: logr.Discard()}, unreachable, p); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v; want %v", err, context.Canceled)
		}
	}
}
