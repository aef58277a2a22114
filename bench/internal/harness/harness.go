// Package harness has what the benchmarks share: starting and ending programs, the bare kube-apiserver as a
// baseline, landscapes with their Shoots and workloads, medians.
package harness

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

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

// Median returns the median; of an even number of values, the larger one in the middle.
func Median(values []time.Duration) time.Duration {
	values = slices.Clone(values)
	slices.Sort(values)
	return values[len(values)/2]
}

// MedianOf returns the median of several measurements.
func MedianOf(count int, measure func() (time.Duration, error)) (time.Duration, error) {
	var all []time.Duration
	for range count {
		took, err := measure()
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	return Median(all), nil
}

// MS prints a duration in milliseconds, a short one with fractions.
func MS(d time.Duration) string {
	if d.Abs() < 100*time.Millisecond {
		return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// Metrics returns the values of a /metrics page by their series: those that begin with one of the prefixes.
func Metrics(page []byte, prefixes ...string) (map[string]float64, error) {
	values := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics: %q: %w", line, err)
		}
		values[line[:at]] = value
	}
	return values, lines.Err()
}
