package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// sshKeyRotations rotates the key pair of a Shoot with three pools, kills the process meanwhile, and, in the
// long form, hibernates, wakes and migrates the Shoot. After each rotation every node takes the new key and the one
// before, and no older one. A prober that logs in all the time finds no node that refuses both keys of the project.
func (l *landscape) sshKeyRotations(t *testing.T) {
	nodes, rounds := 1, 2
	if testutil.Soaking() {
		nodes, rounds = 10, 20
	}
	k := &killedShoot{l: l, random: killMoments(t), s: l.newShoot(t, "turning", func(spec map[string]any) {
		workers := spec["provider"].(map[string]any)["workers"].([]any)
		first := workers[0].(map[string]any)
		first["minimum"], first["maximum"] = nodes, nodes
		spec["seedName"] = "local"
		spec["provider"].(map[string]any)["workers"] = []any{first, renamed(first, "second"), renamed(first, "third")}
	})}
	k.s.waitForSucceeded(t)
	k.client = k.s.dayLong(t)
	k.s.nodes(t, k.client, 3*nodes)
	d := &rotationDrill{killedShoot: k, nodes: 3 * nodes, prober: &keyProber{s: k.s, shoot: k.client, seen: map[string]bool{}}}
	d.prober.garden.Store(l.kube)
	d.through(t)
	d.prober.run(t)
	for round := range rounds {
		d.rotate(t, round > 0)
		switch {
		case round == rounds/2 && testutil.Soaking():
			d.sleepAndWake(t)
		case round == 3*rounds/4 && testutil.Soaking():
			d.migrate(t)
		}
	}
	d.prober.stop()
	t.Logf("%d logins of the prober", d.prober.logins.Load())
	k.s.delete(t)
	k.s.waitGone(t)
	l.expectNothingForbidden(t)
}

func renamed(worker map[string]any, name string) map[string]any {
	other := maps.Clone(worker)
	other["name"] = name
	return other
}

// dayLong returns an administrator's client for the Shoot's cluster that is valid for the whole of a long test.
func (s *shoot) dayLong(t *testing.T) kubernetes.Interface {
	t.Helper()
	data, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 86400)
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	must(t, err)
	return clientOf(t, config)
}

// rotationDrill is a Shoot whose key pair is rotated.
type rotationDrill struct {
	*killedShoot
	nodes   int
	bastion *bastion
	prober  *keyProber
	keys    []ssh.Signer // of the past, the current one last
}

// through creates a Bastion, which is gone after a migration, and makes the prober log in through it.
func (d *rotationDrill) through(t *testing.T) {
	t.Helper()
	d.bastion = d.s.newBastion(t, fmt.Sprintf("drill-%d", len(d.keys)), "127.0.0.0/8")
	d.prober.bastion.Store(d.bastion)
	if len(d.keys) == 0 {
		d.keys = append(d.keys, d.s.nodeSigner(t))
	}
}

// rotate requests a rotation and, with kill, kills the process some time later.
func (d *rotationDrill) rotate(t *testing.T, kill bool) {
	t.Helper()
	ask := func() { d.s.patch(t, `{"metadata":{"annotations":{"gardener.cloud/operation":"rotate-ssh-keypair"}}}`) }
	if kill {
		d.disturb(t, "a rotation", 4*time.Second, ask)
		d.prober.garden.Store(d.l.kube)
	} else {
		ask()
	}
	d.s.waitForSucceeded(t)
	d.keys = append(d.keys, d.s.nodeSigner(t))
	d.check(t)
}

// check logs in at every node with the current key and the one before, and expects that older ones are refused.
func (d *rotationDrill) check(t *testing.T) {
	t.Helper()
	now := len(d.keys) - 1
	if bytes.Equal(d.keys[now].PublicKey().Marshal(), d.keys[now-1].PublicKey().Marshal()) {
		t.Fatal("the rotation has changed nothing")
	}
	d.s.nodes(t, d.client, d.nodes)
	d.prober.sees(t, d.nodes)
	through, err := login(t.Context(), d.bastion.address, "", ssh.PublicKeys(d.bastion.signer))
	must(t, err)
	defer through.Close()
	list, err := d.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, node := range list.Items {
		for age := range min(3, len(d.keys)) {
			err := loginAt(through, addressOf(&node), d.keys[now-age])
			if age < 2 && err != nil || age == 2 && !refusesKeys(err) {
				t.Errorf("%s, with the key of %d rotations before: %v", node.Name, age, err)
			}
		}
	}
}

