package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// seedElsewhere: status, kubeconfig and completion know a seed whose gardenlet runs in a process of its own. After the Seed
// is deleted, a new token registers it again.
func (l *landscape) seedElsewhere(t *testing.T) {
	state := t.TempDir()
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		return cmd
	}
	start := func() (stop func()) {
		bootstrap := filepath.Join(t.TempDir(), "bootstrap.kubeconfig")
		must(t, os.WriteFile(bootstrap, []byte(gardenlite(t, l.dir, "token", "create", "--seed", "edge").OK(t).Stdout), 0o600))
		gardenlet := run("gardenlet", "--seed", "edge", "--bootstrap-kubeconfig", bootstrap, "--port", "0")
		must(t, gardenlet.Start())
		stop = func() {
			_ = gardenlet.Process.Signal(os.Interrupt)
			_ = gardenlet.Wait()
		}
		t.Cleanup(stop)
		return stop
	}
	stop := start()
	eventually(t, waitTimeout, func(context.Context) error {
		var status struct {
			SeedsElsewhere []struct{ Name, State, Message string }
		}
		if err := json.Unmarshal([]byte(gardenlite(t, l.dir, "status", "-o", "json").OK(t).Stdout), &status); err != nil {
			return err
		}
		if seeds := status.SeedsElsewhere; len(seeds) != 1 || seeds[0].Name != "edge" || seeds[0].State != "Ready" {
			return fmt.Errorf("status has the seeds %+v", seeds)
		}
		return nil
	})
	gardenlite(t, l.dir, "status").OK(t).Shows(t, "its gardenlet runs elsewhere")
	eventually(t, waitTimeout, func(context.Context) error { // a shell waits two seconds for names, and then shows none
		names, err := run("__complete", "--data-dir", l.dir, "kubeconfig", "seed", "").Output()
		if err != nil || !slices.Contains(strings.Split(string(names), "\n"), "edge") {
			return fmt.Errorf("the names of seeds are completed to %q (%v)", names, err)
		}
		return nil
	})

	own, err := run("kubeconfig", "seed", "edge", "--data-dir", l.dir).Output()
	must(t, err)
	if r := gardenlite(t, l.dir, "kubeconfig", "seed", "edge"); r.Code != 1 ||
		!strings.Contains(r.Stderr, "create the Secret garden/edge.login") {
		t.Errorf("a kubeconfig that is not on this machine: %+v", r)
	}
	if r := gardenlite(t, l.dir, "kubeconfig", "seed", "missing"); r.Code != 1 || !strings.Contains(r.Stderr, `there is no seed "missing"`) {
		t.Errorf("a seed that does not exist: %+v", r)
	}
	_, err = l.kube.CoreV1().Secrets("garden").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "edge.login"}, Data: map[string][]byte{"kubeconfig": own},
	}, created)
	must(t, err)
	kubeconfig := gardenlite(t, l.dir, "kubeconfig", "seed", "edge").OK(t).Stdout
	merged := filepath.Join(t.TempDir(), "merged")
	merge := run("kubeconfig", "seed", "edge", "--merge", "--data-dir", l.dir)
	merge.Env = append(merge.Environ(), "KUBECONFIG="+merged)
	must(t, merge.Run())
	if own, err := clientcmd.LoadFromFile(merged); err != nil || !strings.HasPrefix(own.CurrentContext, "gardenlite-default-") {
		t.Errorf("the merged kubeconfig has the context %+v, %v", own, err)
	}
	if r := gardenlite(t, l.dir, "kubeconfig", "seed", "edge", "--path"); r.Code != 2 {
		t.Errorf("the path of a kubeconfig that is not kept: %+v", r)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	must(t, err)
	if _, err := clientOf(t, config).CoreV1().Secrets("garden").Get(t.Context(), "gardenlet-kubeconfig", metav1.GetOptions{}); err != nil {
		t.Errorf("the kubeconfig is not for the seed: %v", err)
	}

	l.deleteSeed(t, "edge")
	l.seedGoes(t, "edge")
	stop()
	const advice = "gardenlite token create --seed edge"
	if out, err := run("gardenlet", "--seed", "edge", "--port", "0").CombinedOutput(); err == nil || !strings.Contains(string(out), advice) {
		t.Errorf("with the certificate of the deleted Seed: %v, %s", err, out)
	}
	start()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := l.dyn.Resource(seedsResource).Get(ctx, "edge", metav1.GetOptions{})
		return err
	})
}
