package sshclient

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardenlite/gardenlite/internal/garden/shootclient"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func sampleShoot() *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"},
		Spec:   corev1beta1.ShootSpec{SeedName: ptr.To("local"), Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "w"}}}},
		Status: corev1beta1.ShootStatus{TechnicalID: "shoot--dev--x"}}
}

// fakeGarden returns a client for a garden with objects. onWatch, if set, is called when the client begins to watch.
func fakeGarden(t *testing.T, clk *clocktesting.FakeClock, onWatch func(client.WithWatch), objects ...client.Object) *Client {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&operationsv1alpha1.Bastion{}).Build()
	if onWatch == nil {
		return newClient(c, clk)
	}
	return newClient(watched{c, onWatch}, clk)
}

// watched calls onWatch after a watch has begun, so that the watch sees what onWatch does.
type watched struct {
	client.WithWatch
	onWatch func(client.WithWatch)
}

func (w watched) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	// The fake client knows no fields.
	events, err := w.WithWatch.Watch(ctx, list, client.InNamespace("garden-dev"))
	if err == nil {
		go w.onWatch(w.WithWatch)
	}
	return events, err
}

func TestReachable(t *testing.T) {
	for says, change := range map[string]func(*corev1beta1.Shoot){
		"":              func(*corev1beta1.Shoot) {},
		"being deleted": func(s *corev1beta1.Shoot) { s.DeletionTimestamp = ptr.To(metav1.Now()) },
		"no workers":    func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil },
		"hibernated":    func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} },
		"not on a seed": func(s *corev1beta1.Shoot) { s.Status.TechnicalID = "" },
		"SSH is disabled": func(s *corev1beta1.Shoot) {
			s.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{}}
		},
	} {
		shoot := sampleShoot()
		change(shoot)
		err := reachable(shootclient.Key{Project: "dev", Name: "x"}, shoot)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}

func TestWait(t *testing.T) {
	bastion := NewBastion(sampleShoot(), "key", []string{"127.0.0.0/8"})
	if bastion.Spec.ShootRef.Name != "x" || bastion.Spec.Ingress[0].IPBlock.CIDR != "127.0.0.0/8" || len(bastion.Name) != 12 {
		t.Fatalf("%+v", bastion)
	}
	tell := func(status corev1beta1.ConditionStatus, message string) func(client.WithWatch) {
		return func(c client.WithWatch) {
			now := &operationsv1alpha1.Bastion{}
			if c.Get(context.Background(), client.ObjectKeyFromObject(bastion), now) != nil {
				return
			}
			now.Status.Conditions = []corev1beta1.Condition{{Type: "BastionReady", Status: status, Message: message}}
			now.Status.Ingress = &corev1.LoadBalancerIngress{IP: "127.0.0.1"}
			_ = c.Status().Update(context.Background(), now)
		}
	}
	for name, test := range map[string]struct {
		then   func(client.WithWatch)
		ready  bool
		report string
		says   string
	}{
		"ready":     {then: tell("True", ""), ready: true},
		"not ready": {then: tell("False", "no secret"), report: "no secret", says: "is not ready: no secret"},
		"silence":   {then: func(client.WithWatch) {}, says: "does the gardenlet of its seed run"},
		"deleted":   {then: func(c client.WithWatch) { _ = c.Delete(context.Background(), bastion.DeepCopy()) }, says: "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakeGarden(t, clocktesting.NewFakeClock(time.Now()), test.then, bastion.DeepCopy())
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				reports := ""
				now, err := c.Wait(ctx, bastion, func(text string) { reports += text })
				if (now != nil) != test.ready || (err == nil) != (test.says == "") || err != nil &&
					!strings.Contains(err.Error(), test.says) || reports != test.report {
					t.Errorf("%v, %v, reports %q", now, err, reports)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fakeGarden(t, clocktesting.NewFakeClock(time.Now()), nil, bastion.DeepCopy()).Wait(
		ctx, bastion, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestEndpoint(t *testing.T) {
	for want, test := range map[string]struct {
		ingress *corev1.LoadBalancerIngress
		port    string
	}{
		"127.0.0.1:22":   {&corev1.LoadBalancerIngress{IP: "127.0.0.1"}, ""},
		"127.0.0.1:2222": {&corev1.LoadBalancerIngress{IP: "127.0.0.1"}, "2222"},
		"[::1]:22":       {&corev1.LoadBalancerIngress{IP: "::1"}, ""},
		"b.example:22":   {&corev1.LoadBalancerIngress{Hostname: "b.example"}, ""},
		"":               {&corev1.LoadBalancerIngress{IP: "127.0.0.1"}, "70000"},
	} {
		b := &operationsv1alpha1.Bastion{Status: operationsv1alpha1.BastionStatus{Ingress: test.ingress}}
		if test.port != "" {
			b.Annotations = map[string]string{annotationSSHPort: test.port}
		}
		if got, err := Endpoint(b); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", want, got, err)
		}
	}
}

// TestKeepAlive verifies that a Bastion that has 15 s left of its hour gets a heartbeat at once, and then every 20
// minutes. A failed heartbeat is repeated soon, and reported once.
func TestKeepAlive(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	clk := clocktesting.NewFakeClock(now)
	bastion := NewBastion(sampleShoot(), "key", nil)
	bastion.Status.LastHeartbeatTimestamp = ptr.To(metav1.NewTime(now.Add(15*time.Second - time.Hour)))
	bastion.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(now.Add(15 * time.Second)))
	c := fakeGarden(t, clk, nil, bastion.DeepCopy())
	heartbeats := make(chan error)
	c.garden = interceptor.NewClient(c.garden, interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			if data, _ := patch.Data(obj); string(data) != `{"metadata":{"annotations":{"gardener.cloud/operation":"keepalive"}}}` {
				t.Errorf("the heartbeat is %s", data)
			}
			alive := obj.(*operationsv1alpha1.Bastion)
			alive.Status.LastHeartbeatTimestamp = ptr.To(metav1.NewTime(clk.Now()))
			alive.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(clk.Now().Add(time.Hour)))
			return <-heartbeats
		}})
	ctx, cancel := context.WithCancel(t.Context())
	ended, reports := make(chan struct{}), 0
	go func() {
		defer close(ended)
		c.KeepAlive(ctx, bastion, func(error) { reports++ })
	}()
	heartbeats <- nil // at once: the clock has not moved
	after := func(early, rest time.Duration, result error) {
		t.Helper()
		testutil.EventuallyTrue(t, "it waits", clk.HasWaiters)
		clk.Step(early)
		if !clk.HasWaiters() {
			t.Errorf("a heartbeat is sent after %s, too early", early)
		}
		clk.Step(rest)
		heartbeats <- result
	}
	after(19*time.Minute, time.Minute, errors.New("the garden is away"))
	after(time.Second, time.Second, errors.New("the garden is away"))
	after(time.Second, time.Second, nil)
	after(19*time.Minute, time.Minute, nil)
	cancel()
	<-ended
	if reports != 1 {
		t.Errorf("two failures in a row are reported %d times", reports)
	}
}

