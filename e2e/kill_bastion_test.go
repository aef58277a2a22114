package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// killedUnderBastions kills the process at each of the eight steps of a Bastion's life (docs/bastion.md). After
// the next start, the Bastion is ready or gone, as expected. A Bastion that a client has seen keeps its address and
// host key, and nothing listens at the addresses of Bastions that are gone.
func (l *landscape) killedUnderBastions(t *testing.T, random *rand.Rand) {
	k := &killedBastions{l: l, alive: map[string]*killedBastion{}}
	k.s = l.newShoot(t, "pier", func(spec map[string]any) {
		spec["seedName"] = "local"
		spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)["minimum"] = 1
	})
	k.s.waitForSucceeded(t)
	_, k.node = k.s.nodeAddress(t)
	k.nodeKey = k.s.nodeSigner(t)

	k.create(t, "expires").see(t)
	t.Run("1 user", func(t *testing.T) { k.whileCreated(t, within(random, 20*time.Millisecond)) })
	t.Run("2 admission", func(t *testing.T) {
		k.until(t, "admitted", k.inGarden, func(obj *unstructured.Unstructured) bool {
			seed, _, _ := unstructured.NestedString(obj.Object, "spec", "seedName")
			return seed != "" && obj.GetAnnotations()["gardener.cloud/created-by"] != ""
		})
	})
	t.Run("3 gardenlet", func(t *testing.T) {
		k.until(t, "asked", k.inSeed, func(*unstructured.Unstructured) bool { return true })
	})
	t.Run("4 provider", func(t *testing.T) {
		k.until(t, "booted", k.inSeed, func(obj *unstructured.Unstructured) bool {
			ip, _, _ := unstructured.NestedString(obj.Object, "status", "ingress", "ip")
			return ip != ""
		})
	})
	t.Run("5 told", func(t *testing.T) { k.until(t, "told", k.inGarden, isReady) })
	t.Run("6 session", k.whileUsed)
	t.Run("8 deletion", k.whileDeleted)
	t.Run("7 expiry", k.whileExpiring)
	k.clear(t) // others may have expired as well
	if testutil.Soaking() {
		k.create(t, "stays").see(t)
		for round := range 15 {
			k.atRandom(t, round, func() time.Duration { return within(random, 400*time.Millisecond) })
		}
		k.clear(t)
	}
	k.nothingElseListens(t)
	k.s.delete(t)
	k.s.waitGone(t)
}

// killedBastions are the Bastions of a Shoot in a landscape whose process is killed.
type killedBastions struct {
	l       *landscape
	s       *shoot
	node    string
	nodeKey ssh.Signer
	alive   map[string]*killedBastion
}

// killedBastion is one of these Bastions, with what a client has seen of it.
type killedBastion struct {
	k       *killedBastions
	name    string
	signer  ssh.Signer
	address string
	hostKey []byte
}

// object returns the Bastion that a user creates.
func (b *killedBastion) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{
		Object: meta("operations.gardener.cloud/v1alpha1", "Bastion", shootNamespace, b.name, map[string]any{"spec": map[string]any{
			"shootRef": map[string]any{"name": b.k.s.name}, "sshPublicKey": string(ssh.MarshalAuthorizedKey(b.signer.PublicKey())),
			"ingress": []any{map[string]any{"ipBlock": map[string]any{"cidr": "127.0.0.0/8"}}}}})}
}

// expect makes the key of a Bastion, and records that the Bastion has to exist from now on.
func (k *killedBastions) expect(t *testing.T, name string) *killedBastion {
	t.Helper()
	_, key, err := ed25519.GenerateKey(cryptorand.Reader)
	must(t, err)
	b := &killedBastion{k: k, name: name}
	b.signer, err = ssh.NewSignerFromKey(key)
	must(t, err)
	k.alive[name] = b
	return b
}

// create creates a Bastion. It may exist already, because the process may have been killed before it answered.
func (k *killedBastions) create(t *testing.T, name string) *killedBastion {
	t.Helper()
	b := k.alive[name]
	if b == nil {
		b = k.expect(t, name)
	}
	k.l.create(t, "bastions", b.object().Object)
	return b
}

func (k *killedBastions) inGarden(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	return k.l.watched(t, "bastions", shootNamespace)
}

// inSeed returns the client for the Shoot's Bastions in its seed, whose port changes from start to start.
func (k *killedBastions) inSeed(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(gardenlite(t, k.l.dir, "kubeconfig", "seed", "local").OK(t).Stdout))
	must(t, err)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client.Resource(schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1",
		Resource: "bastions"}).Namespace(k.s.id())
}

// reaches calls ask, waits until a Bastion has reached a state, and returns the Bastion of then. It sees each state
// of the Bastion.
func reaches(t *testing.T, bastions dynamic.ResourceInterface, name string, ask func(),
	reached func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	list, err := bastions.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), shootTimeout)
	defer cancel()
	events, err := bastions.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	must(t, err)
	defer events.Stop()
	ask()
	for event := range events.ResultChan() {
		if obj, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Deleted && obj.GetName() == name && reached(obj) {
			return obj
		}
	}
	t.Fatalf("Bastion %s never came so far", name)
	return nil
}

