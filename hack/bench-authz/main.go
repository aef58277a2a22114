// Command bench-authz measures the resource dependency graph of the SeedAuthorizer, and fails if a limit is missed:
//
//   - a path check takes at most 1 µs, and with the most shoots at most twice as long as with the fewest, whether it finds
//     a path or not. Of each kind, the vertex with the most edges is checked. A plain depth-first walk stands beside it;
//   - the change of one object takes at most 100 µs: of each kind, the one with the most edges that lead away from it;
//   - 999 of 1,000 changes hold up path checks for at most 1 ms, also while the graph is filled.
//
// The checks of random objects have no limit: in a large landscape they take as long as memory does.
//
//	go run ./hack/bench-authz -shoots 1000,10000 -seeds 100
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	maxCheck  = time.Microsecond
	maxGrowth = 2
	maxChange = 100 * time.Microsecond
	maxHeld   = time.Millisecond
)

func main() {
	shoots := flag.String("shoots", "1000,10000,100000", "numbers of shoots")
	seeds := flag.String("seeds", "10,100,1000", "numbers of seeds")
	flag.Parse()
	if err := run(*shoots, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(shoots, seeds string) error {
	shootCounts, err := numbers(shoots)
	if err != nil {
		return fmt.Errorf("reading -shoots: %w", err)
	}
	seedCounts, err := numbers(seeds)
	if err != nil {
		return fmt.Errorf("reading -seeds: %w", err)
	}
	missed := 0
	for _, seedCount := range seedCounts {
		t := &table{seeds: seedCount, shoots: shootCounts}
		for _, shootCount := range shootCounts {
			t.measure(landscape{shootCount, seedCount})
		}
		missed += t.print(os.Stdout)
	}
	if missed > 0 {
		return fmt.Errorf("%d limits are missed (marked !)", missed)
	}
	return nil
}

func numbers(list string) (numbers []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 10 {
			return nil, fmt.Errorf("%q is not a number of at least 10", s)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
