package shoot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// retryDuration is how long a failed operation is retried.
const retryDuration = 12 * time.Hour

// restart replaces the reconciler by a new one without state.
func (w *world) restart() {
	w.reconciler = &Reconciler{
		Base: controllerutils.Base{GardenClient: w.garden, GardenReader: w.garden, SeedClient: w.seed, SeedReader: w.seed, Clock: w.clock,
			SeedName: "a", Recorder: w.events},
		Identity: &corev1beta1.Gardener{Name: "me", Version: "v1"}, SSHKeyBits: 1024,
		SyncPeriod: time.Hour, RetryDuration: retryDuration, ProgressReportPeriod: 5 * time.Second,
		NewShootClient: func(*rest.Config, clock.PassiveClock) (*ShootClient, error) {
			return &ShootClient{Client: w.inside, Metadata: w.objects, Close: func() {}, Resources: func() ([]*metav1.APIResourceList, error) {
				return []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
					{Name: "pods", Verbs: []string{"get", "list"}}, {Name: "secrets", Verbs: []string{"get"}}, {Name: "configmaps"},
					{Name: "bindings", Verbs: []string{"create"}},
				}}}, nil
			}}, nil
		},
	}
}

// watched returns interceptors that record writes of the reconciler, and fail if before returns an error.
func (w *world) watched(cluster string) interceptor.Funcs {
	note := func(verb string, obj client.Object) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.simulating {
			return nil
		}
		if shoot, is := obj.(*corev1beta1.Shoot); is && verb == "status" && shoot.Status.LastOperation != nil {
			w.told = append(w.told, *shoot.Status.LastOperation)
		}
		if cluster == "seed" {
			w.wrote = append(w.wrote, verb+" "+kindOf(obj))
		}
		if w.before != nil {
			return w.before(cluster, verb, obj)
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := note("create", obj); err != nil {
				return err
			}
			if obj.GetUID() == "" && cluster == "seed" {
				obj.SetGeneration(1)
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := note("patch", obj); err != nil {
				return err
			}
			if entry, is := obj.(*corev1beta1.BackupEntry); is { // the garden increases the generation
				entry.Generation++
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", obj); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := note("status", obj); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}
}

func kindOf(obj client.Object) string {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", obj), ".")
	return kind
}

func (w *world) seedStatuses() []client.Object {
	all := []client.Object{&appsv1.Deployment{}, &corev1.Service{}}
	for _, k := range controllerutils.ShootExtensionKinds {
		all = append(all, k.Object)
	}
	return all
}

// simulate does what extensions and the runner of control planes are requested to do.
func (w *world) simulate() {
	w.Helper()
	w.simulating = true
	defer func() { w.simulating = false }()
	for _, k := range controllerutils.ShootExtensionKinds {
		list := k.List.DeepCopyObject().(client.ObjectList)
		if err := w.seed.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}
		if err := meta.EachListItem(
			list, func(item runtime.Object) error { return w.answer(k.Kind, item.(extensionsv1alpha1.Object)) }); err != nil {
			w.Fatal(err)
		}
	}
	w.simulatePlane()
	w.simulateEntries()
	w.simulateToken()
}

// simulateToken does what the resource manager is requested to do.
func (w *world) simulateToken() {
	w.Helper()
	secrets := &corev1.SecretList{}
	if err := w.seed.List(w.Context(), secrets); err != nil {
		w.Fatal(err)
	}
	for i := range secrets.Items {
		if secrets.Items[i].Name != constants.SecretNameGardener {
			continue
		}
		kubeconfig, err := clientcmd.Load(secrets.Items[i].Data["kubeconfig"])
		if err != nil {
			w.Fatal(err)
		}
		for _, user := range kubeconfig.AuthInfos {
			user.Token = "t"
		}
		if secrets.Items[i].Data["kubeconfig"], err = clientcmd.Write(*kubeconfig); err != nil {
			w.Fatal(err)
		}
		if err := w.seed.Update(w.Context(), &secrets.Items[i]); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) answer(kind string, obj extensionsv1alpha1.Object) error {
	requested, status := operation.RequestedOperation(obj), obj.GetExtensionStatus()
	t := operation.DueOperationType(obj, status.GetLastOperation())
	if obj.GetDeletionTimestamp() == nil && requested == "" && status.GetLastOperation() != nil &&
		status.GetLastOperation().State == "Succeeded" || requested == "wait-for-state" {
		return nil
	}
	last := &corev1beta1.LastOperation{Type: t, State: "Succeeded", Progress: 100, LastUpdateTime: metav1.NewTime(w.clock.Now())}
	failure := w.fails[kind]
	if failure != nil {
		last.State = "Error"
	}
	status.SetLastOperation(last)
	status.SetLastError(failure)
	status.SetObservedGeneration(obj.GetGeneration())
	if status.GetState() == nil {
		status.SetState(&runtime.RawExtension{Raw: []byte(`{"of":"` + kind + `"}`)})
	}
	switch obj := obj.(type) {
	case *extensionsv1alpha1.OperatingSystemConfig:
		if obj.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
			obj.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{
				SecretRef: corev1.SecretReference{Namespace: obj.Namespace, Name: "osc-result-" + obj.Name}}
		}
	case *extensionsv1alpha1.Infrastructure:
		obj.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"network":"n"}`)}
	}
	if err := w.seed.Status().Update(w.Context(), obj); err != nil {
		return err
	}
	annotations, finalizers := obj.GetAnnotations(), []string{"extension"}
	delete(annotations, "gardener.cloud/operation")
	if failure == nil && (t == "Delete" || t == "Migrate") {
		finalizers = nil
	}
	obj.SetAnnotations(annotations)
	obj.SetFinalizers(finalizers)
	return client.IgnoreNotFound(w.seed.Update(w.Context(), obj))
}

func (w *world) simulatePlane() {
	w.Helper()
	deployments := &appsv1.DeploymentList{}
	if err := w.seed.List(w.Context(), deployments); err != nil {
		w.Fatal(err)
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		n := ptr.Deref(d.Spec.Replicas, 1)
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n}
		if err := w.seed.Status().Update(w.Context(), d); err != nil {
			w.Fatal(err)
		}
		if n > 0 {
			service := &corev1.Service{}
			if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: d.Namespace, Name: spec.ServiceName}, service); err != nil {
				w.Fatal(err)
			}
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
				{IP: "127.0.0.1", Ports: []corev1.PortStatus{{Port: 4242, Protocol: "TCP"}}}}
			if err := w.seed.Status().Update(w.Context(), service); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// simulateEntries does what the gardenlets' controllers of BackupEntries are requested to do.
func (w *world) simulateEntries() {
	w.Helper()
	entries := &corev1beta1.BackupEntryList{}
	if err := w.garden.List(w.Context(), entries); err != nil {
		w.Fatal(err)
	}
	for i := range entries.Items {
		e, requested := &entries.Items[i], operation.RequestedOperation(&entries.Items[i])
		last := &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded"}
		if requested == "" && e.Status.LastOperation != nil && e.Status.ObservedGeneration == e.Generation {
			continue
		}
		e.Status.SeedName, e.Status.ObservedGeneration = w.entrySeed(e), e.Generation
		switch {
		case e.Status.SeedName == nil:
			last.Type = "Migrate"
		case requested == "restore":
			last.Type = "Restore"
		}
		e.Status.LastOperation = last
		if err := w.garden.Status().Update(w.Context(), e); err != nil {
			w.Fatal(err)
		}
		delete(e.Annotations, "gardener.cloud/operation")
		if err := w.garden.Update(w.Context(), e); err != nil {
			w.Fatal(err)
		}
	}
}

// entrySeed returns the current seed of an entry, nil if the entry has been released.
func (w *world) entrySeed(e *corev1beta1.BackupEntry) *string {
	on, last := e.Status.SeedName, e.Status.LastOperation
	if on != nil && *on != *e.Spec.SeedName ||
		on == nil && last != nil && last.Type == "Migrate" && operation.RequestedOperation(e) != "restore" {
		return nil
	}
	return e.Spec.SeedName
}

// waits reports whether a reconciliation waits for another component.
func waits(after time.Duration) bool {
	return after == requeueWaiting || after == requeueNodes || after == conflictRetry
}

// settle reconciles until there is nothing to do. In between, all other components do their work, which takes a second.
func (w *world) settle() *corev1beta1.Shoot {
	w.Helper()
	return w.settleIn(time.Second)
}

// settleIn is settle with another duration for the work of the other components.
func (w *world) settleIn(each time.Duration) *corev1beta1.Shoot {
	w.Helper()
	for range 60 {
		after, err := w.reconcile()
		if err != nil {
			w.Fatalf("reconciling: %v", err)
		}
		shoot := w.shoot()
		if shoot == nil || !waits(after) {
			return shoot
		}
		w.simulate()
		w.clock.Step(each)
	}
	w.Fatalf("it does not end: %+v", w.shoot().Status.LastOperation)
	return nil
}

// moves migrates the Shoot away from its seed, with another seed that is ready for it.
func (w *world) moves(to string) {
	w.Helper()
	w.requestOperation("", func(s *corev1beta1.Shoot) {
		s.Spec.SeedName = ptr.To(to)
		s.Status.Constraints = []corev1beta1.Condition{{Type: corev1beta1.ShootReadyForMigration, Status: "True"}}
	})
}

// onSeed continues with the gardenlet of another seed, which is empty.
func (w *world) onSeed(name string) {
	w.Helper()
	w.seed = fake.NewClientBuilder().WithScheme(w.seed.Scheme()).WithStatusSubresource(
		w.seedStatuses()...).WithInterceptorFuncs(w.watched("seed")).Build()
	w.restart()
	w.reconciler.SeedName = name
}

// requestOperation annotates or changes the Shoot as a user does: the garden increases its generation.
func (w *world) requestOperation(operations string, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	w.Helper()
	w.change(func(s *corev1beta1.Shoot) {
		s.Generation++
		if operations != "" {
			s.Annotations = map[string]string{"gardener.cloud/operation": operations}
		}
		for _, change := range change {
			change(s)
		}
	})
	w.clock.Step(time.Minute)
	return w.settle()
}

// get reads an object. It has no name if it does not exist.
func get[T client.Object](w *world, c client.Client, namespace, name string, obj T) T {
	w.Helper()
	err := c.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return obj
}

// left returns the kinds and names of the objects in the seed.
func (w *world) left() (all []string) {
	w.Helper()
	lists := []client.ObjectList{&corev1.SecretList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}}
	for _, k := range controllerutils.ShootExtensionKinds {
		lists = append(lists, k.List.DeepCopyObject().(client.ObjectList))
	}
	for _, list := range lists {
		if err := w.seed.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			all = append(all, kindOf(obj)+" "+obj.GetName())
			return nil
		})
	}
	slices.Sort(all)
	return all
}
