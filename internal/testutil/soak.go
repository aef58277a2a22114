package testutil

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Soaking reports whether the long forms of the tests run (make soak), with GARDENLITE_SOAK=1.
func Soaking() bool { return os.Getenv("GARDENLITE_SOAK") == "1" }

// Seed returns the seed for the random inputs of a test: always the same, but a random one in the soak.
// GARDENLITE_SEED repeats one.
func Seed(t testing.TB) uint64 {
	t.Helper()
	var seed uint64
	if again := os.Getenv("GARDENLITE_SEED"); again != "" {
		var err error
		if seed, err = strconv.ParseUint(again, 10, 64); err != nil {
			t.Fatalf("GARDENLITE_SEED: %v", err)
		}
	} else if Soaking() {
		seed = rand.Uint64N(1 << 53)
	}
	t.Logf("GARDENLITE_SEED=%d repeats this", seed)
	return seed
}