func isReady(obj *unstructured.Unstructured) bool {
	for _, c := range conditionsOf(obj) {
		if c["type"] == "BastionReady" {
			return c["status"] == "True"
		}
	}
	return false
}

func endpoint(obj *unstructured.Unstructured) string {
	ip, _, _ := unstructured.NestedString(obj.Object, "status", "ingress", "ip")
	port := obj.GetAnnotations()["gardenlite.dev/ssh-port"]
	if ip == "" || port == "" {
		return ""
	}
	return net.JoinHostPort(ip, port)
}

// until creates a Bastion, kills the process as soon as the Bastion has reached a state, and checks it after the
// next start.
func (k *killedBastions) until(t *testing.T, name string, where func(*testing.T) dynamic.ResourceInterface,
	reached func(*unstructured.Unstructured) bool) {
	bastions, b := where(t), k.expect(t, name)
	obj := reaches(t, bastions, name, func() { k.l.create(t, "bastions", b.object().Object) }, reached)
	b.address = endpoint(obj) // clients rely on it from now on
	k.restart(t)
	k.look(t)
}

// restart kills the process and starts it again.
func (k *killedBastions) restart(t *testing.T, args ...string) {
	t.Helper()
	k.l.kill()
	for _, b := range k.alive {
		if b.address != "" && answers(b.address) {
			t.Errorf("the process is dead, and something listens at %s", b.address)
		}
	}
	k.l.up(t, args...)
}

// look expects all Bastions that have to exist, with their former addresses and host keys.
func (k *killedBastions) look(t *testing.T) {
	t.Helper()
	for _, b := range k.alive {
		b.see(t)
	}
	k.nothingElseListens(t)
}

// see waits until a Bastion is ready and leads to the node. It has the address and the host key that it had.
func (b *killedBastion) see(t *testing.T) {
	t.Helper()
	eventually(t, shootTimeout, func(ctx context.Context) error {
		obj, err := b.k.l.at("bastions", shootNamespace).Get(ctx, b.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !isReady(obj) || endpoint(obj) == "" {
			return fmt.Errorf("Bastion %s is not ready: %v", b.name, obj.Object["status"])
		}
		if b.address != "" && b.address != endpoint(obj) {
			t.Fatalf("Bastion %s was at %s and is at %s", b.name, b.address, endpoint(obj))
		}
		b.address = endpoint(obj)
		client, err := b.login(ctx)
		if err != nil {
			return fmt.Errorf("Bastion %s: %w", b.name, err)
		}
		defer client.Close()
		inner, err := b.k.loginNode(client)
		if err != nil {
			return fmt.Errorf("through Bastion %s: %w", b.name, err)
		}
		return inner.Close()
	})
}

func (b *killedBastion) login(ctx context.Context) (*ssh.Client, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", b.address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	c, channels, requests, err := ssh.NewClientConn(
		conn, b.address, &ssh.ClientConfig{User: "gardener", Auth: []ssh.AuthMethod{ssh.PublicKeys(b.signer)},
			HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
				if b.hostKey != nil && !bytes.Equal(b.hostKey, key.Marshal()) {
					return errors.New("it has another host key")
				}
				b.hostKey = key.Marshal()
				return nil
			}})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(c, channels, requests), nil
}

func (k *killedBastions) loginNode(through *ssh.Client) (*ssh.Client, error) {
	conn, err := through.Dial("tcp", net.JoinHostPort(k.node, "22"))
	if err != nil {
		return nil, err
	}
	return handshake(conn, k.node, ssh.PublicKeys(k.nodeKey))
}

// whileCreated kills the process during the creation of a Bastion. If the creation was not acknowledged, the Bastion
// may be missing; then it can be created again.
func (k *killedBastions) whileCreated(t *testing.T, delay time.Duration) {
	b := k.expect(t, "created")
	answered := make(chan error)
	go func() {
		_, err := k.inGarden(t).Create(t.Context(), b.object(), created)
		answered <- err
	}()
	k.l.killAfter(delay)
	acknowledged := <-answered == nil
	k.restart(t)
	_, err := k.inGarden(t).Get(t.Context(), b.name, metav1.GetOptions{})
	t.Logf("acknowledged: %v; after the next start: %v", acknowledged, err)
	if acknowledged {
		must(t, err)
	}
	k.create(t, b.name)
	k.look(t)
}

// whileUsed kills the process while there is a session on the node.
func (k *killedBastions) whileUsed(t *testing.T) {
	client, err := k.alive["told"].login(t.Context())
	must(t, err)
	defer client.Close()
	inner, err := k.loginNode(client)
	must(t, err)
	session, err := inner.NewSession()
	must(t, err)
	must(t, session.Start("sleep 600"))
	k.restart(t)
	if err := session.Wait(); err == nil {
		t.Error("the session ended as if the command had")
	}
	k.look(t)
}

