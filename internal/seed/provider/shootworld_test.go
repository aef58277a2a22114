package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/provider/machines"
)

const technicalID = "shoot--dev--a"

// errKilled is the error of every call after a process was killed.
var errKilled = errors.New("killed")

// process can be killed after a number of writes. What it has written is kept.
type process struct {
	writes, killAfter int
	dead              bool
}

func (p *process) read() error {
	if p.dead {
		return errKilled
	}
	return nil
}

func (p *process) write(do func() error) error {
	if p.dead {
		return errKilled
	}
	err := do()
	if p.writes++; p.killAfter > 0 && p.writes >= p.killAfter {
		p.dead = true
		return errKilled
	}
	return err
}

// intercepted returns a client of the process.
func (p *process) intercepted(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return errors.Join(p.read(), c.Get(ctx, key, obj, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return errors.Join(p.read(), c.List(ctx, list, opts...))
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return p.write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return p.write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return p.write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return p.write(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return p.write(func() error { return c.SubResource(name).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// fakeCloud is a cloud that outlives processes.
type fakeCloud struct {
	process   *process
	networks  map[string]netip.Prefix
	instances map[string]cloud.InstanceSpec
	created   int
	refuse    error
	// deleted is called after an instance was.
	deleted func()
}

func (c *fakeCloud) EnsureNetwork(_ context.Context, id string, cidr netip.Prefix) error {
	return c.process.write(func() error { c.networks[id] = cidr; return nil })
}

func (c *fakeCloud) DeleteNetwork(_ context.Context, id string) error {
	if len(c.Instances(id)) > 0 {
		return fmt.Errorf("%w: %s", cloud.ErrInUse, id)
	}
	return c.process.write(func() error { delete(c.networks, id); return nil })
}

func (c *fakeCloud) EnsureInstance(_ context.Context, spec cloud.InstanceSpec) (cloud.Instance, error) {
	if c.refuse != nil {
		return cloud.Instance{}, c.refuse
	}
	err := c.process.write(func() error {
		if _, ok := c.instances[spec.ID]; !ok {
			c.instances[spec.ID] = spec
			c.created++
		}
		return nil
	})
	instance, _ := c.Instance(spec.ID)
	return instance, err
}

func (c *fakeCloud) DeleteInstance(_ context.Context, id string) error {
	if c.deleted != nil {
		defer c.deleted()
	}
	return c.process.write(func() error { delete(c.instances, id); return nil })
}

func (c *fakeCloud) Instance(id string) (cloud.Instance, bool) {
	spec, ok := c.instances[id]
	return cloud.Instance{
		ID: id, Network: spec.Network, Hostname: spec.Hostname, Zone: spec.Zone, Type: spec.Type, Image: spec.Image,
		State: cloud.Running, Tags: spec.Tags, ProviderID: "local:///" + spec.Zone + "/" + id,
	}, ok
}

func (c *fakeCloud) Instances(network string) (all []cloud.Instance) {
	for _, id := range c.ids() {
		if instance, _ := c.Instance(id); instance.Network == network {
			all = append(all, instance)
		}
	}
	return all
}

func (c *fakeCloud) UpdateIngress(context.Context, string, bastionspec.Ingress) error { return nil }

func (c *fakeCloud) Ready(string) <-chan struct{} { return nil }

func (c *fakeCloud) ids() (ids []string) {
	for id := range c.instances {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// shootWorld is a seed with a Worker, a cloud, and a shoot with simulated kubelets.
type shootWorld struct {
	*testing.T
	clock   *clocktesting.FakeClock
	process *process
	cloud   *fakeCloud
	seed    client.WithWatch // without interceptor
	shoot   client.WithWatch
	// down means that the shoot has no API server, deaf that kubelets do not start.
	down, deaf bool

	workers, infrastructures *Reconciler
	deployments              *machines.DeploymentReconciler
	machines                 *machines.MachineReconciler
	shoots                   *machines.Shoots
	each                     func()
	joined                   int
}

// worldScheme has few types: with all types of Kubernetes, creating a fake client takes longer than most tests.
var worldScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}()

// newClient returns a builder of a fake client without managed fields, which take most of the time.
func newClient() *fake.ClientBuilder {
	decoder := serializer.NewCodecFactory(worldScheme).UniversalDecoder()
	return fake.NewClientBuilder().WithScheme(worldScheme).WithObjectTracker(clienttesting.NewObjectTracker(worldScheme, decoder))
}

func newSeed() client.WithWatch {
	return newClient().WithStatusSubresource(
		&extensionsv1alpha1.Worker{}, &extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.OperatingSystemConfig{},
		&extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.Bastion{},
		&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineSet{}, &machinev1alpha1.Machine{},
	).Build()
}

func newShootWorld(t *testing.T, pools ...extensionsv1alpha1.WorkerPool) *shootWorld {
	t.Helper()
	w := &shootWorld{
		T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), process: &process{},
		shoot: newClient().WithStatusSubresource(&corev1.Node{}).
			WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build(),
	}
	w.cloud = &fakeCloud{process: w.process, networks: map[string]netip.Prefix{}, instances: map[string]cloud.InstanceSpec{}}
	w.newSeed()
	w.create(w.worker(pools...))
	w.start()
	t.Cleanup(func() { w.shoots.Close() })
	return w
}

// newSeed replaces the seed with a new one that has the shoot's namespace.
func (w *shootWorld) newSeed() {
	w.seed = newSeed()
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "cloudprovider"}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "machine-controller-manager"},
		Data: map[string][]byte{"kubeconfig": []byte("k")}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "user-data"},
		Data: map[string][]byte{"cloud_config": []byte("token <<BOOTSTRAP_TOKEN>> of <<MACHINE_NAME>>")}})
	w.create(&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: technicalID}})
	w.hibernate(false)
}

