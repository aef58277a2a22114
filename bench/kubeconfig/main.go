// Command kubeconfig measures what many requests for kubeconfigs of a Shoot (shoots/adminkubeconfig) cost that come at
// once, beside other requests that store nothing: to the same garden, and to a bare kube-apiserver with etcd, and beside a
// plain server of Go's net/http, all in one run.
//
//	go run ./kubeconfig -gardenlite ../bin/gardenlite -baseline ../bin/baseline
//
// All calls are sent at the same time, over connections that are open, and the time of each is from then until its answer
// is complete. A server that answers one after the other, on all processors, answers the median call after half the time
// that it takes for all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// limit is what the median of 500 calls at once is to be at most.
const limit = 50 * time.Millisecond

const (
	kubeconfigRequest = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"AdminKubeconfigRequest","spec":{"expirationSeconds":3600}}`
	selfReview        = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	selfReviewPath    = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	tokenRequest      = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`
	tokenPath         = "/api/v1/namespaces/%s/serviceaccounts/default/token"
)

type flags struct {
	gardenlite, baseline, algorithm, profile string
	calls, connections, rounds               int
}

func main() {
	var f flags
	flag.StringVar(&f.gardenlite, "gardenlite", "../bin/gardenlite", "the binary to measure")
	flag.StringVar(&f.baseline, "baseline", "../bin/baseline", "folder with kube-apiserver and etcd; \"\" leaves them out")
	flag.StringVar(&f.algorithm, "algorithm", "ecdsa", "of the keys: ecdsa or rsa (use fewer calls)")
	flag.IntVar(&f.calls, "calls", 500, "how many calls at once")
	flag.IntVar(&f.connections, "connections", 10, "how many connections they come over, each with a user of its own")
	flag.StringVar(&f.profile, "profile", "", "file for a profile of the server's CPU while kubeconfigs are asked for")
	flag.IntVar(&f.rounds, "rounds", 10, "how often; medians are of all rounds")
	flag.Parse()
	if err := bench(context.Background(), f); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, f flags) error {
	fmt.Printf("%d calls at once over %d connections, %d rounds; keys: %s\n\n", f.calls, f.connections, f.rounds, f.algorithm)
	fmt.Printf("%-50s %10s %10s %10s %14s %14s\n", "", "median", "p90", "max", "server's CPU", "client's CPU")
	if err := measurePlain(f); err != nil {
		return fmt.Errorf("plain server: %w", err)
	}
	var bare result
	if f.baseline != "" {
		if err := harness.Bare(ctx, f.baseline, func(s harness.BareServer) (err error) {
			bare, err = measureBare(s, f)
			return err
		}); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	l, err := startLandscape(ctx, f.gardenlite, f.algorithm)
	if err != nil {
		return err
	}
	defer l.Stop()
	conns, err := l.users(ctx, f.connections)
	defer closeAll(conns)
	if err != nil {
		return err
	}
	garden := server{conns, l.Process.PID(), f}
	review, err := garden.measure("garden: SelfSubjectReview", selfReviewPath, selfReview, nil)
	if err != nil {
		return err
	}
	token, err := garden.measure("garden: TokenRequest", fmt.Sprintf(tokenPath, "garden-dev"), tokenRequest, nil)
	if err != nil {
		return err
	}
	profiled := l.profile(ctx, f.profile)
	defer profiled()
	keys := map[string]bool{}
	kubeconfig, err := garden.measure("garden: AdminKubeconfigRequest", shootPath+"/adminkubeconfig", kubeconfigRequest, func(answer []byte) error {
		k, err := key(answer)
		if err == nil && keys[k] {
			err = errors.New("two answers have the same key")
		}
		keys[k] = true
		return err
	})
	if err != nil {
		return err
	}
	fmt.Println()
	for _, other := range []result{bare, token, review} {
		if other.name != "" {
			fmt.Printf("median beside %-50s %.2f\n", other.name+":", float64(kubeconfig.median)/float64(other.median))
		}
	}
	verdict := "met"
	if kubeconfig.median > limit {
		verdict = "NOT met"
	}
	fmt.Printf("median of %d calls at once: %s, to be at most %s with 500: %s\n", f.calls, ms(kubeconfig.median), ms(limit), verdict)
	return nil
}

// measureBare measures a kube-apiserver as it comes. What it is compared with is the TokenRequest, which makes credentials as well.
func measureBare(s harness.BareServer, f flags) (result, error) {
	conns, err := dialAll(s.Config, f.connections)
	defer closeAll(conns)
	if err != nil {
		return result{}, err
	}
	bare := server{conns, s.PID, f}
	if err := bare.create("/api/v1/namespaces/default/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`); err != nil {
		return result{}, err
	}
	if _, err := bare.measure("kube-apiserver: SelfSubjectReview", selfReviewPath, selfReview, nil); err != nil {
		return result{}, err
	}
	return bare.measure("kube-apiserver: TokenRequest", fmt.Sprintf(tokenPath, "default"), tokenRequest, nil)
}

// server is what is measured.
type server struct {
	conns []*conn
	pid   int
	flags
}

type result struct {
	name             string
	median, p90, max time.Duration
}

func (s server) create(path, body string) error {
	calls, err := atOnce(s.conns[:1], path, []byte(body), 1)
	if err == nil && calls[0].status != 201 {
		err = fmt.Errorf("%s: %d: %s", path, calls[0].status, calls[0].body)
	}
	return err
}

// measure prints how long calls take. The first round, which makes what is made once, does not count.
func (s server) measure(name, path, body string, check func(answer []byte) error) (result, error) {
	var took []time.Duration
	var own, server time.Duration
	for round := range s.rounds + 1 {
		ownBefore, serverBefore := ownCPU(), cpuOf(s.pid)
		calls, err := atOnce(s.conns, path, []byte(body), s.calls)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", name, err)
		}
		ownAfter, serverAfter := ownCPU(), cpuOf(s.pid)
		for _, c := range calls {
			if c.status != 201 {
				return result{}, fmt.Errorf("%s: %d: %s", name, c.status, c.body)
			}
			if check != nil {
				if err := check(c.body); err != nil {
					return result{}, fmt.Errorf("%s: %w", name, err)
				}
			}
			if round > 0 {
				took = append(took, c.took)
			}
		}
		if round > 0 {
			own, server = own+ownAfter-ownBefore, server+serverAfter-serverBefore
		}
		time.Sleep(3 * time.Second) // what a round leaves to be done, garbage above all, is not the next one's
	}
	slices.Sort(took)
	r := result{name, took[len(took)/2], took[len(took)*9/10], took[len(took)-1]}
	count := time.Duration(len(took))
	fmt.Printf("%-50s %10s %10s %10s %9d µs/call %8d µs/call\n", name, ms(r.median), ms(r.p90), ms(r.max), (server / count).Microseconds(), (own / count).Microseconds())
	return r, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.close()
	}
}
