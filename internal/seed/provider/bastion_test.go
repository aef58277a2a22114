package provider

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/bastionsim"
	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/injection"
	"github.com/gardenlite/gardenlite/internal/seed/provider/machines"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// bastionWorld is a seed with the controller of Bastions, and a real cloud.
type bastionWorld struct {
	*testing.T
	seed  client.WithWatch
	cloud *cloud.Cloud
	dir   string // of the cloud
	clock *clocktesting.FakeClock
	r     *Reconciler
	key   ssh.Signer
}

func newBastionWorld(t *testing.T) *bastionWorld {
	t.Helper()
	dir := t.TempDir()
	c, err := cloud.Open(cloud.Config{Dir: dir, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	w := &bastionWorld{T: t, seed: newSeed(), cloud: c, dir: dir, clock: clocktesting.NewFakeClock(time.Now()), key: key}
	for _, kind := range Kinds(Config{Cloud: c, Clock: w.clock, guard: &machines.Guard{}}) {
		if kind.Name == "bastion" {
			w.r = &Reconciler{Kind: kind, Client: w.seed, Reader: w.seed, Clock: w.clock}
		}
	}
	return w
}

func (w *bastionWorld) create(objects ...client.Object) {
	w.Helper()
	for _, obj := range objects {
		if err := w.seed.Create(w.Context(), obj); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *bastionWorld) secret() client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "cloudprovider"}}
}

func (w *bastionWorld) cluster() client.Object {
	w.Helper()
	raw, err := json.Marshal(&corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Hibernation: &corev1beta1.Hibernation{Enabled: ptr.To(true)}}})
	if err != nil {
		w.Fatal(err)
	}
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: technicalID}}
	cluster.Spec.Shoot.Raw = raw
	return cluster
}

func (w *bastionWorld) network() {
	w.Helper()
	if err := w.cloud.EnsureNetwork(w.Context(), technicalID, netip.MustParsePrefix("10.1.0.0/16")); err != nil {
		w.Fatal(err)
	}
}

func (w *bastionWorld) bastion(name string, cidrs ...string) *extensionsv1alpha1.Bastion {
	script := "#!/bin/bash -eu\nid gardener || useradd gardener -mU\nmkdir -p /home/gardener/.ssh\necho \"" +
		strings.TrimSpace(string(ssh.MarshalAuthorizedKey(w.key.PublicKey()))) +
		"\" > /home/gardener/.ssh/authorized_keys\nchown gardener:gardener /home/gardener/.ssh/authorized_keys\nmkdir -p /etc/sudoers.d\n" +
		"echo 'gardener ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/gardener\nsystemctl start sshd || systemctl start ssh\n"
	return &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: name}, Spec: extensionsv1alpha1.BastionSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, UserData: []byte(script), Ingress: ingress(cidrs...),
	}}
}

func ingress(cidrs ...string) (policies []extensionsv1alpha1.BastionIngressPolicy) {
	for _, cidr := range cidrs {
		policies = append(policies, extensionsv1alpha1.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: cidr}})
	}
	return policies
}

// reconcile reconciles a Bastion once, and returns the result, nil if the Bastion is gone.
func (w *bastionWorld) reconcile(name string) (*extensionsv1alpha1.Bastion, error) {
	w.Helper()
	err := w.reconcileOnly(name)
	return w.get(name), err
}

func (w *bastionWorld) reconcileOnly(name string) error {
	_, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: technicalID, Name: name}})
	return err
}

func (w *bastionWorld) get(name string) *extensionsv1alpha1.Bastion {
	w.Helper()
	bastion := &extensionsv1alpha1.Bastion{}
	if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: technicalID, Name: name}, bastion); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.Fatal(err)
	}
	return bastion
}

