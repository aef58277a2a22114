//go:build soak

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
)

// takeover is how long another process may take to do the work of a killed one, on a machine that does nothing else.
const takeover = 30 * time.Second

// TestDatastoresTwoProcesses runs one landscape by two processes on one datastore. Each of them is killed once: the other one
// takes over what only one process does at a time, as soon as the leases expire.
func TestDatastoresTwoProcesses(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) string{"etcd": datastoretest.StartEtcd, "PostgreSQL": datastoretest.StartPostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			datastore := start(t)
			first, second := stoppedLandscape(t), stoppedLandscape(t)
			first.up(t, "--datastore", datastore)
			second.up(t, "--datastore", datastore)
			oneLandscape(t, first, second)
			works(t, second, "both", waitTimeout)
			first.leasesAreShort(t)

			first.kill()
			works(t, second, "first-killed", takeover)

			first.up(t, "--datastore", datastore)
			second.kill()
			works(t, first, "second-killed", takeover)
			first.expectNothingForbidden(t)
		})
	}
}

// leasesAreShort expects that the Lease of a killed leader expires within takeover.
func (l *landscape) leasesAreShort(t *testing.T) {
	t.Helper()
	leases, err := l.kube.CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	count := 0
	for _, lease := range leases.Items {
		if lease.Spec.LeaseTransitions == nil { // it is not for leader election
			continue
		}
		count++
		if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds < 1 || time.Duration(seconds)*time.Second >= takeover {
			t.Errorf("the Lease %s/%s lasts %d s", lease.Namespace, lease.Name, seconds)
		}
	}
	if count < 3 {
		t.Errorf("leaders are elected by only %d Leases", count)
	}
}

// oneLandscape: the second process has the same objects, and accepts the clients of the first one.
func oneLandscape(t *testing.T, first, second *landscape) {
	t.Helper()
	crossed := rest.CopyConfig(first.admin)
	crossed.Host = second.admin.Host
	info, err := kubernetes.NewForConfigOrDie(crossed).CoreV1().ConfigMaps("kube-system").Get(
		t.Context(), "cluster-identity", metav1.GetOptions{})
	must(t, err)
	own, err := first.kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
	must(t, err)
	if own.UID != info.UID {
		t.Errorf("two landscapes: their identities are %v and %v", own.Data, info.Data)
	}
}

// works waits until the controller-manager, the scheduler, the gardenlet and Kubernetes' controllers have done something.
func works(t *testing.T, m *landscape, name string, timeout time.Duration) {
	t.Helper()
	before := leaseOf(t, m).Spec.RenewTime.Time
	project := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": map[string]any{"name": "ha-" + name[:4]},
		"spec": map[string]any{},
	}}
	_, err := m.dyn.Resource(projectsResource).Create(t.Context(), project, created)
	must(t, err)
	_, err = m.dyn.Resource(shootsResource).Namespace("garden-dev").Create(t.Context(), sampleShoot(t, "ha-"+name[:4]), created)
	must(t, err)
	eventually(t, timeout, func(ctx context.Context) error {
		project, err := m.dyn.Resource(projectsResource).Get(ctx, project.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(project.Object, "status", "phase")
		namespace, _, _ := unstructured.NestedString(project.Object, "spec", "namespace")
		if phase != "Ready" {
			return fmt.Errorf("the project's phase is %q: no controller-manager works", phase)
		}
		if _, err := m.kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return fmt.Errorf("kubernetes' controllers do not work: %w", err)
		}
		shoot, err := m.dyn.Resource(shootsResource).Namespace("garden-dev").Get(ctx, "ha-"+name[:4], metav1.GetOptions{})
		if err != nil {
			return err
		}
		if seed, _, _ := unstructured.NestedString(shoot.Object, "spec", "seedName"); seed == "" {
			return fmt.Errorf("the shoot has no seed: no scheduler works")
		}
		if now := leaseOf(t, m).Spec.RenewTime.Time; !now.After(before) {
			return fmt.Errorf("the seed's lease is of %s: no gardenlet works", now)
		}
		return nil
	})
}

func leaseOf(t *testing.T, m *landscape) *coordinationv1.Lease {
	t.Helper()
	lease, err := m.kube.CoordinationV1().Leases("gardener-system-seed-lease").Get(t.Context(), "local", metav1.GetOptions{})
	must(t, err)
	return lease
}
