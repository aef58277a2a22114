// Package programs runs Gardener's own programs against a landscape of gardenlite, with what a user does.
package programs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
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

// landscape is a landscape in which programs of Gardener run.
type landscape struct {
	*testing.T
	dir    string
	garden client.Client
}

func newLandscape(t *testing.T, flags ...string) *landscape {
	t.Helper()
	l := &landscape{T: t, dir: filepath.Join(t.TempDir(), "landscape")}
	t.Cleanup(func() { l.run("down") })
	l.up(append([]string{"--port", "0"}, flags...)...)
	return l
}

func (l *landscape) up(flags ...string) {
	l.Helper()
	l.run(append([]string{"up", "-d", "--ready-timeout", "5m"}, flags...)...)
	l.garden = l.clientOf("kubeconfig")
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

// start starts a program of Gardener in the folder of the landscape, until stop is called or the test ends. Its log is printed if the
// test fails.
func (l *landscape) start(environment []string, program string, args ...string) (stop func()) {
	l.Helper()
	binary, err := filepath.Abs(filepath.Join(*gardener, program))
	if err != nil {
		l.Fatal(err)
	}
	logFile, err := os.Create(filepath.Join(filepath.Dir(l.dir), program+".log"))
	if err != nil {
		l.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Dir(l.dir), append(os.Environ(), environment...), logFile, logFile
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	stop = func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	}
	l.Cleanup(func() {
		stop()
		if data, err := os.ReadFile(logFile.Name()); err == nil && l.Failed() {
			l.Logf("%s: …%s", program, data[max(0, len(data)-20000):])
		}
	})
	return stop
}

// startGardenlet starts Gardener's gardenlet with what gardenlet-config prints.
func (l *landscape) startGardenlet(config string) (stop func()) {
	l.Helper()
	return l.start([]string{proxyIn(config)}, "gardenlet", "--config", l.write("gardenlet.yaml", config))
}

// proxyIn returns the variable with the proxy that gardenlet-config prints.
func proxyIn(config string) string { return regexp.MustCompile(`HTTPS_PROXY=\S+`).FindString(config) }

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
	result.Set(l.T, "%d steps, the last: %s after %s", steps, what, time.Since(begin).Round(time.Second))
}

// restart starts the landscape again with other flags.
func (l *landscape) restart(flags ...string) {
	l.Helper()
	l.run("down")
	l.up(flags...)
}

// clientOf returns a client with the kubeconfig that a command prints.
func (l *landscape) clientOf(command ...string) client.Client {
	l.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(l.run(command...)))
	if err != nil {
		l.Fatal(err)
	}
	scheme := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, resourcesv1alpha1.AddToScheme)
	if err := add.AddToScheme(scheme); err != nil {
		l.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// kubeconfigOf writes a kubeconfig for a user of the garden or of another cluster.
func (l *landscape) kubeconfigOf(user string, cluster ...string) (file string) {
	l.Helper()
	args := append(append([]string{"kubeconfig"}, cluster...), "--user", user)
	return l.write(strings.ReplaceAll(user, ":", "-")+".kubeconfig", l.run(args...))
}

func (l *landscape) write(name, content string) (file string) {
	l.Helper()
	file = filepath.Join(filepath.Dir(l.dir), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		l.Fatal(err)
	}
	return file
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

// nothingForbidden reports the requests of a user that were forbidden. There have to be some that were not. gardenlet may
// try again to follow an object to which it has no path any more: its watch has ended with the path.
func (l *landscape) nothingForbidden(log, user string) {
	l.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		l.Fatal(err)
	}
	all, forbidden, followed := 0, 0, map[string]bool{}
	for line := range strings.Lines(string(data)) {
		var event auditv1.Event
		// The last line is being written.
		if json.Unmarshal([]byte(line), &event) != nil || event.User.Username != user {
			continue
		}
		all++
		object := objectFollowed(event)
		switch {
		case event.ResponseStatus == nil:
		case event.ResponseStatus.Code != http.StatusForbidden:
			followed[object] = true
		case object == "" || !followed[object]:
			forbidden++
			l.Errorf("forbidden to %s: %s %s", user, event.Verb, event.RequestURI)
		}
	}
	if all == 0 {
		l.Errorf("the audit log has no requests of %s", user)
	}
	l.Logf("%d requests of %s, %d forbidden", all, user, forbidden)
}

// objectFollowed returns the object that a request lists or watches alone, empty if it is another request.
func objectFollowed(event auditv1.Event) string {
	request, err := url.ParseRequestURI(event.RequestURI)
	if err != nil || event.Verb != "list" && event.Verb != "watch" {
		return ""
	}
	name, ok := strings.CutPrefix(request.Query().Get("fieldSelector"), "metadata.name=")
	if !ok {
		return ""
	}
	return request.Path + "/" + name
}
