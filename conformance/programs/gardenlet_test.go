// Package programs runs Gardener's own programs against a landscape of gardenlite, with what a user does.
package programs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/conformance/result"
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
	cmd := exec.Command(*gardenlite, append([]string{"--data-dir", l.dir}, args...)...)
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

// steps are those that succeeded.
var steps int

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
	steps++
	result.Set(l.T, "Gardener's gardenlet: %d steps, the last: %s after %s", steps, what, time.Since(begin).Round(time.Second))
}

// TestGardenlet: Gardener's gardenlet, with the file of gardenlet-config and the proxy that it names, brings its Seed and a Shoot with
// workers to healthy, hibernates it, wakes it up, rotates its SSH keys and deletes it.
func TestGardenlet(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := newLandscape(t, "--controllers", "*,-gardenlet", "--audit-log", audit)
	config := l.run("gardenlet-config", "local")
	file := filepath.Join(filepath.Dir(l.dir), "gardenlet.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l.start([]string{regexp.MustCompile(`HTTPS_PROXY=\S+`).FindString(config)}, "gardenlet", "--config", file)
	l.eventually("the Seed is ready", l.seedReady)

	l.run("shoot", "create", "one", "--workers", "2")
	l.eventually("the Shoot is healthy", l.shootHealthy)
	l.eventually("its nodes are ready", l.nodesReady(2))
	before := l.sshKeys()
	if len(before) != 1 {
		t.Errorf("the machine knows %d keys, want 1", len(before))
	}

	l.run("shoot", "hibernate", "one")
	l.eventually("the Shoot is hibernated", func(ctx context.Context) error { return l.shootIs(ctx, true) })
	if _, err := l.shootClient(); err == nil {
		t.Error("the API server of the hibernated Shoot answers")
	}
	l.run("shoot", "wake", "one")
	l.eventually("the Shoot is awake", func(ctx context.Context) error { return l.shootIs(ctx, false) })
	l.eventually("it is healthy again", l.shootHealthy)
	l.eventually("its nodes are ready again", l.nodesReady(2))

	l.run("rotate", "ssh-keypair", "dev/one")
	l.eventually("the SSH keys are rotated", func(ctx context.Context) error {
		if err := l.shootHealthy(ctx); err != nil {
			return err
		}
		if after := l.sshKeys(); len(after) != 2 || !slices.Contains(after, before[0]) {
			return fmt.Errorf("the machine knows %q, and before %q", after, before)
		}
		return nil
	})

	l.run("shoot", "delete", "one", "--yes")
	l.eventually("the Shoot is gone", func(ctx context.Context) error {
		shoot := &gardencorev1beta1.Shoot{}
		err := l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "one"}, shoot)
		if err == nil {
			return fmt.Errorf("its last operation is %+v", shoot.Status.LastOperation)
		}
		return client.IgnoreNotFound(err)
	})
	l.eventually("the Seed is still ready", l.seedReady)
	if forbidden := l.forbidden(audit); len(forbidden) > 0 {
		t.Errorf("%d requests of the gardenlet were forbidden: %s", len(forbidden), strings.Join(forbidden, "\n"))
	}
}

// shootIs reports an error unless the Shoot has the state.
func (l *landscape) shootIs(ctx context.Context, hibernated bool) error {
	shoot := &gardencorev1beta1.Shoot{}
	if err := l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "one"}, shoot); err != nil {
		return err
	}
	last := shoot.Status.LastOperation
	if shoot.Status.IsHibernated != hibernated || last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("hibernated is %v, the last operation is %+v", shoot.Status.IsHibernated, last)
	}
	return nil
}

// shootHealthy reports an error unless the Shoot is reconciled with all conditions True.
func (l *landscape) shootHealthy(ctx context.Context) error {
	shoot := &gardencorev1beta1.Shoot{}
	if err := l.garden.Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: "one"}, shoot); err != nil {
		return err
	}
	last := shoot.Status.LastOperation
	if last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded || shoot.Status.ObservedGeneration != shoot.Generation {
		return fmt.Errorf("the last operation is %+v", last)
	}
	return allTrue(shoot.Status.Conditions, gardencorev1beta1.ShootAPIServerAvailable, gardencorev1beta1.ShootControlPlaneHealthy,
		gardencorev1beta1.ShootObservabilityComponentsHealthy, gardencorev1beta1.ShootEveryNodeReady,
		gardencorev1beta1.ShootSystemComponentsHealthy)
}

// shootClient returns a client for the Shoot, if its API server answers.
func (l *landscape) shootClient() (kubernetes.Interface, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(l.kubeconfig("one")))
	if err != nil {
		return nil, err
	}
	config.Timeout = 10 * time.Second
	shoot, err := kubernetes.NewForConfig(config)
	if err == nil {
		_, err = shoot.Discovery().ServerVersion()
	}
	return shoot, err
}

func (l *landscape) nodesReady(wanted int) func(context.Context) error {
	return func(ctx context.Context) error {
		shoot, err := l.shootClient()
		if err != nil {
			return err
		}
		nodes, err := shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, node := range nodes.Items {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready != wanted || len(nodes.Items) != wanted {
			return fmt.Errorf("%d of %d nodes are ready, want %d", ready, len(nodes.Items), wanted)
		}
		return nil
	}
}

// sshKeys returns the keys with which one may log in to a node of the Shoot.
func (l *landscape) sshKeys() []string {
	l.Helper()
	return strings.FieldsFunc(l.run("ssh", "dev/one", "--", "cat", ".ssh/authorized_keys"), func(r rune) bool { return r == '\n' })
}

// forbidden returns the requests of the gardenlet that were forbidden, from the audit log.
func (l *landscape) forbidden(log string) (requests []string) {
	l.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		l.Fatal(err)
	}
	all := 0
	for line := range strings.Lines(string(data)) {
		var event auditv1.Event
		if json.Unmarshal([]byte(line), &event) != nil { // the last line is being written
			continue
		}
		if !strings.HasPrefix(event.User.Username, "gardener.cloud:system:seed:") {
			continue
		}
		all++
		if event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden {
			requests = append(requests, event.RequestReceivedTimestamp.Format(time.TimeOnly)+" "+event.Verb+" "+event.RequestURI)
		}
	}
	if all == 0 {
		l.Error("the audit log has no requests of the gardenlet")
	}
	return requests
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
