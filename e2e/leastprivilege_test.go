package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// component is one whose roles are held to what it uses: users in the garden and in the seed are named as their roles.
type component struct {
	user string
	seed bool
	// idle are rights that the scenario does not use, each with the reason. Unit tests of their packages use them.
	idle map[string]string
}

const (
	controllerManagerUser = "gardener.cloud:system:controller-manager"
	schedulerUser         = "gardener.cloud:system:scheduler"
	gardenletUserInSeed   = "gardener.cloud:system:gardenlet"
	providerUser          = "extensions.gardener.cloud:provider-local"
	admissionUser         = "gardener.cloud:system:admission-controller"
)

// Why a right is idle.
const (
	notLogged  = "is asked for by admission, or by RBAC itself, of which the log says nothing"
	whenShared = "only when processes share a datastore"
	repeated   = "only when an event happens again"
	late       = "only an hour after an event"
	unused     = "only when nobody has used a project for months"
	managed    = "only for replicas of a ManagedSeedSet and what they become"
	altered    = "only when somebody has altered what it wrote, or what that was made from"
	foreign    = "only in a cluster that is not gardenlite's own"
	taken      = "only when a gardenlet is refused to create something that may be there (TestReadRules)"
	moved      = "only when a shoot moves to another seed"
)

func components() []component {
	leading := func(name, lease string) map[string]string {
		role := "garden/" + name
		return map[string]string{
			role + ": create leases.coordination.k8s.io":                                       whenShared,
			role + ": get leases.coordination.k8s.io " + lease:                                 whenShared,
			role + ": update leases.coordination.k8s.io " + lease:                              whenShared,
			role + ": create events":                                                           whenShared,
			name + ": patch events.events.k8s.io":                                              repeated,
			name + ": approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client": notLogged,
		}
	}
	with := func(idle map[string]string, user string, more map[string][]string) map[string]string {
		for reason, rights := range more {
			for _, r := range rights {
				idle[user+": "+r] = reason
			}
		}
		return idle
	}
	ofSeed := leading(gardenletUserInSeed, "gardenlet-leader-election")
	ofSeed["kube-system/"+gardenletUserInSeed+": create configmaps"] = foreign
	return []component{
		{user: controllerManagerUser, idle: with(leading(controllerManagerUser, "gardener-controller-manager-leader-election"), controllerManagerUser, map[string][]string{
			notLogged: {"bind clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io", "get quotas.core.gardener.cloud"},
			late:      {"get events", "delete events"},
			unused:    {"delete projects.core.gardener.cloud"},
			moved:     {"patch shoots/status.core.gardener.cloud", "patch shootstates.core.gardener.cloud"},
			altered:   {"update clusterroles.rbac.authorization.k8s.io"},
			managed:   {"delete shoots.core.gardener.cloud", "create managedseeds.seedmanagement.gardener.cloud", "delete managedseeds.seedmanagement.gardener.cloud", "patch managedseeds.seedmanagement.gardener.cloud"},
		})},
		{user: schedulerUser, idle: leading(schedulerUser, "gardener-scheduler-leader-election")},
		{user: admissionUser, idle: with(map[string]string{}, admissionUser, map[string][]string{
			taken: {"get backupentries.core.gardener.cloud", "get bastions.operations.gardener.cloud", "get certificatesigningrequests.certificates.k8s.io", "get clusterrolebindings.rbac.authorization.k8s.io"},
		})},
		{user: gardenletUserInSeed, seed: true, idle: with(ofSeed, gardenletUserInSeed, map[string][]string{
			moved:   {"patch backupentries/status.extensions.gardener.cloud"},
			altered: {"patch managedresources.resources.gardener.cloud"},
		})},
		{user: providerUser, seed: true, idle: with(leading(providerUser, "provider-local"), providerUser, map[string][]string{
			altered: {"update secrets"},
		})},
	}
}

// TestLeastPrivilege has the components of a landscape do all that they do, and finds in the audit logs that each uses
// every right that its roles give, and is forbidden nothing.
func TestLeastPrivilege(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit")
	l := newSeededLandscape(t, "--audit-log", file, "--datastore", "memory")
	t.Run("life", l.liveALife)
	for _, c := range components() {
		t.Run(c.user, func(t *testing.T) {
			file, client := file, l.garden
			if c.seed {
				file, client = file+".seed-local", l.seed
			}
			rights := granted(t, client, c.user)
			eventually(t, 10*time.Second, func(context.Context) error {
				found := slices.DeleteFunc(readAudit(t, file).unused(rights), func(r string) bool { return c.idle[r] != "" })
				if len(found) > 0 {
					return fmt.Errorf("these rights are not used:\n%s", strings.Join(found, "\n"))
				}
				return nil
			})
			if forbidden := readAudit(t, file).forbidden[c.user]; len(forbidden) > 0 {
				t.Errorf("it was forbidden:\n%s", strings.Join(forbidden, "\n"))
			}
		})
	}
}

// liveALife goes through what happens to a landscape.
func (l *seededLandscape) liveALife(t *testing.T) {
	t.Helper()
	l.kubectl(t, l.testdata(t, "leastprivilege.yaml"), "apply", "-f", "-")
	l.kubectl(t, "", "wait", "--for=jsonpath={.status.phase}=Ready", "project/lp", "--timeout=20s")
	l.prepareSeed(t)
	l.kubectl(t, l.testdata(t, "leastprivilege-project.yaml"), "apply", "-f", "-")
	l.askAsGardenlet(t)
	l.extend(t)
	l.changeSecrets(t)
	l.useProject(t)
	l.removeProject(t)
	l.removeSeed(t)
}

func (l *seededLandscape) testdata(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	seed, err := l.core("seeds", "").Get(t.Context(), "local", metav1.GetOptions{})
	must(t, err)
	return strings.ReplaceAll(string(data), "BUCKET", string(seed.GetUID()))
}

func (l *seededLandscape) kubectl(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return command(t, stdin, kubectlBinary, append([]string{"--kubeconfig", filepath.Join(l.dir, "kubeconfig")}, args...)...).ok(t)
}

// await waits until an object of the garden says something, "" for being gone.
func (l *seededLandscape) await(t *testing.T, what, jsonpath, contains string) {
	t.Helper()
	eventually(t, 20*time.Second, func(context.Context) error {
		args := append([]string{"--kubeconfig", filepath.Join(l.dir, "kubeconfig"), "get", "-n", "garden-lp", "-o", "jsonpath=" + jsonpath}, strings.Fields(what)...)
		r := command(t, "", kubectlBinary, args...)
		gone := r.code != 0 && strings.Contains(r.stderr, "NotFound")
		if contains == "" && gone || contains != "" && r.code == 0 && strings.Contains(r.stdout, contains) {
			return nil
		}
		return fmt.Errorf("%s: %s is %q, not %q: %s", what, jsonpath, r.stdout, contains, r.stderr)
	})
}

func (l *seededLandscape) mergeInto(t *testing.T, what, patch string, more ...string) {
	t.Helper()
	l.kubectl(t, "", append([]string{"-n", "garden-lp", "patch", what, "--type=merge", "-p", patch}, more...)...)
}

// prepareSeed gives the backup entry a control plane's namespace.
func (l *seededLandscape) prepareSeed(t *testing.T) {
	t.Helper()
	_, err := l.seed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lp-control-plane"}}, created)
	must(t, err)
}

func eventuallyGone(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	eventually(t, 20*time.Second, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace %s is not gone: %v", namespace, err)
	})
}