func (w *shootWorld) create(obj client.Object) {
	w.Helper()
	if err := w.seed.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *shootWorld) worker(pools ...extensionsv1alpha1.WorkerPool) *extensionsv1alpha1.Worker {
	return &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "a"}, Spec: extensionsv1alpha1.WorkerSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: "local", Pools: pools,
		SecretRef: corev1.SecretReference{Namespace: technicalID, Name: "cloudprovider"},
	}}
}

func pool(name string, minimum int32, zones ...string) extensionsv1alpha1.WorkerPool {
	return extensionsv1alpha1.WorkerPool{
		Name: name, Minimum: minimum, Maximum: minimum + 2, MaxSurge: intstr.FromInt32(1), MachineType: "small", Zones: zones,
		MachineImage: extensionsv1alpha1.MachineImage{Name: "local", Version: "1.0.0"}, NodeAgentSecretName: ptr.To("first"),
		UserDataSecretRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "user-data"}, Key: "cloud_config"},
		Labels:            map[string]string{"pool": name},
		Taints:            []corev1.Taint{{Key: "pool", Value: name, Effect: corev1.TaintEffectNoSchedule}},
	}
}

// start creates new controllers, as a new process does.
func (w *shootWorld) start() {
	w.process.dead, w.process.killAfter, w.process.writes = false, 0, 0
	if w.shoots != nil {
		w.shoots.Close()
	}
	seed := w.process.intercepted(w.seed)
	guard := &machines.Guard{}
	cfg := Config{Cloud: w.cloud, Clock: w.clock, guard: guard}
	for _, kind := range Kinds(cfg) {
		r := &Reconciler{Kind: kind, Client: seed, Reader: seed, Clock: w.clock}
		switch kind.Name {
		case "worker":
			w.workers = r
		case "infrastructure":
			w.infrastructures = r
		}
	}
	w.shoots = &machines.Shoots{Seed: seed, Clock: w.clock, Changed: func(client.ObjectKey) {},
		Connect: func([]byte) (client.WithWatch, func(), error) {
			return interceptor.NewClient(w.process.intercepted(w.shoot), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if w.down {
						return errors.New("connection refused")
					}
					return c.Get(ctx, key, obj, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if w.down {
						return errors.New("connection refused")
					}
					return c.List(ctx, list, opts...)
				},
				SubResourceCreate: func(ctx context.Context, c client.Client, _ string, obj, _ client.Object,
					_ ...client.SubResourceCreateOption) error {
					return c.Delete(ctx, obj) // an eviction
				},
			}), func() {}, nil
		}}
	w.deployments = &machines.DeploymentReconciler{Client: seed, Clock: w.clock, Guard: guard}
	w.machines = &machines.MachineReconciler{Client: seed, Cloud: w.cloud, Shoots: w.shoots, Clock: w.clock, Guard: guard}
}

// round lets each controller reconcile each object once, and returns the errors.
func (w *shootWorld) round() error {
	var errs []error
	look := func(r reconcile.Reconciler, list client.ObjectList) {
		if err := w.seed.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}
		_ = eachObject(list, func(key client.ObjectKey) {
			_, err := r.Reconcile(w.Context(), reconcile.Request{NamespacedName: key})
			errs = append(errs, err)
		})
	}
	look(w.infrastructures, &extensionsv1alpha1.InfrastructureList{})
	look(w.workers, &extensionsv1alpha1.WorkerList{})
	look(w.deployments, &machinev1alpha1.MachineDeploymentList{})
	look(w.machines, &machinev1alpha1.MachineList{})
	w.kubelets()
	if w.each != nil {
		w.each()
	}
	return errors.Join(errs...)
}

// settle reconciles until no controller writes any more. It returns the errors of the last round.
func (w *shootWorld) settle() error {
	w.Helper()
	for range 200 {
		before := w.process.writes + w.joined
		if err := w.round(); w.process.writes+w.joined == before || w.process.dead {
			return err
		}
	}
	w.Fatal("it does not settle")
	return nil
}