func (d *rotationDrill) sleepAndWake(t *testing.T) {
	t.Helper()
	d.s.hibernate(t)
	d.s.waitForSucceeded(t)
	d.s.patch(t, `{"spec":{"hibernation":{"enabled":false}}}`)
	d.s.waitForSucceeded(t)
	d.through(t) // a Shoot that sleeps has no Bastions
	d.check(t)
}

func (d *rotationDrill) migrate(t *testing.T) {
	t.Helper()
	d.s.moveTo(t, "local-2")
	d.s.expectSeed(t, "local-2")
	d.s.waitForSucceeded(t)
	d.through(t)
	d.check(t)
}

// keyProber logs in at all nodes, over and over, with the key pairs that are in the project at that time.
type keyProber struct {
	s       *shoot
	shoot   kubernetes.Interface
	garden  atomic.Value // a kubernetes.Interface, another one when the process has started again
	bastion atomic.Pointer[bastion]
	logins  atomic.Int64
	stop    func()

	mu   sync.Mutex
	seen map[string]bool // the nodes that have been logged in at since it was cleared
}

// run probes until stop is called or the test ends.
func (p *keyProber) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := p.pass(ctx, t); err != nil { // the process has been killed, or the Shoot sleeps
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		}
	}()
	p.stop = func() { cancel(); <-ended }
	t.Cleanup(p.stop)
}

// pass logs in once at each node.
func (p *keyProber) pass(ctx context.Context, t *testing.T) error {
	b := p.bastion.Load()
	through, err := login(ctx, b.address, "", ssh.PublicKeys(b.signer))
	if err != nil {
		return err
	}
	defer through.Close()
	nodes, err := p.shoot.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if err := p.probe(ctx, t, through, &node); err != nil {
			return err
		}
	}
	return nil
}

// probe fails the test if a node refuses both keys of the project, and these have not changed in the meantime.
func (p *keyProber) probe(ctx context.Context, t *testing.T, through *ssh.Client, node *corev1.Node) error {
	for {
		keys, err := p.keys(ctx)
		if err != nil {
			return err
		}
		err = loginAt(through, addressOf(node), keys...)
		if err == nil {
			p.logins.Add(1)
			p.mu.Lock()
			p.seen[node.Name] = true
			p.mu.Unlock()
			return nil
		}
		if !refusesKeys(err) {
			return err
		}
		now, readErr := p.keys(ctx)
		if readErr != nil {
			return readErr
		}
		if fmt.Sprint(fingerprints(now)) == fmt.Sprint(fingerprints(keys)) {
			t.Errorf("at %s, node %s takes neither key of %v: %v", time.Now().Format(time.TimeOnly), node.Name, fingerprints(keys), err)
			return err
		}
	}
}

// keys returns the key pairs in the project.
func (p *keyProber) keys(ctx context.Context) (keys []ssh.Signer, err error) {
	for _, suffix := range []string{".ssh-keypair", ".ssh-keypair.old"} {
		secret, err := p.garden.Load().(kubernetes.Interface).CoreV1().Secrets(shootNamespace).Get(ctx, p.s.name+suffix, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && strings.HasSuffix(suffix, ".old") {
			continue
		}
		if err != nil {
			return nil, err
		}
		key, err := ssh.ParsePrivateKey(secret.Data["id_rsa"])
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// sees waits until the prober has logged in at as many nodes from now on.
func (p *keyProber) sees(t *testing.T, nodes int) {
	t.Helper()
	p.mu.Lock()
	p.seen = map[string]bool{}
	p.mu.Unlock()
	eventually(t, waitTimeout, func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.seen) < nodes {
			return fmt.Errorf("the prober has logged in at %d of %d nodes", len(p.seen), nodes)
		}
		return nil
	})
}

func fingerprints(keys []ssh.Signer) (all []string) {
	for _, key := range keys {
		all = append(all, ssh.FingerprintSHA256(key.PublicKey()))
	}
	return all
}

func addressOf(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

func loginAt(through *ssh.Client, address string, keys ...ssh.Signer) error {
	if address == "" {
		return errors.New("the node has no address")
	}
	conn, err := through.Dial("tcp", net.JoinHostPort(address, "22"))
	if err != nil {
		return err
	}
	client, err := handshake(conn, address, ssh.PublicKeys(keys...))
	if err != nil {
		return err
	}
	return client.Close()
}

// refusesKeys reports whether an SSH server has refused the keys, and has not just ended the connection.
func refusesKeys(err error) bool {
	return err != nil && strings.Contains(err.Error(), "unable to authenticate")
}
