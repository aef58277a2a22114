// Command kubeconfig measures requests for kubeconfigs of a Shoot (shoots/adminkubeconfig): single ones, for which a
// private key lies ready, beside other requests that store nothing, to the same garden and to a bare kube-apiserver with
// etcd; and many at once. It reports, and asserts only that all succeed and that no two have the same key.
//
//	go run ./kubeconfig -gardenlite ../bin/gardenlite -baseline ../bin/baseline
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const (
	kubeconfigRequest = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"AdminKubeconfigRequest",` +
		`"spec":{"expirationSeconds":3600}}`
	selfReview     = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	selfReviewPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	tokenRequest   = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`
	tokenPath      = "/api/v1/namespaces/%s/serviceaccounts/default/token"
	serviceAccount = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`
	// keyPause is the pause after a request in which the next key gets ready.
	keyPause = 2 * time.Second
)

type flags struct {
	baseline, algorithm   string
	calls, users, singles int
}

func main() {
	var f flags
	flag.StringVar(&f.baseline, "baseline", "../bin/baseline", "folder with kube-apiserver and etcd; \"\" leaves them out")
	flag.StringVar(&f.algorithm, "algorithm", "rsa", "algorithm of the keys: rsa or ecdsa")
	flag.IntVar(&f.calls, "calls", 500, "how many requests at once")
	flag.IntVar(&f.users, "users", 10, "how many users make them, each with a client of its own")
	flag.IntVar(&f.singles, "singles", 20, "how many single requests of each kind, one after another")
	harness.Main(func(ctx context.Context) error { return bench(ctx, f) })
}

func bench(ctx context.Context, f flags) error {
	if f.baseline != "" {
		if err := harness.WithBaseline(ctx, f.baseline, func(s harness.BaselineServer) error { return measureBaseline(ctx, s, f) }); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	l, err := startLandscape(ctx, f.algorithm)
	if err != nil {
		return err
	}
	defer l.Remove()
	users, err := l.users(ctx, f.users)
	if err != nil {
		return err
	}
	for _, other := range []struct{ name, path, body string }{
		{"garden: SelfSubjectReview", selfReviewPath, selfReview},
		{"garden: TokenRequest", fmt.Sprintf(tokenPath, "garden-dev"), tokenRequest},
	} {
		if err := single(ctx, users[0], f.singles, other.name, other.path, other.body, 0); err != nil {
			return err
		}
	}
	time.Sleep(30 * time.Second) // the first keys are made ahead some time after the start
	if err := single(ctx, users[0], f.singles, "garden: AdminKubeconfigRequest, a key lies ready",
		shootPath+"/adminkubeconfig", kubeconfigRequest, keyPause); err != nil {
		return err
	}
	return many(ctx, users, f)
}

func measureBaseline(ctx context.Context, s harness.BaselineServer, f flags) error {
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	if _, err := harness.Create(ctx, client, "/api/v1/namespaces/default/serviceaccounts", []byte(serviceAccount)); err != nil {
		return err
	}
	if err := single(ctx, client, f.singles, "kube-apiserver: SelfSubjectReview", selfReviewPath, selfReview, 0); err != nil {
		return err
	}
	return single(ctx, client, f.singles, "kube-apiserver: TokenRequest", fmt.Sprintf(tokenPath, "default"), tokenRequest, 0)
}

// single prints how long requests take that are made one after another. The first one, which opens the connection, does
// not count.
func single(ctx context.Context, client kubernetes.Interface, count int, name, path, body string, pause time.Duration) error {
	var took []time.Duration
	for range count + 1 {
		begin := time.Now()
		if _, err := harness.Create(ctx, client, path, []byte(body)); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
		time.Sleep(pause)
	}
	report(name, took[1:])
	return nil
}

// many prints how long simultaneous requests for kubeconfigs take, with the retries of client-go if the server asks for them.
func many(ctx context.Context, users []kubernetes.Interface, f flags) error {
	took, keys := make([]time.Duration, f.calls), make([]string, f.calls)
	begin := time.Now()
	if err := harness.InParallel(ctx, f.calls, f.calls, func(ctx context.Context, i int) error {
		answer, err := harness.Create(ctx, users[i%len(users)], shootPath+"/adminkubeconfig", []byte(kubeconfigRequest))
		took[i] = time.Since(begin)
		if err == nil {
			keys[i], err = key(answer)
		}
		return err
	}); err != nil {
		return err
	}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != f.calls {
		return errors.New("two answers have the same key")
	}
	report(fmt.Sprintf("garden: %d AdminKubeconfigRequests at once (%s)", f.calls, f.algorithm), took)
	return nil
}

func report(name string, took []time.Duration) {
	fmt.Printf("%-55s median %11s, max %11s\n", name, harness.MS(harness.Median(took)), harness.MS(slices.Max(took)))
}
