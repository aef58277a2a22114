package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/host/hosttest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const (
	name      = "node-1"
	user      = "system:node:" + name
	nodePath  = "/api/v1/nodes/" + name
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name

	requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

// world is a kubelet that runs on a machine in memory.
type world struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	api     *apitest.Server
	machine *hosttest.Machine
	host    host.Host
	end     context.CancelFunc
	ended   chan error
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Now())}
	w.api = apitest.New(t, w.clock)
	w.machine, w.host = hosttest.New(name, w.clock)
	bootstrap, err := node.KubeconfigWithToken(w.api.URL, w.api.CA, apitest.Token)
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(node.KubeletConfig{
		APIServer: w.api.URL, CA: string(w.api.CA), KubernetesVersion: "1.36.4",
		Labels:   map[string]string{"worker.gardener.cloud/pool": "p", "node-role.kubernetes.io/worker": "", "node.kubernetes.io/x": "y"},
		Taints:   []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		Reserved: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1Ti"),
			"pid": resource.MustParse("20k")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{node.PathKubeconfigBootstrap: bootstrap, node.PathKubeletConfig: config} {
		if err := w.machine.Files.WriteFile(path, data, keyMode); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.machine.Files.Sync(); err != nil {
		t.Fatal(err)
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start() {
	var ctx context.Context
	ctx, w.end = context.WithCancel(context.Background())
	w.ended = make(chan error, 1)
	go func() { w.ended <- Run(ctx, w.host, nil) }()
}

func (w *world) stop() {
	w.end()
	if err := <-w.ended; err != nil {
		w.t.Errorf("the kubelet has ended with %v", err)
	}
	w.ended <- nil
}

// until steps the clock until a condition is met.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	testutil.EventuallyTrue(w.t, what, func() bool {
		if so() {
			return true
		}
		if w.clock.HasWaiters() { // otherwise the kubelet is busy
			w.clock.Step(500 * time.Millisecond)
		}
		return false
	})
}

func (w *world) node() *corev1.Node {
	n := &corev1.Node{}
	if !w.api.Get(w.t, nodePath, n) {
		return nil
	}
	return n
}

func (w *world) renewed() time.Time {
	lease := &coordinationv1.Lease{}
	if !w.api.Get(w.t, leasePath, lease) || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

func (w *world) alive() bool { return w.clock.Since(w.renewed()) < leasePeriod }

func TestRegisters(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	n := w.node()
	for key, want := range map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "small",
		"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "here", "worker.gardener.cloud/pool": "p",
		"node.kubernetes.io/x": "y",
	} {
		if n.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, n.Labels[key], want)
		}
	}
	if _, has := n.Labels["node-role.kubernetes.io/worker"]; has {
		t.Error("the node gives itself a label that it may not have")
	}
	if n.Spec.ProviderID != "local:///z1/node-1" || len(n.Spec.Taints) != 1 || n.Status.NodeInfo.KubeletVersion != "v1.36.4" {
		t.Errorf("spec %+v, kubelet %s", n.Spec, n.Status.NodeInfo.KubeletVersion)
	}
	if left := n.Status.Allocatable; left.Cpu().String() != "3900m" || !left.Memory().IsZero() || n.Status.Capacity.Pods().Value() != defaultMaxPods {
		t.Errorf("allocatable %v of %v", n.Status.Allocatable, n.Status.Capacity)
	}
	if a := n.Status.Addresses; len(a) != 2 || a[0].Address != "10.250.0.7" || a[1].Address != name {
		t.Errorf("addresses %v", a)
	}
	lease := &coordinationv1.Lease{}
	w.api.Get(t, leasePath, lease)
	if *lease.Spec.LeaseDurationSeconds != 40 || lease.OwnerReferences[0].UID != n.UID {
		t.Errorf("lease %+v", lease)
	}
}

func TestHeartbeats(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	first, begin := w.node(), w.clock.Now()
	w.until("a new status", func() bool {
		ready := w.node().Status.Conditions[4]
		return ready.LastHeartbeatTime.After(first.Status.Conditions[4].LastHeartbeatTime.Time)
	})
	if took := w.clock.Since(begin); took < statusPeriod {
		t.Errorf("the status is told after %s", took)
	}
	if renewals := w.api.Requests("PUT " + leasePath + " by " + user); renewals < 28 || renewals > 31 {
		t.Errorf("in five minutes the Lease was renewed %d times", renewals)
	}
	if ready := w.node().Status.Conditions[4]; ready.Type != corev1.NodeReady ||
		!ready.LastTransitionTime.Equal(&first.Status.Conditions[4].LastTransitionTime) {
		t.Errorf("the condition %+v, at first %+v", ready, first.Status.Conditions[4])
	}
}

