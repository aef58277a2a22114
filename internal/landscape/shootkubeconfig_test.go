package landscape

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
)

// movedClock is the system's clock, moved ahead.
type movedClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *movedClock) Now() time.Time                  { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *movedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *movedClock) move(d time.Duration)            { c.ahead.Add(int64(d)) }

// newConnection returns a client with a connection of its own.
func newConnection(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Dial = (&net.Dialer{}).DialContext // clients with the same configuration share connections
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestShootKubeconfigs: a kubeconfig for a Shoot expires by the landscape's clock.
func TestShootKubeconfigs(t *testing.T) {
	moved := &movedClock{}
	l, err := Start(t.Context(),
		Config{Name: "expiry", Dir: t.TempDir(), Datastore: "memory", Seeds: 1, ReadyTimeout: 4 * time.Minute, Clock: moved})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	}()
	admin, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	garden, err := shootclient.New(admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	key, workers := shootclient.Key{Project: "dev", Name: "expiry"}, int32(0)
	if _, _, err := garden.Create(ctx, shootclient.Spec{Key: key, Workers: &workers}); err != nil {
		t.Fatal(err)
	}
	if _, err := garden.Wait(ctx, key, nil); err != nil {
		t.Fatal(err)
	}
	t.Run("expires", func(t *testing.T) { expires(ctx, t, garden, key, moved) })
}

// expires moves the landscape's clock: a kubeconfig for a Shoot works until it expires by that clock, and a fresh
// one works afterwards.
func expires(ctx context.Context, t *testing.T, garden *shootclient.Client, key shootclient.Key, moved *movedClock) {
	ask := func() (client func() kubernetes.Interface, expires time.Time) {
		t.Helper()
		kubeconfig, expires, err := garden.Kubeconfig(ctx, key, false, 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		return func() kubernetes.Interface { return newConnection(t, config) }, expires
	}
	check := func(what string, client kubernetes.Interface, works bool) {
		t.Helper()
		_, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if works && err != nil || !works && !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %v", what, err)
		}
	}

	connect, _ := ask()
	open := connect()
	check("a fresh one", open, true)
	moved.move(9 * time.Minute)
	check("a minute before its end", open, true)
	moved.move(2 * time.Minute)
	check("a minute after its end, over the connection that is open", open, false)
	check("a minute after its end", connect(), false)

	again, expires := ask()
	if left := expires.Sub(moved.Now()); left > 10*time.Minute || left < 9*time.Minute {
		t.Errorf("a fresh one expires in %s by the landscape's clock", left)
	}
	check("another fresh one", again(), true)
	moved.move(2 * time.Hour)
	check("the other one, after two hours", again(), false)
}
