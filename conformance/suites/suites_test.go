package suites

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/gardenlite/gardenlite/conformance/result"
)

// tally counts specs.
type tally struct {
	sync.Mutex
	specs, passed, explained int
}

// TestSuites expects every spec of the suites to pass or to fail for a known reason.
func TestSuites(t *testing.T) {
	all, err := suites()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no suites with names like %q", *only)
	}
	total := &tally{}
	t.Run("suites", func(t *testing.T) {
		for _, suite := range all {
			t.Run(suite, func(t *testing.T) {
				t.Parallel() // Most of the time, suites wait.
				total.add(t, suite, run(t, suite))
			})
		}
	})
	result.Set(t, "%d suites, %d specs: %d passed (%.1f %%), %d failed for known reasons, %d for none", len(all), total.specs, total.passed,
		100*float64(total.passed)/float64(max(1, total.specs)), total.explained, total.specs-total.passed-total.explained)
	for _, f := range failures {
		if *only == "" && !f.used {
			t.Errorf("%s: no spec %q fails any more: %s", f.suite, f.spec, f.reason)
		}
	}
}

// compiling is held while a suite is compiled: one takes all processors.
var compiling sync.Mutex

// run compiles a suite, runs it with a garden of its own, and returns its report.
func run(t *testing.T, suite string) types.Report {
	t.Helper()
	dir, files, err := mirror(suite, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	compiling.Lock()
	flags, err := compile(dir, files)
	compiling.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	// ServiceAccount is off in envtest, too.
	args := append([]string{"exec", "--bare", "--disable-admission-plugins=ServiceAccount"}, flags...)
	args = append(args, "--", filepath.Join(dir, binary), "--ginkgo.json-report="+report, "--ginkgo.timeout=20m", "-test.timeout=25m")
	cmd := exec.CommandContext(running, program, args...)
	cmd.Dir, cmd.Env = dir, environment()
	out, runErr := cmd.CombinedOutput()

	var reports []types.Report
	data, err := os.ReadFile(filepath.Join(dir, report))
	if err == nil {
		err = json.Unmarshal(data, &reports)
	}
	if err != nil || len(reports) != 1 {
		t.Fatalf("no report of the suite: %v, %v\n%s", runErr, err, out[max(0, len(out)-2000):])
	}
	return reports[0]
}

func (a *tally) add(t *testing.T, suite string, results types.Report) {
	t.Helper()
	a.Lock()
	defer a.Unlock()
	specs, passed := 0, 0
	for _, spec := range results.SpecReports {
		if spec.LeafNodeType != types.NodeTypeIt || spec.State == types.SpecStatePending {
			continue
		}
		specs++
		if spec.State == types.SpecStatePassed {
			passed++
		} else if reason := known(suite, spec.FullText()); reason != "" {
			a.explained++
			t.Logf("%q fails: %s", spec.FullText(), reason)
		} else {
			t.Errorf("%q: %s", spec.FullText(), message(results, spec))
		}
	}
	// Ginkgo reports no specs if a BeforeSuite fails.
	if missing := results.PreRunStats.SpecsThatWillRun - specs; missing > 0 {
		specs += missing
		t.Errorf("%d specs: %s", missing, message(results, types.SpecReport{}))
	}
	t.Logf("%d of %d specs pass", passed, specs)
	a.specs += specs
	a.passed += passed
}

// message returns why a spec failed. One that did not run has the reason of what failed before it.
func message(results types.Report, spec types.SpecReport) string {
	if spec.Failed() {
		return spec.FailureMessage() + " at " + spec.FailureLocation().String()
	}
	for _, other := range results.SpecReports {
		if other.Failed() {
			return fmt.Sprintf("did not run: %s: %s", other.LeafNodeType, message(results, other))
		}
	}
	return spec.State.String()
}
