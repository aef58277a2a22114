// Package suites runs Gardener's integration tests against bare gardens of gardenlite, as they are in Gardener's module.
//
//	make conformance-suites
package suites

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

const (
	module = "github.com/gardener/gardener"
	// folderOfSuites is that of the suites in Gardener's module.
	folderOfSuites = "/test/integration/"
	binary         = "suite.test"
	report         = "report.json"
)

var (
	gardenlite = flag.String("gardenlite", "../../bin/gardenlite", "the binary to test")
	only       = flag.String("suites", "", "regular expression: run the suites with such names, and no others")

	// root is the folder of Gardener's module, program gardenlite's binary, and programs has further ones for suites.
	root, program, programs string

	// running ends, and with it what the tests have started, when they are interrupted.
	running, stopRunning = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	code := m.Run()
	stopRunning()
	if err := os.RemoveAll(programs); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	os.Exit(code)
}

func prepare() (err error) {
	if program, err = filepath.Abs(*gardenlite); err != nil {
		return err
	}
	if root, err = goTool("list", "-m", "-f", "{{.Dir}}", module); err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	if programs, err = os.MkdirTemp("", "conformance-"); err != nil {
		return err
	}
	// Some suites package charts with it.
	_, err = goTool("build", "-o", programs, "helm.sh/helm/v4/cmd/helm")
	return err
}

// goTool runs the go command in the folder of this package, and returns what it prints.
func goTool(args ...string) (string, error) {
	cmd := exec.CommandContext(running, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// suites returns the names of the suites that use Gardener's envtest: their folders in folderOfSuites.
func suites() (all []string, _ error) {
	out, err := goTool("list", "-f", "{{.ImportPath}} {{.XTestImports}}", module+folderOfSuites+"...")
	if err != nil {
		return nil, err
	}
	selected, err := regexp.Compile(*only)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		path, imports, _ := strings.Cut(line, " ")
		suite := strings.TrimPrefix(path, module+folderOfSuites)
		if strings.Contains(imports, module+"/test/envtest") && selected.MatchString(suite) {
			all = append(all, suite)
		}
	}
	return all, nil
}

// mirror makes a folder for the suite in work, with links to its files, from which those of the module are found by the
// same relative paths. Suites write files there, and the module is not theirs to change.
func mirror(suite, work string) (dir string, files []string, _ error) {
	original := filepath.Join(root, folderOfSuites, suite)
	dir = filepath.Join(work, folderOfSuites, suite)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	for from, to := range map[string]string{root: work, original: dir} {
		entries, err := os.ReadDir(from)
		if err != nil {
			return "", nil, err
		}
		for _, entry := range entries {
			link := filepath.Join(to, entry.Name())
			if link == filepath.Join(work, "test") {
				continue
			}
			target := filepath.Join(from, entry.Name())
			if from == original && entry.IsDir() { // what is embedded must be no link
				err = os.CopyFS(link, os.DirFS(target))
			} else {
				err = os.Symlink(target, link)
			}
			if err != nil {
				return "", nil, err
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return dir, files, err
}

var (
	packageClause = regexp.MustCompile(`(?m)^package \w+$`)
	// gardenFlags matches flags of a suite's gardener-apiserver that gardenlite has too, and gardenGates feature gates that a
	// suite sets in its process, which is that of gardener-apiserver elsewhere.
	gardenFlags = regexp.MustCompile(`"(--(?:enable-admission-plugins|disable-admission-plugins|feature-gates)=[^"]*)"`)
	gardenGates = regexp.MustCompile(`WithFeatureGate\(features\.DefaultFeatureGate, features\.(\w+), (true|false)\)`)
)

// compile compiles the suite in dir, and returns the flags for its garden.
func compile(dir string, files []string) (flags []string, _ error) {
	clause := ""
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		source := string(data)
		clause = packageClause.FindString(source)
		for _, match := range gardenFlags.FindAllStringSubmatch(source, -1) {
			flags = append(flags, match[1])
		}
		for _, match := range gardenGates.FindAllStringSubmatch(source, -1) {
			flags = append(flags, fmt.Sprintf("--feature-gates=%s=%s", match[1], match[2]))
		}
	}
	// A gardener-apiserver in the process would have registered them.
	gates := filepath.Join(dir, "featuregates_test.go")
	source := fmt.Sprintf("%s\n\nimport %q\n\nfunc init() { features.RegisterFeatureGates() }\n", clause, module+"/pkg/apiserver/features")
	if err := os.WriteFile(gates, []byte(source), 0o600); err != nil {
		return nil, err
	}
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", filepath.Join(dir, binary)}
	_, err := goTool(append(append(args, files...), gates)...)
	return flags, err
}

// environment is that of a suite. The times are those of Gardener's hack/test-integration.env, but for the time in
// which something has to happen: two suites and their gardens share the processors. The garbage collection is that of
// gardener-apiserver: gardenlite saves memory by default, and then takes twice the processor time for a hundred CRDs.
func environment() []string {
	return append(os.Environ(), "USE_EXISTING_GARDENER=true", "USE_EXISTING_CLUSTER=true", "ENVTEST_K8S_VERSION=1.36",
		fmt.Sprintf("PATH=%s%c%s", programs, os.PathListSeparator, os.Getenv("PATH")),
		"GOGC=100", "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=20s", "GOMEGA_DEFAULT_EVENTUALLY_POLLING_INTERVAL=200ms",
		"GOMEGA_DEFAULT_CONSISTENTLY_DURATION=5s", "GOMEGA_DEFAULT_CONSISTENTLY_POLLING_INTERVAL=200ms")
}
