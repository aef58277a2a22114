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

	"github.com/gardenlite/gardenlite/bench/harness"
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
	l, err := startLandscape(ctx, f.algorithm)
	if err != nil {
		return err
	}
	defer l.Remove()
	users, err := l.users(ctx, f.users)
	if err != nil {
		return err
	}
	cases := []harness.Case{
		single(ctx, users[0], "garden: SelfSubjectReview", selfReviewPath, selfReview, 0),
		single(ctx, users[0], "garden: TokenRequest", fmt.Sprintf(tokenPath, harness.Namespace), tokenRequest, 0),
		single(ctx, users[0], "garden: AdminKubeconfigRequest, a key lies ready",
			shootPath+"/adminkubeconfig", kubeconfigRequest, keyPause),
	}
	time.Sleep(30 * time.Second) // the first keys are made ahead some time after the start
	if f.baseline == "" {
		err = harness.Measure("single requests", f.singles, cases...)
	} else {
		err = harness.WithBaseline(ctx, f.baseline, func(s harness.BaselineServer) error {
			client, err := kubernetes.NewForConfig(s.Config)
			if err != nil {
				return err
			}
			const path = "/api/v1/namespaces/default/serviceaccounts"
			if _, err := harness.Create(ctx, client, path, []byte(serviceAccount)); err != nil {
				return err
			}
			return harness.Measure("single requests", f.singles, append([]harness.Case{
				single(ctx, client, "kube-apiserver: SelfSubjectReview", selfReviewPath, selfReview, 0),
				single(ctx, client, "kube-apiserver: TokenRequest", fmt.Sprintf(tokenPath, "default"), tokenRequest, 0),
			}, cases...)...)
		})
	}
	if err != nil {
		return err
	}
	return many(ctx, users, f)
}

// single measures a request, and pauses after it.
func single(ctx context.Context, client kubernetes.Interface, name, path, body string, pause time.Duration) harness.Case {
	return harness.Case{Name: name, Run: func(int) (time.Duration, error) {
		begin := time.Now()
		_, err := harness.Create(ctx, client, path, []byte(body))
		took := time.Since(begin)
		time.Sleep(pause)
		return took, err
	}}
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
	fmt.Println()
	harness.Row(fmt.Sprintf("garden: %d AdminKubeconfigRequests at once (%s), median", f.calls, f.algorithm),
		harness.MS(harness.Median(took)))
	harness.Row("the last one", harness.MS(slices.Max(took)))
	return nil
}
