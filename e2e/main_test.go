// Package e2e tests the real binary, over TLS, with client-go and kubectl. The whole suite shares one landscape, which
// "gardenlite exec" starts; every test has a namespace, or names, of its own.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	// config is the administrator's.
	config     *rest.Config
	kube       kubernetes.Interface
	dyn        dynamic.Interface
	kubeconfig string
	// binary and kubectlBinary are the programs under test and the tool that tests it.
	binary, kubectlBinary string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	root, err := filepath.Abs("..")
	if err != nil {
		return fail(err)
	}
	kubectlBinary = filepath.Join(root, "bin", "kubectl")
	binary = os.Getenv("GARDENLITE_BINARY")
	if binary == "" { // "go test ./e2e" by hand
		return throughExec(root)
	}
	kubeconfig = os.Getenv("KUBECONFIG")
	if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fail(err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	if kube, err = kubernetes.NewForConfig(config); err != nil {
		return fail(err)
	}
	if dyn, err = dynamic.NewForConfig(config); err != nil {
		return fail(err)
	}
	return m.Run()
}

// throughExec builds the programs and runs this test binary again under "gardenlite exec".
func throughExec(root string) int {
	for _, target := range []string{"build", "bin/kubectl"} {
		build := exec.Command("make", "-C", root, target)
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			return fail(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	suite := exec.Command(filepath.Join(root, "bin", "gardenlite"), append([]string{"exec", "--", self}, os.Args[1:]...)...)
	suite.Stdin, suite.Stdout, suite.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := suite.Run(); err != nil {
		if suite.ProcessState != nil {
			return suite.ProcessState.ExitCode()
		}
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "e2e:", err)
	return 1
}

// eventually polls until check returns nil, and fails the test with its last error if it does not in time.
func eventually(t *testing.T, timeout time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var last error // that is not only the end of time
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", timeout, last)
		case <-ticker.C:
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var created = metav1.CreateOptions{}