// kubelets lets each instance join with its token.
func (w *shootWorld) kubelets() {
	if w.down || w.deaf || w.process.dead {
		return
	}
	for id, spec := range w.cloud.instances {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: spec.Hostname}}
		if w.shoot.Get(w.Context(), client.ObjectKeyFromObject(node), node) == nil {
			continue
		}
		var token, name string
		fmt.Sscanf(string(spec.UserData), "token %s of %s", &token, &name)
		tokenID, _, _ := strings.Cut(token, ".")
		secret := &corev1.Secret{}
		if err := w.shoot.Get(w.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-" + tokenID}, secret); err != nil ||
			token != tokenID+"."+string(secret.Data["token-secret"]) || name != id {
			w.Errorf("instance %s cannot join with %q: %v", id, spec.UserData, err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := w.shoot.Create(w.Context(), node); err != nil {
			w.Error(err)
		}
		if err := w.shoot.Status().Update(w.Context(), node); err != nil {
			w.Error(err)
		}
		w.joined++
	}
}

func eachObject(list client.ObjectList, do func(client.ObjectKey)) error {
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	items := struct {
		Items []metav1.PartialObjectMetadata `json:"items"`
	}{}
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	for i := range items.Items {
		do(client.ObjectKeyFromObject(&items.Items[i]))
	}
	return nil
}

// ask changes the Worker and requests an operation.
func (w *shootWorld) ask(what string, change func(*extensionsv1alpha1.Worker)) {
	w.Helper()
	worker := w.getWorker()
	annotate(worker, func(a map[string]string) { a["gardener.cloud/operation"] = what })
	if change != nil {
		change(worker)
	}
	if err := w.seed.Update(w.Context(), worker); err != nil {
		w.Fatal(err)
	}
}

func (w *shootWorld) getWorker() *extensionsv1alpha1.Worker {
	w.Helper()
	worker := &extensionsv1alpha1.Worker{}
	if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: technicalID, Name: "a"}, worker); err != nil {
		w.Fatal(err)
	}
	return worker
}

func (w *shootWorld) hibernate(enabled bool) {
	w.Helper()
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{
		Hibernation: &corev1beta1.Hibernation{Enabled: &enabled},
		Networking:  &corev1beta1.Networking{Nodes: ptr.To("10.1.0.0/16"), Pods: ptr.To("10.2.0.0/16")},
	}}
	raw, err := json.Marshal(shoot)
	if err != nil {
		w.Fatal(err)
	}
	cluster := &extensionsv1alpha1.Cluster{}
	if err := w.seed.Get(w.Context(), client.ObjectKey{Name: technicalID}, cluster); err != nil {
		w.Fatal(err)
	}
	cluster.Spec.Shoot.Raw = raw
	if err := w.seed.Update(w.Context(), cluster); err != nil {
		w.Fatal(err)
	}
}

// expectSucceeded expects that the Worker's operation has succeeded, that there are count machines, each with its instance
// and its Node, and that no bootstrap token is left.
func (w *shootWorld) expectSucceeded(kind corev1beta1.LastOperationType, count int) {
	w.Helper()
	if last := w.getWorker().Status.LastOperation; !operation.Is(last, kind, corev1beta1.LastOperationStateSucceeded) {
		w.Fatalf("last operation %+v, want %s to have succeeded", last, kind)
	}
	all := w.listMachines()
	var names, nodes []string
	for _, m := range all {
		names = append(names, m.Name)
		if m.Status.CurrentStatus.Phase != machinev1alpha1.MachineRunning || m.Labels["node"] != m.Name ||
			!strings.HasSuffix(m.Spec.ProviderID, "/"+m.Name) {
			w.Errorf("machine %+v", m)
		}
	}
	list, secrets := &corev1.NodeList{}, &corev1.SecretList{}
	if err := errors.Join(w.shoot.List(w.Context(), list), w.shoot.List(w.Context(), secrets)); err != nil {
		w.Fatal(err)
	}
	for _, n := range list.Items {
		nodes = append(nodes, n.Name)
	}
	slices.Sort(nodes)
	if len(names) != count || !slices.Equal(names, w.cloud.ids()) || !slices.Equal(names, nodes) {
		w.Errorf("want %d of each: machines %v, instances %v, nodes %v", count, names, w.cloud.ids(), nodes)
	}
	if len(secrets.Items) > 0 {
		w.Errorf("%d bootstrap tokens are left", len(secrets.Items))
	}
}

func (w *shootWorld) listMachines() []machinev1alpha1.Machine {
	w.Helper()
	list := &machinev1alpha1.MachineList{}
	if err := w.seed.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// expectNothing expects that the Worker and all objects of its machines are gone from the seed.
func (w *shootWorld) expectNothing() {
	w.Helper()
	for _, list := range []client.ObjectList{&extensionsv1alpha1.WorkerList{}, &machinev1alpha1.MachineDeploymentList{},
		&machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{}, &machinev1alpha1.MachineClassList{},
	} {
		if err := w.seed.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}
		_ = eachObject(list, func(key client.ObjectKey) { w.Errorf("%T: %s is left", list, key) })
	}
	secrets := &corev1.SecretList{}
	if err := w.seed.List(w.Context(), secrets); err != nil {
		w.Fatal(err)
	}
	if len(secrets.Items) != 3 {
		w.Errorf("%d Secrets are left, want 3", len(secrets.Items))
	}
}
