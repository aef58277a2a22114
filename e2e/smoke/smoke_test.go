// Package smoke goes once through what gardenlite is for, with the real binary and in a few seconds: "make test" runs it.
// The other packages of e2e test each part in full.
package smoke

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestLandscape goes through a landscape with a Shoot: from the start over a kill to the end.
func TestLandscape(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "landscape")
	run := func(args ...string) suite.Result {
		t.Helper()
		return suite.Command(t, "", suite.Binary, append([]string{"--data-dir", dir}, args...)...).OK(t)
	}
	suite.Up(t, dir).OK(t).Shows(t, "https://127.0.0.1:")
	run("shoot", "create", "smoke", "--wait")
	kubeconfig := run("kubeconfig", "shoot", "dev/smoke").Stdout
	shoot := clientOf(t, kubeconfig)
	deploy(t, shoot)

	node := strings.TrimSpace(run("ssh", "dev/smoke", "--", "hostname").Stdout)
	run("rotate", "ssh-keypair", "dev/smoke", "--wait")
	run("ssh", "dev/smoke", node, "--", "hostname").Shows(t, node)
	run("stack", "install", filepath.Join(suite.Root, "manifests", "stacks", "mysql"), "--namespace", "infra", "--wait").Shows(t, "is ready")
	refuses(t, dir)

	killed := suite.StatusOf(t, dir).PID
	suite.Must(t, syscall.Kill(killed, syscall.SIGKILL))
	testutil.Eventually(t, suite.Timeout, func(context.Context) error {
		if syscall.Kill(killed, 0) == nil {
			return fmt.Errorf("process %d is still there", killed)
		}
		return nil
	})
	suite.Up(t, dir).OK(t)
	available(t, shoot) // with the kubeconfig of before
	run("ssh", "dev/smoke", node, "--", "hostname").Shows(t, node)
	run("stack", "list", "--namespace", "infra").Shows(t, "mysql")

	if forbidden, err := suite.Forbidden(dir); err != nil || len(forbidden) > 0 {
		t.Errorf("requests of components were forbidden: %v, %v", forbidden, err)
	}
	run("down").Shows(t, "stopped")
	run("reset", "--yes")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("after reset the landscape's directory is there: %v", err)
	}
}

func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	suite.Must(t, err)
	client, err := kubernetes.NewForConfig(config)
	suite.Must(t, err)
	return client
}

// deploy creates a Deployment in the Shoot's cluster, and waits until it is available.
func deploy(t *testing.T, shoot kubernetes.Interface) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	_, err := shoot.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}}},
		},
	}, metav1.CreateOptions{})
	suite.Must(t, err)
	available(t, shoot)
}

// available waits until the Deployment is available.
func available(t *testing.T, shoot kubernetes.Interface) {
	t.Helper()
	testutil.Eventually(t, suite.Timeout, func(ctx context.Context) error {
		web, err := shoot.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && web.Status.AvailableReplicas != 2 {
			err = fmt.Errorf("%d of 2 Pods are available", web.Status.AvailableReplicas)
		}
		return err
	})
}

// refuses: the gardenlet of another seed neither reads the Shoot's keys nor changes the Shoot, and the Shoot's own gardenlet
// reads them.
func refuses(t *testing.T, dir string) {
	t.Helper()
	const keys = "/api/v1/namespaces/garden-dev/secrets/smoke.ssh-keypair"
	const status = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots/smoke/status"
	for seed, want := range map[string]int{"local": http.StatusOK, "other": http.StatusForbidden} {
		gardenlet := suite.GardenletUser(t, dir, seed)
		read, err := gardenlet.Send(t.Context(), http.MethodGet, keys, nil, false, true)
		suite.Must(t, err)
		changed, err := gardenlet.Send(t.Context(), http.MethodPatch, status, strings.NewReader("{}"), true, true)
		suite.Must(t, err)
		if read.Code != want || changed.Code != want {
			t.Errorf("the gardenlet of %s: reading keys %s, changing the status %s; expected %d", seed, read, changed, want)
		}
	}
}