func TestRegistersAgain(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	uid := w.node().UID
	w.api.Delete(nodePath)
	w.api.Delete(leasePath)
	w.until("another Node with a Lease of its own", func() bool {
		lease, n := &coordinationv1.Lease{}, w.node()
		return n != nil && n.UID != uid && w.api.Get(t, leasePath, lease) && lease.OwnerReferences[0].UID == n.UID
	})
}

func TestOutage(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	w.api.Refuse("PUT "+leasePath, http.StatusInternalServerError)
	w.until("an old Lease", func() bool { return w.clock.Since(w.renewed()) > leaseSeconds*time.Second })
	w.api.Refuse("PUT "+leasePath, 0)
	w.until("a Lease again", w.alive)
}

func TestRestartsWithItsCertificate(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	w.stop()
	if err := w.machine.Files.Remove(node.PathKubeconfigBootstrap); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(time.Hour)
	begin := w.clock.Now()
	w.start()
	w.until("a Lease again", func() bool { return !w.renewed().Before(begin) })
	if n := w.api.Requests("POST " + requestsPath + " by bootstrap"); n != 1 {
		t.Errorf("it has bootstrapped %d times", n)
	}
}

// A machine that loses its power as soon as its Node exists still has its certificate afterwards: the bootstrap token
// is not valid any more then.
func TestKeepsItsCertificate(t *testing.T) {
	w := newWorld(t)
	w.until("a Node", func() bool { return w.node() != nil })
	w.stop()
	w.machine.Files.LosePower()
	w.api.Refuse("POST "+requestsPath, http.StatusUnauthorized)
	begin := w.clock.Now()
	w.start()
	w.until("a Lease again", func() bool { return w.renewed().After(begin) })
}

func TestUsesOnlyWhatIsKept(t *testing.T) {
	w := newWorld(t)
	w.until("a Node", func() bool { return w.node() != nil })
	w.stop()
	if err := w.machine.Files.Remove(node.PathKubeletClient); err != nil {
		t.Fatal(err)
	}
	w.machine.Files.Full(true)
	begin := w.clock.Now()
	w.start()
	w.until("a new certificate", func() bool {
		_, err := w.machine.Files.ReadFile(node.PathKubeletClient)
		return err == nil
	})
	w.until("a minute without room", func() bool { return w.clock.Since(begin) > time.Minute })
	if w.renewed().After(begin) {
		t.Error("it uses a certificate that is not on the disk")
	}
	w.machine.Files.Full(false)
	w.until("a Lease again", func() bool { return w.renewed().After(begin) })
}

func TestRotates(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	before, _ := w.machine.Files.ReadFile(node.PathKubeletClient)
	w.clock.Step(apitest.Life*rotateAfter/100 - time.Minute)
	w.until("a Lease", w.alive)
	if now, _ := w.machine.Files.ReadFile(node.PathKubeletClient); string(now) != string(before) {
		t.Error("there is a new certificate before its time")
	}
	w.until("a new certificate", func() bool {
		now, _ := w.machine.Files.ReadFile(node.PathKubeletClient)
		return string(now) != string(before)
	})
	if n := w.api.Requests("POST " + requestsPath + " by " + user); n != 1 {
		t.Errorf("it has asked for %d new ones", n)
	}
	begin := w.clock.Now()
	w.until("a Lease with it", func() bool { return w.renewed().After(begin) })
}

func TestBootstrapsAgain(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	w.api.Refuse("PUT "+leasePath, http.StatusUnauthorized)
	w.until("no certificate", func() bool {
		_, err := w.machine.Files.ReadFile(node.PathKubeletClient)
		return errors.Is(err, fs.ErrNotExist)
	})
	w.api.Refuse("PUT "+leasePath, 0)
	begin := w.clock.Now()
	w.until("a Lease again", func() bool { return w.renewed().After(begin) })
}

// TestReplacesCertificateOfAClockAhead checks that a kubelet does not use a certificate that is not valid yet.
func TestReplacesCertificateOfAClockAhead(t *testing.T) {
	w := newWorld(t)
	w.until("a Lease", w.alive)
	w.stop()
	before, _ := w.machine.Files.ReadFile(node.PathKubeletClient)
	ahead := w.clock.Now()
	w.clock.Step(-24 * time.Hour)
	w.start()
	w.until("another certificate", func() bool {
		now, err := w.machine.Files.ReadFile(node.PathKubeletClient)
		return err == nil && string(now) != string(before)
	})
	if !w.clock.Now().Before(ahead) {
		t.Error("it is replaced only when it is valid")
	}
}

func TestNeedsConfiguration(t *testing.T) {
	_, h := hosttest.New(name, clocktesting.NewFakeClock(time.Now()))
	if err := Run(t.Context(), h, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a configuration: %v", err)
	}
}