func (w *bastionWorld) mustSucceed(name string, kind corev1beta1.LastOperationType) *extensionsv1alpha1.Bastion {
	w.Helper()
	bastion, err := w.reconcile(name)
	if err != nil || !operation.Is(bastion.Status.LastOperation, kind, corev1beta1.LastOperationStateSucceeded) {
		w.Fatalf("%v: %+v", err, bastion)
	}
	if c := bastion.Status.Conditions; len(c) != 1 || c[0].Type != "BastionReady" || c[0].Status != "True" ||
		c[0].Reason != "SuccessfullyReconciled" {
		w.Errorf("conditions %+v", c)
	}
	return bastion
}

func address(bastion *extensionsv1alpha1.Bastion) string {
	return net.JoinHostPort(bastion.Status.Ingress.IP, bastion.Annotations["gardenlite.dev/ssh-port"])
}

func (w *bastionWorld) login(bastion *extensionsv1alpha1.Bastion) (*ssh.Client, error) {
	return ssh.Dial("tcp", address(bastion), &ssh.ClientConfig{
		User: "gardener", Auth: []ssh.AuthMethod{ssh.PublicKeys(w.key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: testutil.Timeout,
	})
}

// TestBastionMisses checks that the status reports what is missing, and that nothing is created before all of it exists.
func TestBastionMisses(t *testing.T) {
	w := newBastionWorld(t)
	w.create(w.bastion("x", "127.0.0.1/32"))
	for _, step := range []struct {
		missing string
		add     func()
	}{
		{"Secret shoot--dev--a/cloudprovider", func() { w.create(w.secret()) }},
		{"Cluster shoot--dev--a", func() { w.create(w.cluster()) }},
		{"network shoot--dev--a", w.network},
	} {
		bastion, err := w.reconcile("x")
		if err == nil || bastion.Status.LastError == nil || !strings.Contains(bastion.Status.LastError.Description, step.missing) ||
			bastion.Status.Ingress != nil {
			t.Fatalf("without the %s: %v, %+v", step.missing, err, bastion.Status)
		}
		if c := bastion.Status.Conditions; len(c) != 1 || c[0].Type != "BastionReady" || c[0].Status != "False" ||
			!strings.Contains(c[0].Message, step.missing) {
			t.Errorf("without the %s: conditions %+v", step.missing, c)
		}
		step.add()
	}
	if bastion := w.mustSucceed("x", "Create"); bastion.Status.LastError != nil {
		t.Errorf("last error %+v", bastion.Status.LastError)
	}
	for name, broken := range map[string]*extensionsv1alpha1.Bastion{
		"cidr": w.bastion("cidr", "10.0.0.0/33"), "except": w.bastion("except"), "size": w.bastion("size"), "script": w.bastion("script"),
	} {
		switch name {
		case "except":
			broken.Spec.Ingress = []extensionsv1alpha1.BastionIngressPolicy{
				{IPBlock: networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"x"}}}}
		case "size":
			broken.Spec.UserData = make([]byte, cloud.MaxUserData+1)
		case "script":
			broken.Spec.UserData = []byte("#!/bin/bash\nexit 7\n")
		}
		w.create(broken)
		bastion, err := w.reconcile(name)
		if err == nil || len(bastion.Status.LastError.Codes) != 1 || bastion.Status.LastError.Codes[0] != corev1beta1.ErrorConfigurationProblem {
			t.Errorf("%s: %v, %+v", name, err, bastion.Status.LastError)
		}
	}
}

