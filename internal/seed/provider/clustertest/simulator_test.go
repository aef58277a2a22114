package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/seed/provider"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const id = "shoot--dev--a"

// instances is a cloud whose instances join at once.
type instances struct {
	mu       sync.Mutex
	networks map[string]netip.Prefix
	all      map[string]cloud.InstanceSpec
	join     func(cloud.InstanceSpec)
}

func (c *instances) EnsureNetwork(_ context.Context, id string, cidr netip.Prefix) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.networks[id] = cidr
	return nil
}

func (c *instances) DeleteNetwork(_ context.Context, id string) error {
	if len(c.Instances(id)) > 0 {
		return cloud.ErrInUse
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.networks, id)
	return nil
}

func (c *instances) EnsureInstance(_ context.Context, spec cloud.InstanceSpec) (cloud.Instance, error) {
	c.mu.Lock()
	_, known := c.all[spec.ID]
	c.all[spec.ID] = spec
	c.mu.Unlock()
	if !known && spec.Public == nil {
		c.join(spec)
	}
	instance, _ := c.Instance(spec.ID)
	return instance, nil
}

func (c *instances) DeleteInstance(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, id)
	return nil
}

func (c *instances) Instance(id string) (cloud.Instance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spec, ok := c.all[id]
	instance := cloud.Instance{ID: id, Network: spec.Network, State: cloud.Running, Zone: spec.Zone, Type: spec.Type,
		Tags: spec.Tags, ProviderID: "local:///" + spec.Zone + "/" + id}
	if spec.Public != nil {
		instance.PublicAddress = netip.MustParseAddrPort("127.64.1.2:2222")
	}
	return instance, ok
}

func (c *instances) UpdateIngress(_ context.Context, id string, rules bastionspec.Ingress) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[id].Public.Ingress = rules
	return nil
}

func (c *instances) Ready(string) <-chan struct{} { return nil }

func (c *instances) Instances(network string) (all []cloud.Instance) {
	for _, id := range c.ids() {
		if instance, ok := c.Instance(id); ok && instance.Network == network {
			all = append(all, instance)
		}
	}
	return all
}

func (c *instances) ids() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func TestSimulator(t *testing.T) {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	logrus.SetOutput(io.Discard)
	cluster := startSeed(t)
	admin := newAdmin(t, cluster)
	prepare(t, cluster, admin)
	c := &instances{networks: map[string]netip.Prefix{}, all: map[string]cloud.InstanceSpec{}}
	var joining sync.WaitGroup
	defer joining.Wait()
	c.join = func(spec cloud.InstanceSpec) { joining.Go(func() { join(t, admin, spec) }) }
	stop := startSimulator(t, cluster, c)

	infrastructure := &extensionsv1alpha1.Infrastructure{ObjectMeta: meta("a"), Spec: extensionsv1alpha1.InfrastructureSpec{
		DefaultSpec: local(), Region: "local", SecretRef: cloudProvider,
	}}
	took(t, "Infrastructure", func() { create(t, admin, infrastructure); succeeded(t, admin, infrastructure, "Create") })
	if infrastructure.Status.NodesCIDR == nil || *infrastructure.Status.NodesCIDR != "10.1.0.0/16" {
		t.Errorf("Infrastructure: %+v", infrastructure.Status)
	}
	simulateOthers(t, admin)
	osc := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: meta("init"), Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
		DefaultSpec: local(), Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeProvision, Files: []extensionsv1alpha1.File{{
			Path: "/token", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: "<<BOOTSTRAP_TOKEN>>"}},
		}},
	}}
	create(t, admin, osc)
	succeeded(t, admin, osc, "Create")

	worker := &extensionsv1alpha1.Worker{ObjectMeta: meta("a"), Spec: extensionsv1alpha1.WorkerSpec{
		DefaultSpec: local(), Region: "local", SecretRef: cloudProvider, Pools: []extensionsv1alpha1.WorkerPool{{
			Name: "one", Minimum: 2, Maximum: 3, MaxSurge: intstr.FromInt32(1), MachineType: "small", NodeAgentSecretName: ptr.To("first"),
			MachineImage: extensionsv1alpha1.MachineImage{Name: "local", Version: "1.0.0"}, Labels: map[string]string{"pool": "one"},
			Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
			UserDataSecretRef: corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: osc.Status.CloudConfig.SecretRef.Name}, Key: "cloud_config"},
		}},
	}}
	second := simulateRolling(t, admin, c, worker)
	restored := simulateMigration(t, admin, c, worker, second)
	took(t, "deleting two machines", func() {
		if err := admin.Delete(t.Context(), restored); err != nil {
			t.Fatal(err)
		}
		gone(t, admin, restored)
	})
	for _, obj := range []client.Object{osc, infrastructure} {
		if err := admin.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		gone(t, admin, obj)
	}
	c.mu.Lock()
	if len(c.all)+len(c.networks) > 0 {
		t.Errorf("left in the cloud: %v %v", c.all, c.networks)
	}
	c.mu.Unlock()
	testutil.EventuallyTrue(t, "goroutines for the shoot to end", func() bool { return len(goroutines()) == 0 })
	for _, left := range goroutines() {
		t.Log(left)
	}
	stop()
}

