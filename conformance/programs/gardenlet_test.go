// Package programs runs Gardener's own programs against a landscape of gardenlite, with what a user does.
package programs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	gardenlite = flag.String("gardenlite", "../../bin/gardenlite", "gardenlite")
	gardener   = flag.String("gardener", "../../bin/gardener", "folder with Gardener's programs")
)

// timeout is how long a step may take: the CustomResourceDefinitions of a seed take a minute on a slow machine.
const timeout = 10 * time.Minute

// landscape is a landscape without gardenlets.
type landscape struct {
	*testing.T
	dir    string
	garden client.Client
}

func newLandscape(t *testing.T, flags ...string) *landscape {
	t.Helper()
	l := &landscape{T: t, dir: filepath.Join(t.TempDir(), "landscape")}
	t.Cleanup(func() { l.run("down") })
	l.run(append([]string{"up", "-d", "--port", "0", "--ready-timeout", "5m"}, flags...)...)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if l.garden, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return l
}

// run runs a command of gardenlite, and returns its standard output.
func (l *landscape) run(args ...string) string {
	l.Helper()
	cmd := exec.Command(*gardenlite, append(args, "--data-dir", l.dir)...)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(l.dir))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		l.Fatalf("gardenlite %s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// start starts a program of Gardener, which ends with the test. Its log is printed if the test fails.
func (l *landscape) start(environment []string, program string, args ...string) {
	l.Helper()
	logFile, err := os.Create(filepath.Join(filepath.Dir(l.dir), program+".log"))
	if err != nil {
		l.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(*gardener, program), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), environment...), logFile, logFile
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if data, err := os.ReadFile(logFile.Name()); err == nil && l.Failed() {
			l.Logf("%s: …%s", program, data[max(0, len(data)-20000):])
		}
	})
}

// eventually waits until check returns no error.
func (l *landscape) eventually(what string, check func(context.Context) error) {
	l.Helper()
	var last error
	begin := time.Now()
	err := wait.PollUntilContextTimeout(l.Context(), time.Second, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		l.Fatalf("%s: %v: %v", what, err, last)
	}
	l.Logf("%s after %s", what, time.Since(begin).Round(time.Second))
}

// TestGardenlet: Gardener's gardenlet, with the file of gardenlet-config and the proxy that it names, brings the Seed to Ready, and
// the API server of a Shoot answers a user.
func TestGardenlet(t *testing.T) {
	l := newLandscape(t, "--controllers", "*,-gardenlet")
	config := l.run("gardenlet-config", "local")
	file := filepath.Join(filepath.Dir(l.dir), "gardenlet.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l.start([]string{regexp.MustCompile(`HTTPS_PROXY=\S+`).FindString(config)}, "gardenlet", "--config", file)
	l.eventually("the Seed is ready", l.seedReady)

	l.run("shoot", "create", "one")
	l.eventually("the API server of the Shoot answers", func(ctx context.Context) error {
		config, err := clientcmd.RESTConfigFromKubeConfig([]byte(l.kubeconfig("one")))
		if err != nil {
			return err
		}
		version, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerVersion()
		if err == nil && !strings.HasPrefix(version.GitVersion, "v1.") {
			err = fmt.Errorf("the version is %s", version.GitVersion)
		}
		return err
	})
	l.eventually("the control plane of the Shoot is healthy", func(ctx context.Context) error {
		shoot := &gardencorev1beta1.Shoot{}
		if err := l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "one"}, shoot); err != nil {
			return err
		}
		return allTrue(shoot.Status.Conditions, gardencorev1beta1.ShootAPIServerAvailable, gardencorev1beta1.ShootControlPlaneHealthy)
	})
}

// kubeconfig returns an administrator's kubeconfig of a Shoot, empty if there is none yet.
func (l *landscape) kubeconfig(name string) string {
	out, err := exec.Command(*gardenlite, "kubeconfig", "shoot", name, "--data-dir", l.dir).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func (l *landscape) seedReady(ctx context.Context) error {
	seed := &gardencorev1beta1.Seed{}
	if err := l.garden.Get(ctx, client.ObjectKey{Name: "local"}, seed); err != nil {
		return err
	}
	if last := seed.Status.LastOperation; last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("the last operation is %+v", last)
	}
	return allTrue(seed.Status.Conditions, gardencorev1beta1.GardenletReady, gardencorev1beta1.SeedSystemComponentsHealthy,
		gardencorev1beta1.SeedExtensionsReady)
}

func allTrue(conditions []gardencorev1beta1.Condition, wanted ...gardencorev1beta1.ConditionType) error {
	is := map[gardencorev1beta1.ConditionType]string{}
	for _, condition := range conditions {
		is[condition.Type] = string(condition.Status) + ": " + condition.Message
	}
	for _, name := range wanted {
		if !strings.HasPrefix(is[name], string(corev1.ConditionTrue)) {
			return fmt.Errorf("%s is %q", name, is[name])
		}
	}
	return nil
}
