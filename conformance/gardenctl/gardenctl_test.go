// Package gardenctl runs gardenctl-v2 with gardenlogin against a landscape, with what a user with default settings does.
//
//	make conformance-gardenctl
package gardenctl

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/bench/harness"
	"github.com/gardenlite/gardenlite/conformance/result"
)

var (
	gardenctl   = flag.String("gardenctl", "gardenctl", "gardenctl-v2")
	gardenlogin = flag.String("gardenlogin", "kubectl-gardenlogin", "gardenlogin, under any name")
	kubectl     = flag.String("kubectl", "../../bin/kubectl", "kubectl")
)

// trust answers what ssh asks in a terminal: whether the host keys are the right ones.
const trust = " --cidr 127.0.0.0/8 --bastion-strict-host-key-checking no --node-strict-host-key-checking no"

// user is someone with a shell.
type user struct {
	*testing.T
	home, garden, node, seed string // seed is the address of the seed's API server
	steps                    int
}

// TestGardenctl does one step after another, each with the commands that the user types.
func TestGardenctl(t *testing.T) {
	u := newUser(t)
	target := "gardenctl target --garden " + u.garden
	shoot := target + " --project dev --shoot one"
	env := ` && eval "$(gardenctl kubectl-env bash)" && `

	u.prints("the garden as target", "garden: "+u.garden, target+" && gardenctl target view -o yaml")
	u.prints("a project", "project: dev", target+" --project dev && gardenctl target view -o yaml")
	u.prints("a seed", "seed: local", target+" --seed local && gardenctl target view -o yaml")
	u.prints("a shoot", "shoot: one", shoot+" && gardenctl target view -o yaml")
	u.prints("a control plane", "controlPlane: true", shoot+" --control-plane && gardenctl target view -o yaml")
	u.prints("a shoot of a seed", "shoot: one", target+" --seed local --shoot one && gardenctl target view -o yaml")

	u.prints("gardenctl kubectl-env, the garden", "shoot.core.gardener.cloud/one", target+env+"kubectl -n garden-dev get shoots -o name")
	u.prints("its effect on the project", "shoot.core.gardener.cloud/one", target+" --project dev"+env+"kubectl get shoots -o name")
	u.prints("its effect on the seed", "namespace/shoot--dev--one", target+" --seed local"+env+"kubectl get namespaces -o name")
	u.prints("its effect on the shoot, by gardenlogin", "node/"+u.node, shoot+env+"kubectl get nodes -o name")
	u.prints("gardenlogin is the plugin", "command: kubectl-gardenlogin", shoot+" && gardenctl kubeconfig --raw")
	u.prints("gardenctl kubeconfig", "node/"+u.node,
		shoot+" && gardenctl kubeconfig --raw >shoot.yaml && kubectl --kubeconfig shoot.yaml get nodes -o name")
	u.prints("gardenctl kubeconfig of the seed", u.seed, target+" --seed local && gardenctl kubeconfig --raw")
	u.prints("kubectl writes to the shoot", "configmap/made created", shoot+env+"kubectl create configmap made")
	u.prints("kubectl in the control plane", "deployment.apps/kube-apiserver",
		shoot+" && gardenctl target control-plane"+env+"kubectl get deployments -o name")

	u.prints("gardenctl ssh", "gardener at "+u.node, shoot+"; echo 'echo $(id -un) at $(hostname)' | gardenctl ssh "+u.node+trust)
	u.bastions("its Bastion is gone", "")
	u.prints("gardenctl ssh --keep-bastion", "gardener at "+u.node,
		shoot+"; echo 'echo $(id -un) at $(hostname)' | gardenctl ssh "+u.node+trust+" --keep-bastion --bastion-name cli-kept")
	u.bastions("its Bastion is kept", "cli-kept")
	u.prints("gardenctl ssh without a node", u.node, shoot+"; gardenctl ssh --no-keepalive --keep-bastion --interactive=false --output json "+
		"--bastion-name cli-json"+trust)
}

// newUser starts a landscape with a Shoot, and configures gardenctl for it.
func newUser(t *testing.T) *user {
	t.Helper()
	l, err := harness.StartLandscape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Remove)
	if _, err := l.Run(t.Context(), "shoot", "create", "one", "--workers=1", "--wait"); err != nil {
		t.Fatal(err)
	}
	identity, err := l.Kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u := &user{T: t, home: t.TempDir(), garden: identity.Data["cluster-identity"]}
	u.install(map[string]string{"gardenctl": *gardenctl, "kubectl-gardenlogin": *gardenlogin, "kubectl": *kubectl})
	shoot, err := l.Client(t.Context(), "shoot", "dev/one")
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := shoot.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	u.node = nodes.Items[0].Name
	seed, err := clientcmd.BuildConfigFromFlags("", filepath.Join(l.Dir, "kubeconfig-seed-local"))
	if err != nil {
		t.Fatal(err)
	}
	u.seed = seed.Host
	u.prints("gardenctl config", "Successfully configured garden",
		"gardenctl config set-garden "+u.garden+" --kubeconfig "+filepath.Join(l.Dir, "kubeconfig"))
	return u
}

// install makes the programs those that the user's shell finds first.
func (u *user) install(programs map[string]string) {
	u.Helper()
	if err := os.Mkdir(filepath.Join(u.home, "bin"), 0o700); err != nil {
		u.Fatal(err)
	}
	for name, program := range programs {
		path, err := exec.LookPath(program)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err == nil {
			err = os.Symlink(path, filepath.Join(u.home, "bin", name))
		}
		if err != nil {
			u.Fatal(err)
		}
	}
}

// run runs commands in a shell, and returns what they print.
func (u *user) run(commands string) (string, error) {
	cmd := exec.CommandContext(u.Context(), "bash", "-o", "pipefail", "-c", commands)
	cmd.Dir = u.home
	cmd.Env = append(os.Environ(), "HOME="+u.home, "TMPDIR="+u.home, "GCTL_SESSION_ID=conformance", "KUBECONFIG=",
		fmt.Sprintf("PATH=%s%c%s", filepath.Join(u.home, "bin"), os.PathListSeparator, os.Getenv("PATH")))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, errs.String())
	}
	return string(out), err
}

// prints is a step whose commands succeed, and print a text.
func (u *user) prints(step, text, commands string) {
	u.Helper()
	out, err := u.run(commands)
	if err != nil || !strings.Contains(out, text) {
		u.Errorf("%s: %s: %v, without %q: %s", step, commands, err, text, out)
		return
	}
	u.passed(step)
}

// bastions is a step that finds the Bastions that there are.
func (u *user) bastions(step, want string) {
	u.Helper()
	out, err := u.run("gardenctl target --garden " + u.garden + ` >/dev/null && eval "$(gardenctl kubectl-env bash)" && ` +
		"kubectl -n garden-dev get bastions -o json")
	var list struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	var names []string
	for _, bastion := range list.Items {
		if bastion.Metadata.DeletionTimestamp == nil {
			names = append(names, bastion.Metadata.Name)
		}
	}
	if got := strings.Join(names, " "); err != nil || got != want {
		u.Errorf("%s: the Bastions are %q, want %q: %v", step, got, want, err)
		return
	}
	u.passed(step)
}

func (u *user) passed(step string) {
	u.Helper()
	u.steps++
	result.Set(u.T, "%d steps of gardenctl and gardenlogin pass, the last: %s", u.steps, step)
}
