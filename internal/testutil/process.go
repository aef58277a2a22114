package testutil

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const ownProcess = "GARDENLITE_TEST_PROCESS"

// OwnProcess runs a test that measures the whole process in a process of its own. In the process of all tests, it
// runs the test again in a new process, reports its result and returns false: the caller returns. In the new process
// it returns true.
func OwnProcess(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownProcess) == t.Name() {
		return true
	}
	var levels []string
	for level := range strings.SplitSeq(t.Name(), "/") {
		levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
	}
	args := []string{"-test.v", "-test.count=1", "-test.run=" + strings.Join(levels, "/")}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+(time.Until(deadline)*9/10).String())
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), ownProcess+"="+t.Name())
	out, err := cmd.CombinedOutput()
	t.Logf("in a process of its own:\n%s", out)
	if err != nil {
		t.Error(err)
	} else if !strings.Contains(string(out), "--- PASS: "+t.Name()) && !strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Error("the process did not run the test")
	}
	return false
}

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
