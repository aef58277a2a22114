package shootcare

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func newCache(t *testing.T) (*shootaccess.Cache, *server, *clocktesting.FakeClock, client.Client) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	server := newServer(t, namespace, clock, 24*time.Hour)
	seed := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(server.Objects...).WithStatusSubresource(&corev1.Service{}).Build()
	return &shootaccess.Cache{Seed: seed, Clock: clock}, server, clock, seed
}

func ask(t *testing.T, cache *shootaccess.Cache) *shootaccess.Cluster {
	t.Helper()
	cluster, err := cache.Get(t.Context(), key, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func open(t *testing.T, server *server, want int) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		if n := server.Open(); n != want {
			return fmt.Errorf("%d connections are open, want %d", n, want)
		}
		return nil
	})
}

func TestAsksAsTheGardenlet(t *testing.T) {
	cache, server, _, _ := newCache(t)
	first := ask(t, cache)
	if ask(t, cache) != first {
		t.Error("each time there is another client")
	}
	if users := server.Users(); len(users) != 1 || users["gardener.cloud:gardenlet system:masters"] != 2 {
		t.Errorf("asked as %v", users)
	}
	open(t, server, 1)
	cache.Drop(key)
	open(t, server, 0)
}

func TestRenews(t *testing.T) {
	cache, server, clock, _ := newCache(t)
	first := ask(t, cache)
	clock.Step(shootaccess.Life/2 + time.Second)
	if ask(t, cache) == first {
		t.Error("half of the certificate's life is over, and there is no new one")
	}
	open(t, server, 1)
	cache.Close()
	open(t, server, 0)
	if _, err := cache.Get(t.Context(), key, namespace); err == nil {
		t.Error("a cache that is closed makes clients")
	}
}

func TestWithoutEndpoint(t *testing.T) {
	cache, server, clock, seed := newCache(t)
	service := server.Objects[0].(*corev1.Service).DeepCopy()
	service.Status = corev1.ServiceStatus{}
	service.ResourceVersion = ""
	if err := seed.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if _, err := shootaccess.New(t.Context(), seed, namespace, shootaccess.User, clock); !errors.Is(err, shootaccess.ErrNoEndpoint) {
		t.Errorf("without an address: %v", err)
	}
	if _, err := cache.Get(t.Context(), key, "other"); !errors.Is(err, shootaccess.ErrNoEndpoint) {
		t.Errorf("without a Service: %v", err)
	}
}