// TestBastionLife covers the connection of a user to a node, a change of the allowed addresses, and the deletion.
func TestBastionLife(t *testing.T) {
	w := newBastionWorld(t)
	w.network()
	w.create(w.secret(), w.cluster(), w.bastion("x", "127.0.0.1/32"), w.bastion("y", "127.0.0.1/32"))
	node, err := w.cloud.EnsureInstance(t.Context(), cloud.InstanceSpec{ID: "node", Network: technicalID,
		UserData: w.bastion("node").Spec.UserData, Tags: map[string]string{cloud.TagMachine: technicalID}})
	if err != nil {
		t.Fatal(err)
	}
	x, y := w.mustSucceed("x", "Create"), w.mustSucceed("y", "Create")
	if address(x) == address(y) {
		t.Errorf("both are at %s", address(x))
	}
	clientX, errX := w.login(x)
	clientY, errY := w.login(y)
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	defer clientY.Close()
	if conn, err := clientX.Dial("tcp", netip.AddrPortFrom(node.Address, 22).String()); err != nil {
		t.Errorf("to the node: %v", err)
	} else {
		_ = conn.Close()
	}
	cut := func(client *ssh.Client) {
		t.Helper()
		ended := make(chan struct{})
		go func() { defer close(ended); _ = client.Wait() }()
		select {
		case <-ended:
		case <-time.After(testutil.Timeout):
			t.Error("the connection has not ended")
		}
	}
	x.Spec.Ingress = ingress("10.0.0.0/8")
	annotate(x, func(a map[string]string) { a["gardener.cloud/operation"] = "reconcile" })
	if err := w.seed.Update(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if again := w.mustSucceed("x", "Reconcile"); address(again) != address(x) {
		t.Errorf("it was at %s, is at %s", address(x), address(again))
	}
	cut(clientX)
	if _, err := w.login(x); err == nil {
		t.Error("who is not allowed can connect")
	}
	for _, name := range []string{"x", "y"} {
		if err := w.seed.Delete(t.Context(), w.bastion(name)); err != nil {
			t.Fatal(err)
		}
		if left, err := w.reconcile(name); err != nil || left != nil {
			t.Errorf("%v: left is %+v", err, left)
		}
	}
	cut(clientY)
	if _, err := net.Dial("tcp", address(y)); err == nil {
		t.Error("other listens")
	}
	if left := w.cloud.Instances(technicalID); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// The ingress is applied even if the rest of the reconciliation fails.
func TestBastionIngressFirst(t *testing.T) {
	w := newBastionWorld(t)
	w.network()
	secret := w.secret()
	w.create(secret, w.cluster(), w.bastion("x", "127.0.0.1/32"))
	x := w.mustSucceed("x", "Create")
	x.Spec.Ingress = ingress("10.0.0.0/8")
	annotate(x, func(a map[string]string) { a["gardener.cloud/operation"] = "reconcile" })
	if err := w.seed.Update(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if err := w.seed.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile("x"); err == nil {
		t.Error("it succeeds without the secret")
	}
	if _, err := w.login(x); err == nil {
		t.Error("who is not allowed can connect")
	}
}

// TestBastionFirewallCloses checks that connections that the spec does not allow are closed and refused, even if an
// operation does not succeed. A spec that cannot be applied and a Bastion that is being deleted allow no connections.
func TestBastionFirewallCloses(t *testing.T) {
	for name, change := range map[string]func(*extensionsv1alpha1.Bastion){
		"fails":           func(x *extensionsv1alpha1.Bastion) { x.Annotations[injection.AnnotationFail] = "always" },
		"takes long":      func(x *extensionsv1alpha1.Bastion) { x.Annotations[injection.AnnotationDelay] = "1h" },
		"not requested":   func(x *extensionsv1alpha1.Bastion) { delete(x.Annotations, "gardener.cloud/operation") },
		"no CIDR":         func(x *extensionsv1alpha1.Bastion) { x.Spec.Ingress = ingress("127.0.0.0/8", "10.0.0.0/08") },
		"too many ranges": func(x *extensionsv1alpha1.Bastion) { x.Spec.Ingress = slices.Repeat(ingress("127.0.0.0/8"), 257) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newBastionWorld(t)
			w.network()
			w.create(w.secret(), w.cluster(), w.bastion("x", "127.0.0.1/32"))
			x := w.mustSucceed("x", "Create")
			w.cutsWhen(x, func() {
				x.Spec.Ingress = ingress("10.0.0.0/8")
				annotate(x, func(a map[string]string) { a["gardener.cloud/operation"] = "reconcile" })
				change(x)
				if err := w.seed.Update(t.Context(), x); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	t.Run("deletion fails", func(t *testing.T) {
		w := newBastionWorld(t)
		w.network()
		bastion := w.bastion("x", "127.0.0.1/32")
		w.create(w.secret(), w.cluster(), bastion)
		x := w.mustSucceed("x", "Create")
		annotate(x, func(a map[string]string) { a[injection.AnnotationFail] = "always" })
		if err := w.seed.Update(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		w.cutsWhen(x, func() {
			if err := w.seed.Delete(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// cutsWhen expects that a change, once it is reconciled, ends the connections of a Bastion.
func (w *bastionWorld) cutsWhen(x *extensionsv1alpha1.Bastion, change func()) {
	w.Helper()
	open, err := w.login(x)
	if err != nil {
		w.Fatal(err)
	}
	defer open.Close()
	change()
	_ = w.reconcileOnly(x.Name) // some fail
	_ = open.Wait()             // or the test never ends
	if again, err := w.login(x); err == nil {
		_ = again.Close()
		w.Error("who is not allowed can connect")
	}
}

// TestBastionForce checks that a forced deletion ignores injected delays and failures, and that any other one does not.
func TestBastionForce(t *testing.T) {
	w := newBastionWorld(t)
	w.network()
	w.create(w.secret(), w.cluster(), w.bastion("x", "127.0.0.1/32"))
	x := w.mustSucceed("x", "Create")
	annotate(x, func(a map[string]string) { a[injection.AnnotationFail], a[injection.AnnotationDelay] = "always", "0s" })
	if err := w.seed.Update(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if err := w.seed.Delete(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if left, err := w.reconcile("x"); err == nil || left == nil || len(w.cloud.Instances(technicalID)) != 1 {
		t.Fatalf("it does not fail: %v, %+v", err, left)
	}
	before, err := w.reconcile("x")
	if err == nil {
		t.Fatal("it does not fail again")
	}
	after := before.DeepCopy()
	annotate(after, func(a map[string]string) {
		a["confirmation.gardener.cloud/force-deletion"], a[injection.AnnotationDelay] = "true", "1h"
	})
	if err := w.seed.Update(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if left, err := w.reconcile("x"); err != nil || left != nil || len(w.cloud.Instances(technicalID)) != 0 {
		t.Errorf("by force: %v, left is %+v", err, left)
	}
}

// TestLostBastions checks that an instance without a Bastion does not block the deletion of its network, but others do.
func TestLostBastions(t *testing.T) {
	w := newBastionWorld(t)
	w.network()
	w.create(w.secret(), w.cluster(), w.bastion("x", "127.0.0.1/32"), w.bastion("lost", "127.0.0.1/32"))
	w.mustSucceed("x", "Create")
	lost := w.mustSucceed("lost", "Create")
	if err := operation.RemoveFinalizers(t.Context(), w.seed, lost, w.r.Kind.Finalizer()); err != nil {
		t.Fatal(err)
	}
	if err := w.seed.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	infra := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "a"}}
	err := infrastructure{w.cloud}.delete(t.Context(), w.seed, infra)
	if left := w.cloud.Instances(technicalID); !errors.Is(err, cloud.ErrInUse) || len(left) != 1 ||
		left[0].ID != bastionsim.InstanceID(w.bastion("x")) {
		t.Errorf("%v, left are %v", err, left)
	}
}

// bastionWatch compares two Bastions, which have been created, with their instances. A change of an instance outside of an
// operation is noticed and reported in the status, and so is its recovery.
type bastionWatch struct {
	*bastionWorld
	watcher *bastionsim.Watcher
	x, y    *extensionsv1alpha1.Bastion
}

func newBastionWatch(t *testing.T) *bastionWatch {
	t.Helper()
	world := newBastionWorld(t)
	w := &bastionWatch{bastionWorld: world,
		watcher: &bastionsim.Watcher{Provider: bastionsim.Provider{Cloud: world.cloud, Clock: world.clock}, Cache: world.seed}}
	w.network()
	w.create(w.secret(), w.cluster(), w.bastion("x", "127.0.0.1/32"), w.bastion("y", "127.0.0.1/32"))
	w.expectChanged("nothing was made of them yet")
	w.x, w.y = w.mustSucceed("x", "Create"), w.mustSucceed("y", "Create")
	w.expectChanged("both run")
	return w
}

// expectChanged expects the Bastions that the watcher finds out of sync with their instances.
func (w *bastionWatch) expectChanged(when string, names ...string) {
	w.Helper()
	changed, err := w.watcher.Compare(w.Context())
	var got []string
	for _, b := range changed {
		got = append(got, b.Name)
	}
	if err != nil || !slices.Equal(got, names) {
		w.Fatalf("%s: %v, %v, not %v", when, got, err, names)
	}
}

// expectCondition checks the error of a reconciliation, and the condition that it has written.
func (w *bastionWatch) expectCondition(name string, err error, status, message string) {
	w.Helper()
	bastion := w.get(name)
	if (err == nil) != (status == "True") || len(bastion.Status.Conditions) != 1 {
		w.Fatalf("%s: %v, %+v", name, err, bastion.Status)
	}
	if c := bastion.Status.Conditions[0]; string(c.Status) != status || !strings.Contains(c.Message, message) {
		w.Errorf("%s: %+v", name, c)
	}
}

// restart replaces the cloud with one that has the same state.
func (w *bastionWatch) restart(c Cloud) {
	w.watcher.Cloud = c
	for _, kind := range Kinds(Config{Cloud: c, Clock: w.clock, guard: &machines.Guard{}}) {
		if kind.Name == "bastion" {
			w.r.Kind = kind
		}
	}
}

func TestBastionAddressTaken(t *testing.T) {
	w := newBastionWatch(t)
	if err := w.cloud.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", address(w.x))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	again, err := cloud.Open(cloud.Config{Dir: w.dir, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	w.restart(again)
	<-again.Ready(bastionsim.InstanceID(w.x))
	<-again.Ready(bastionsim.InstanceID(w.y))
	w.expectChanged("the address is taken", "x")
	moved, err := w.reconcile("x")
	if err != nil || address(moved) == address(w.x) || moved.Status.Conditions[0].Status != "True" {
		t.Errorf("it was at %s: %v, %+v", address(w.x), err, moved.Status)
	}
	w.expectChanged("it is reported")
	if got, err := w.reconcile("y"); err != nil || address(got) != address(w.y) || got.Status.Conditions[0].Status != "True" {
		t.Errorf("the other one: %v, %+v", err, got.Status)
	}
}

func TestBastionPoweredOff(t *testing.T) {
	w := newBastionWatch(t)
	client, err := w.login(w.y)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	_ = session.Run("sudo poweroff") // which cuts the session
	w.becomes(w.cloud, w.y, func(i cloud.Instance) bool { return i.State == cloud.Stopped })
	w.expectChanged("it is off", "y")
	w.expectCondition("y", w.reconcileOnly("y"), "False", "powered off from within")
	w.expectChanged("it is reported")
}

func TestBastionInstanceLost(t *testing.T) {
	w := newBastionWatch(t)
	if err := w.cloud.DeleteInstance(t.Context(), bastionsim.InstanceID(w.x)); err != nil {
		t.Fatal(err)
	}
	w.expectChanged("it is lost", "x")
	w.expectCondition("x", w.reconcileOnly("x"), "True", "")
	w.expectChanged("there is another one")
}

// becomes waits until the instance of a Bastion is as wanted.
func (w *bastionWorld) becomes(c Cloud, bastion *extensionsv1alpha1.Bastion, wanted func(cloud.Instance) bool) {
	w.Helper()
	testutil.Eventually(w, testutil.Timeout, func(context.Context) error {
		instance, _ := c.Instance(bastionsim.InstanceID(bastion))
		if wanted(instance) {
			return nil
		}
		return fmt.Errorf("the instance of %s is %s: %s", bastion.Name, instance.State, instance.Message)
	})
}