var cloudProvider = corev1.SecretReference{Namespace: id, Name: "cloudprovider"}

func newAdmin(t *testing.T, cluster *seed.Cluster) client.Client {
	t.Helper()
	scheme := apiruntime.NewScheme()
	types := apiruntime.NewSchemeBuilder(clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config := cluster.AdminConfig()
	config.QPS = -1
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// simulateOthers creates and deletes an object of each kind that needs nothing but a network.
func simulateOthers(t *testing.T, admin client.Client) {
	t.Helper()
	for _, other := range []extensionsv1alpha1.Object{
		&extensionsv1alpha1.ControlPlane{ObjectMeta: meta("a"),
			Spec: extensionsv1alpha1.ControlPlaneSpec{DefaultSpec: local(), SecretRef: cloudProvider, Region: "local"}},
		&extensionsv1alpha1.Network{ObjectMeta: meta("a"),
			Spec: extensionsv1alpha1.NetworkSpec{DefaultSpec: local(), PodCIDR: "10.2.0.0/16", ServiceCIDR: "10.3.0.0/16"}},
		&extensionsv1alpha1.Extension{ObjectMeta: meta("a"), Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: local()}},
		&extensionsv1alpha1.ContainerRuntime{ObjectMeta: meta("a"), Spec: extensionsv1alpha1.ContainerRuntimeSpec{
			DefaultSpec: local(), BinaryPath: "/bin", WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{Name: "one"}}},
		&extensionsv1alpha1.DNSRecord{ObjectMeta: meta("a"), Spec: extensionsv1alpha1.DNSRecordSpec{DefaultSpec: local(),
			SecretRef: cloudProvider, Name: "api.a.example.org", RecordType: "A", Values: []string{"127.0.0.1"}}},
		&extensionsv1alpha1.Bastion{ObjectMeta: meta("a"), Spec: extensionsv1alpha1.BastionSpec{DefaultSpec: local(), UserData: []byte(
			"#!/bin/sh\n"), Ingress: []extensionsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}}}},
	} {
		create(t, admin, other)
		succeeded(t, admin, other, "Create")
		if bastion, ok := other.(*extensionsv1alpha1.Bastion); ok &&
			(bastion.Status.Ingress == nil || bastion.Status.Ingress.IP != "127.64.1.2" ||
				bastion.Annotations["gardenlite.dev/ssh-port"] != "2222" || len(bastion.Status.Conditions) != 1 ||
				bastion.Status.ObservedGeneration != bastion.Generation) {
			t.Errorf("Bastion: %+v", bastion)
		}
		if err := admin.Delete(t.Context(), other); err != nil {
			t.Error(err)
		}
		gone(t, admin, other)
	}
}

// simulateRolling creates two machines, and replaces them. It returns the new ones.
func simulateRolling(t *testing.T, admin client.Client, c *instances, worker *extensionsv1alpha1.Worker) []string {
	t.Helper()
	took(t, "Worker with two machines", func() { create(t, admin, worker); succeeded(t, admin, worker, "Create") })
	first := c.ids()
	if len(first) != 2 {
		t.Errorf("instances %v", first)
	}
	nodes := &corev1.NodeList{}
	if err := admin.List(t.Context(), nodes, client.MatchingLabels{"pool": "one"}); err != nil || len(nodes.Items) != 2 {
		t.Errorf("%d Nodes with the pool's label: %v", len(nodes.Items), err)
	}
	took(t, "rolling two machines", func() {
		ask(t, admin, worker, "reconcile", func() { worker.Spec.Pools[0].NodeAgentSecretName = ptr.To("second") })
		succeeded(t, admin, worker, "Reconcile")
	})
	second := c.ids()
	if len(second) != 2 || slices.Contains(first, second[0]) || slices.Contains(first, second[1]) {
		t.Errorf("instances %v after %v", second, first)
	}
	return second
}

// simulateMigration migrates two machines away, and back with a new Worker, which it returns.
func simulateMigration(t *testing.T, admin client.Client, c *instances, worker *extensionsv1alpha1.Worker,
	machinesBefore []string) *extensionsv1alpha1.Worker {
	t.Helper()
	took(t, "migrating two machines away", func() { ask(t, admin, worker, "migrate", nil); succeeded(t, admin, worker, "Migrate") })
	machines := &machinev1alpha1.MachineList{}
	if err := admin.List(t.Context(), machines); err != nil || len(machines.Items) > 0 {
		t.Errorf("%d Machines are left: %v", len(machines.Items), err)
	}
	if err := admin.Delete(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	gone(t, admin, worker)
	restored := &extensionsv1alpha1.Worker{ObjectMeta: meta("a"), Spec: worker.Spec}
	restored.Annotations["gardener.cloud/operation"] = "wait-for-state"
	create(t, admin, restored)
	restored.Status.State = worker.Status.State
	if err := admin.Status().Update(t.Context(), restored); err != nil {
		t.Fatal(err)
	}
	took(t, "restoring two machines", func() { ask(t, admin, restored, "restore", nil); succeeded(t, admin, restored, "Restore") })
	if now := c.ids(); !slices.Equal(now, machinesBefore) {
		t.Errorf("instances %v have become %v", machinesBefore, now)
	}
	return restored
}

// goroutines returns the stacks of the machine controller's goroutines for shoots, but not of the one that waits for its end.
func goroutines() (all []string) {
	text := make([]byte, 16<<20)
	text = text[:runtime.Stack(text, true)]
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(stack, "provider/machines.") && !strings.Contains(stack, "machines.(*Shoots).Start(") {
			all = append(all, stack)
		}
	}
	return all
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: id, Name: name, Annotations: map[string]string{"gardener.cloud/operation": "reconcile"}}
}

