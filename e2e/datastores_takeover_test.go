package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestDatastoresTakeover runs one landscape by two processes on etcd, in the soak also on PostgreSQL, with Shoots that have nodes, a
// Bastion with an open session, and clients that write. The process that works on the seeds is killed, in the soak 20 times: the other
// one goes on with all of it, or the same one if it is back before. No write is lost that was acknowledged.
func TestDatastoresTakeover(t *testing.T) {
	t.Parallel()
	datastores := map[string]func(*testing.T) string{"etcd": datastoretest.StartEtcd}
	shoots, rounds := 1, 2
	if testutil.Soaking() {
		datastores["PostgreSQL"] = datastoretest.StartPostgreSQL
		shoots, rounds = 3, 20
	}
	for name, start := range datastores {
		t.Run(name, func(t *testing.T) {
			endpoint := start(t)
			w := newTakeover(t, endpoint, shoots)
			for round := range rounds {
				w.killed(t, round)
			}
			w.nothingLost(t)
			for _, p := range w.processes {
				p.expectNothingForbidden(t)
			}
		})
	}
}

// takeoverWorld is a landscape of two processes.
type takeoverWorld struct {
	flags     []string
	random    *rand.Rand
	processes []*landscape
	shoots    []*shoot
	bastion   *bastion
	// ids are the machine IDs of the Shoots' nodes, by Shoot.
	ids map[string]string

	mu      sync.Mutex
	garden  map[string]string // the UIDs of acknowledged ConfigMaps, by name
	inShoot map[string]string
	clients []kubernetes.Interface // of the garden
	shoot   kubernetes.Interface
}

func newTakeover(t *testing.T, endpoint string, shoots int) *takeoverWorld {
	w := &takeoverWorld{flags: []string{"--datastore", endpoint}, random: killMoments(t), ids: map[string]string{},
		garden: map[string]string{}, inShoot: map[string]string{}}
	for range 2 {
		l := stoppedLandscape(t)
		l.up(t, w.flags...)
		w.processes = append(w.processes, l)
	}
	for i := range shoots {
		w.shoots = append(w.shoots, w.processes[0].newShoot(t, fmt.Sprint("shoot-", i), func(spec map[string]any) {
			worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
			worker["minimum"], worker["maximum"] = 1, 1
		}))
	}
	for _, s := range w.shoots {
		s.waitForSucceeded(t)
		s.healthy(t)
		s.ssh(t, "--", "echo "+s.name+" >kept; sync").OK(t)
		w.ids[s.name] = s.ssh(t, "--", "cat /etc/machine-id").OK(t).Stdout
	}
	w.bastion = w.shoots[0].newBastion(t, "open", "127.0.0.0/8")
	w.connect(t, w.processes[0])
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	writers.Go(func() {
		w.write(ctx, "garden", w.garden, func(i int) kubernetes.Interface { return w.clients[i%2] })
	})
	writers.Go(func() { w.write(ctx, "shoot", w.inShoot, func(int) kubernetes.Interface { return w.shoot }) })
	t.Cleanup(func() { cancel(); writers.Wait() })
	return w
}

// connect makes the clients of the writers: an address changes if another program has the port.
func (w *takeoverWorld) connect(t *testing.T, garden *landscape) {
	t.Helper()
	w.shoots[0].l = garden
	shoot := w.shoots[0].admin(t)
	shoot.Timeout = 5 * time.Second
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shoot = clientOf(t, shoot)
	w.clients = nil
	for _, p := range w.processes {
		config := rest.CopyConfig(p.admin)
		config.Timeout = 5 * time.Second
		w.clients = append(w.clients, clientOf(t, config))
	}
}

// write creates ConfigMaps until the context ends, and remembers those that were acknowledged.
func (w *takeoverWorld) write(ctx context.Context, prefix string, acknowledged map[string]string, client func(i int) kubernetes.Interface) {
	for i := 0; ctx.Err() == nil; i++ {
		w.mu.Lock()
		c := client(i)
		w.mu.Unlock()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(prefix, "-", i)}}
		made, err := c.CoreV1().ConfigMaps("default").Create(ctx, object, created)
		if err == nil {
			w.mu.Lock()
			acknowledged[made.Name] = string(made.UID)
			w.mu.Unlock()
		}
	}
}