// whileDeleted kills the process when a deletion has reached the seed. Before that, the Bastion "expires" gets its
// delay, so that the next step can be seen.
func (k *killedBastions) whileDeleted(t *testing.T) {
	delay := k.alive["expires"]
	delay.annotate(t, `{"gardenlite.dev/delay":"1h"}`)
	inSeed := k.inSeed(t)
	eventually(t, shootTimeout, func(ctx context.Context) error {
		obj, err := inSeed.Get(ctx, delay.name, metav1.GetOptions{})
		if err == nil && obj.GetAnnotations()["gardenlite.dev/delay"] == "" {
			err = errors.New("the delay has not come to the seed")
		}
		return err
	})
	b := k.alive["admitted"]
	reaches(t, inSeed, b.name, func() { k.delete(t, b) },
		func(obj *unstructured.Unstructured) bool { return obj.GetDeletionTimestamp() != nil })
	k.restart(t, "--bastion-max-lifetime", "10s")
	k.gone(t, b)
}

// whileExpiring kills the process when the controller-manager has deleted an expired Bastion.
func (k *killedBastions) whileExpiring(t *testing.T) {
	b := k.alive["expires"]
	deleted := func(ctx context.Context) error {
		obj, err := k.inGarden(t).Get(ctx, b.name, metav1.GetOptions{})
		if err == nil && obj.GetDeletionTimestamp() == nil {
			err = fmt.Errorf("Bastion %s is older than 10 s, and is not being deleted: created %s", b.name, obj.GetCreationTimestamp())
		}
		return err
	}
	eventually(t, waitTimeout, deleted)
	k.restart(t)
	must(t, deleted(t.Context()))
	b.annotate(t, `{"gardenlite.dev/delay":null}`)
	k.gone(t, b)
}

// atRandom kills the process some time after a Bastion was created, and again some time after it was deleted.
func (k *killedBastions) atRandom(t *testing.T, round int, delay func() time.Duration) {
	t.Helper()
	b := k.create(t, fmt.Sprintf("random%d", round))
	k.l.killAfter(delay())
	k.restart(t)
	k.look(t)
	k.delete(t, b)
	k.l.killAfter(delay())
	k.restart(t)
	k.gone(t, b)
}

func (b *killedBastion) annotate(t *testing.T, annotations string) {
	t.Helper()
	_, err := b.k.inGarden(t).Patch(t.Context(), b.name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":`+annotations+`}}`), metav1.PatchOptions{})
	must(t, err)
}

func (k *killedBastions) delete(t *testing.T, b *killedBastion) {
	t.Helper()
	if err := k.inGarden(t).Delete(t.Context(), b.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// clear deletes all Bastions, some of which may be gone already.
func (k *killedBastions) clear(t *testing.T) {
	t.Helper()
	for _, b := range maps.Clone(k.alive) {
		k.delete(t, b)
		k.gone(t, b)
	}
}

// gone waits until a Bastion that is being deleted is gone from the garden and from the seed.
func (k *killedBastions) gone(t *testing.T, b *killedBastion) {
	t.Helper()
	inSeed := k.inSeed(t)
	eventually(t, shootTimeout, func(ctx context.Context) error {
		for _, bastions := range []dynamic.ResourceInterface{k.inGarden(t), inSeed} {
			obj, err := bastions.Get(ctx, b.name, metav1.GetOptions{})
			if err == nil {
				err = fmt.Errorf("%s %s is there: %v", obj.GetAPIVersion(), b.name, obj.Object["status"])
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
	if answers(b.address) {
		t.Errorf("Bastion %s has gone, and something listens at %s", b.name, b.address)
	}
	delete(k.alive, b.name)
}

// nothingElseListens compares the addresses in the range of bastions at which the process listens with those of the
// existing Bastions, which are all ready.
func (k *killedBastions) nothingElseListens(t *testing.T) {
	t.Helper()
	listening, known := listeners(t, k.l.cmd.Process.Pid)
	if !known {
		return
	}
	var wanted []string
	for _, b := range k.alive {
		wanted = append(wanted, b.address)
	}
	slices.Sort(wanted)
	var found []string
	for _, address := range listening {
		if bastionRange.Contains(address.Addr()) {
			found = append(found, address.String())
		}
	}
	slices.Sort(found)
	if !slices.Equal(wanted, found) {
		t.Errorf("the process listens at %v for the Bastions at %v", found, wanted)
	}
}

// bastionRange is the range of the bastions' addresses, if the host has them.
var bastionRange = netip.MustParsePrefix("127.64.0.0/10")

// listeners returns the IPv4 addresses at which a process listens. known is false where the host does not tell them.
func listeners(t *testing.T, pid int) (addresses []netip.AddrPort, known bool) {
	t.Helper()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return nil, false
	}
	own := map[string]bool{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must(t, err)
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil {
			own[target] = true
		}
	}
	const listening = "0A"
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != listening || !own["socket:["+fields[9]+"]"] {
			continue
		}
		var ip [4]byte
		var port uint16
		_, err := fmt.Sscanf(fields[1], "%02X%02X%02X%02X:%04X", &ip[3], &ip[2], &ip[1], &ip[0], &port)
		must(t, err)
		addresses = append(addresses, netip.AddrPortFrom(netip.AddrFrom4(ip), port))
	}
	return addresses, true
}