func local() extensionsv1alpha1.DefaultSpec { return extensionsv1alpha1.DefaultSpec{Type: "local"} }

func startSeed(t *testing.T) *seed.Cluster {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cluster, err := seed.Start(ctx, seed.Config{Config: controlplane.Config{Name: "local", PKIDir: filepath.Join(dir, "pki"),
		DataDir: filepath.Join(dir, "data")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// prepare creates the objects of the gardenlet in the namespace, and the roles of the machine controller in the shoot.
func prepare(t *testing.T, cluster *seed.Cluster, admin client.Client) {
	t.Helper()
	const user = "gardener.cloud:system:machine-controller-manager"
	config, err := cluster.Server().ClientConfig("machine-controller-manager", user)
	if err != nil {
		t.Fatal(err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := clientcmd.Write(
		*controlplane.Kubeconfig("shoot", cluster.Server().URL(), cluster.Server().PKI().CAPEM(), config.CertData, config.KeyData))
	if err != nil {
		t.Fatal(err)
	}
	shoot, err := json.Marshal(&corev1beta1.Shoot{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		Spec:     corev1beta1.ShootSpec{Networking: &corev1beta1.Networking{Nodes: ptr.To("10.1.0.0/16")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	nothing := apiruntime.RawExtension{Raw: []byte("{}")}
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: id, Name: name} }
	who := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}},
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: id},
			Spec: extensionsv1alpha1.ClusterSpec{CloudProfile: nothing, Seed: &nothing, Shoot: apiruntime.RawExtension{Raw: shoot}}},
		&corev1.Secret{ObjectMeta: in("cloudprovider")},
		&corev1.Secret{ObjectMeta: in("machine-controller-manager"), Data: map[string][]byte{"kubeconfig": kubeconfig}},
		&rbacv1.ClusterRole{ObjectMeta: in(user), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in(user), Subjects: who,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: user}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "delete"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: user}, Subjects: who,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}},
	} {
		create(t, admin, obj)
	}
}

func startSimulator(t *testing.T, cluster *seed.Cluster, c provider.Cloud) (stop func()) {
	t.Helper()
	config, err := cluster.Server().ClientConfig("provider-local", provider.User)
	if err != nil {
		t.Fatal(err)
	}
	simulator, err := provider.New(provider.Config{REST: config, Cloud: c})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- simulator.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	testutil.EventuallyTrue(t, "the simulator's caches", simulator.HasSynced)
	return stop
}

// join does what the kubelet of an instance does.
func join(t *testing.T, admin client.Client, spec cloud.InstanceSpec) {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Timeout)
	defer cancel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: spec.Hostname}}
	err := admin.Create(ctx, node)
	if err == nil {
		before := node.DeepCopy()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		err = admin.Status().Patch(ctx, node, client.MergeFrom(before))
	}
	if err != nil {
		t.Errorf("joining: %v", err)
	}
}

func create(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, c client.Client, obj client.Object, what string, change func()) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	if change != nil {
		change()
	}
	metav1.SetMetaDataAnnotation(objectMeta(obj), "gardener.cloud/operation", what)
	if err := c.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func objectMeta(obj client.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

func succeeded(t *testing.T, c client.Client, obj extensionsv1alpha1.Object, kind corev1beta1.LastOperationType) {
	t.Helper()
	testutil.EventuallyTrue(t, fmt.Sprintf("%T: %s to have succeeded", obj, kind), func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Error(err)
			return true
		}
		last := obj.GetExtensionStatus().GetLastOperation()
		return last != nil && last.Type == kind && last.State == corev1beta1.LastOperationStateSucceeded &&
			obj.GetAnnotations()["gardener.cloud/operation"] == ""
	})
	if t.Failed() {
		t.Fatalf("%T: %+v", obj, obj.GetExtensionStatus().GetLastOperation())
	}
}

func gone(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	testutil.EventuallyTrue(t, fmt.Sprintf("%T to be gone", obj), func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object)))
	})
}

func took(t *testing.T, what string, do func()) {
	t.Helper()
	begin := time.Now()
	do()
	t.Logf("%s: %s", what, time.Since(begin).Round(time.Millisecond))
}