func TestChoose(t *testing.T) {
	nodes := []Node{
		{"pool-a-z1-abcde", "10.0.0.2", false}, {"pool-a-z1-fghij", "", true},
		{"pool-b-z1-klmno", "10.0.0.4", true}, {"pool-b-z1-klmnp", "10.0.0.5", true},
	}
	for wanted, test := range map[string]struct{ want, says string }{
		"":                {"pool-b-z1-klmno", ""},
		"pool-a-z1-abcde": {"pool-a-z1-abcde", ""},
		"abcde":           {"pool-a-z1-abcde", ""},
		"klmnp":           {"pool-b-z1-klmnp", ""},
		"pool-b":          {"", "pool-b-z1-klmno, pool-b-z1-klmnp"},
		"z1":              {"", `no node "z1"`},
		"fghij":           {"", "no address yet"},
	} {
		node, err := Choose(nodes, wanted)
		if err == nil && node.Name != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, %v", wanted, node, err)
		}
	}
	if _, err := Choose(nil, ""); err == nil || !strings.Contains(err.Error(), "no nodes") {
		t.Error(err)
	}
	if _, err := Choose(nodes[:1], ""); err == nil || !strings.Contains(err.Error(), "no node of the shoot is ready") {
		t.Error(err)
	}
}

// TestHostileAddresses verifies that what a kubelet or a gardenlet writes does not get into the configuration of ssh.
func TestHostileAddresses(t *testing.T) {
	for _, address := range []string{"10.0.0.2\n  ProxyCommand evil", "-oProxyCommand=evil", "node", ""} {
		node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeInternalIP, Address: "10.0.0.3"}}}}
		if got := nodeOf(node); got.Address != "10.0.0.3" {
			t.Errorf("a node at %q: %q", address, got.Address)
		}
	}
	for _, ingress := range []corev1.LoadBalancerIngress{
		{IP: "127.0.0.1\n  ProxyCommand evil"}, {IP: "-oProxyCommand=evil"},
		{Hostname: "x\n  ProxyCommand evil"}, {Hostname: "-oProxyCommand=evil"}, {Hostname: "a b"},
	} {
		bastion := &operationsv1alpha1.Bastion{Status: operationsv1alpha1.BastionStatus{Ingress: &ingress}}
		if endpoint, err := Endpoint(bastion); err == nil {
			t.Errorf("%+v: %q", ingress, endpoint)
		}
	}
	for _, ingress := range []corev1.LoadBalancerIngress{{IP: "127.0.0.1"}, {IP: "::1"}, {Hostname: "bastion.example.com"}} {
		bastion := &operationsv1alpha1.Bastion{Status: operationsv1alpha1.BastionStatus{Ingress: &ingress}}
		if _, err := Endpoint(bastion); err != nil {
			t.Error(err)
		}
	}
}

// TestEncryptedKey reads an encrypted key of the format that does not tell the public one, beside that.
func TestEncryptedKey(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block, err := x509.EncryptPEMBlock(rand.Reader, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private), []byte("x"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "id_rsa")
	if err := errors.Join(os.WriteFile(file, pem.EncodeToMemory(block), 0o600),
		os.WriteFile(file+".pub", ssh.MarshalAuthorizedKey(public), 0o600)); err != nil {
		t.Fatal(err)
	}
	if pair, err := ReadKeyPair(file+".pub", ""); err != nil || pair.Signer != nil || !strings.HasPrefix(pair.Public, "ssh-rsa ") {
		t.Errorf("%+v, %v", pair, err)
	}
}