// leader returns the process that works on the seeds, and the other one.
func (w *takeoverWorld) leader(t *testing.T) (leader, other *landscape) {
	t.Helper()
	for i, p := range w.processes {
		for _, c := range componentsOf(t, p.dir) {
			if c.Name == "gardenlet local" {
				return p, w.processes[1-i]
			}
		}
	}
	t.Fatal("no process works on the seeds")
	return nil, nil
}

// killed kills the process that works on the seeds at a random moment and starts it again, at once or after the other one has
// followed it. Everything works again meanwhile, and then.
func (w *takeoverWorld) killed(t *testing.T, round int) {
	t.Helper()
	leader, other := w.leader(t)
	session, err := login(t.Context(), w.bastion.address, "", ssh.PublicKeys(w.bastion.signer))
	must(t, err)
	leader.killAfter(within(w.random, 5*time.Second))
	began := time.Now()
	if err := session.Wait(); err == nil {
		t.Error("the session ended as if its user had ended it")
	}
	if round%2 == 1 {
		leader.up(t, w.flags...)
	}
	w.works(t, other)
	took := time.Since(began)
	t.Logf("round %d: everything works after %s", round, took.Round(time.Millisecond))
	if round%2 == 0 {
		leader.up(t, w.flags...)
	}
	w.connect(t, other)
}

// works waits until every Shoot, node and Bastion can be used, at the address that the garden of a process names.
func (w *takeoverWorld) works(t *testing.T, garden *landscape) {
	t.Helper()
	for _, s := range w.shoots {
		s.l = garden
		eventually(t, shootTimeout, func(ctx context.Context) error { return s.answers(ctx) })
		if r := s.ssh(t, "--", "cat kept").OK(t); strings.TrimSpace(r.Stdout) != s.name {
			t.Errorf("the node of %s has %q", s.name, r.Stdout)
		}
		if r := s.ssh(t, "--", "cat /etc/machine-id").OK(t); r.Stdout != w.ids[s.name] {
			t.Errorf("the node of %s is another machine", s.name)
		}
	}
	eventually(t, shootTimeout, func(ctx context.Context) error {
		w.bastion.ready(t)
		client, err := login(ctx, w.bastion.address, "", ssh.PublicKeys(w.bastion.signer))
		if err != nil {
			return err
		}
		return client.Close()
	})
	for _, s := range w.shoots {
		s.healthy(t)
	}
}

// answers returns an error unless a kubeconfig that the garden issues now reaches the Shoot at an address of its status, and its node
// is ready.
func (s *shoot) answers(ctx context.Context) error {
	data, err := s.kubeconfig(ctx, s.l.kube, "Admin", 600)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return err
	}
	config.Timeout = 5 * time.Second
	obj, err := s.get(ctx)
	if err != nil {
		return err
	}
	addresses, _, _ := unstructured.NestedSlice(obj.Object, "status", "advertisedAddresses")
	if !strings.Contains(fmt.Sprint(addresses), config.Host+"]") {
		return fmt.Errorf("the kubeconfig names %s, the status %v", config.Host, addresses)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
	}
	return errors.New("its node is not ready")
}

// nothingLost expects each object that was acknowledged to a client.
func (w *takeoverWorld) nothingLost(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, check := range map[string]struct {
		client       kubernetes.Interface
		acknowledged map[string]string
	}{"garden": {w.processes[0].kube, w.garden}, "shoot": {w.shoot, w.inShoot}} {
		for name, uid := range check.acknowledged {
			found, err := check.client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				t.Errorf("%s: a write that was acknowledged is lost: %s", what, name)
			case err != nil:
				t.Fatal(err)
			case string(found.UID) != uid:
				t.Errorf("%s: %s is another object", what, name)
			}
		}
		t.Logf("%s: %d writes acknowledged", what, len(check.acknowledged))
		if len(check.acknowledged) == 0 {
			t.Errorf("%s: no write was acknowledged", what)
		}
	}
}
