// Package harness has what the benchmarks and the conformance tests share: starting and ending programs, the bare
// servers of a garden as a baseline, landscapes with their Shoots and workloads, tables of cases.
package harness

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
)

var gardenlite = flag.String("gardenlite", "../bin/gardenlite", "the binary to measure")

// Main parses the flags and runs a benchmark, whose context ends with a signal.
func Main(bench func(context.Context) error) {
	flag.Parse()
	// SIGPIPE: the landscape ends as well if what reads the output does.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	err := bench(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// Get requests a URL, and returns an error unless the response is 200.
func Get(client *http.Client, url string) error {
	_, err := Read(client, url)
	return err
}

// Read returns the body of the response for a URL.
func Read(client *http.Client, url string) ([]byte, error) {
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, err
}

// InParallel calls f for each number below count, at most limit calls at a time.
func InParallel(ctx context.Context, limit, count int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i := range count {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}
