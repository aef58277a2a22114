package stackmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	discoveryfake "k8s.io/client-go/discovery/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

var errKilled = errors.New("the process is killed")

// killWorld is a garden in which the Stack Manager can be killed before a write.
type killWorld struct {
	t      *testing.T
	client client.WithWatch
	r      *Reconciler
	folder string
	kind   v1alpha1.Install
	// writesLeft is the number of writes that succeed before the process is killed. If it is negative, all writes
	// succeed.
	writesLeft int
	writes     int
	// refused is the image of a controller that the API server refuses; none if it is empty.
	refused string
}

var stackKey = client.ObjectKey{Namespace: "dev", Name: "buckets"}

func newKillWorld(t *testing.T, kind v1alpha1.Install) *killWorld {
	t.Helper()
	w := &killWorld{t: t, folder: t.TempDir(), kind: kind, writesLeft: -1}
	s := runtime.NewScheme()
	schemes := runtime.SchemeBuilder{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, rbacv1.AddToScheme,
		apiextensionsv1.AddToScheme, v1alpha1.AddToScheme}
	w.must(schemes.AddToScheme(s))
	w.client = fake.NewClientBuilder().WithScheme(s).
		WithObjects(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: listingRole}}).
		WithStatusSubresource(kind, &v1alpha1.Stack{}, &apiextensionsv1.CustomResourceDefinition{}, &appsv1.Deployment{}).Build()
	for _, version := range []string{"0.1", "0.2"} {
		w.writePackage(version)
	}
	w.start()
	return w
}

func (w *killWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// writePackage writes a package of the version, whose CRD has a field named after it.
func (w *killWorld) writePackage(version string) {
	for name, text := range map[string]string{
		"app.yaml": fmt.Sprintf("title: Buckets\nversion: %q\npermissionScope: %s\n", version, w.kind.Scope()),
		"install.yaml": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: controller}, spec: {selector: {matchLabels: {app: b}},
  template: {metadata: {labels: {app: b}}, spec: {containers: [{name: controller, image: "example.org/b:` + version + `"}]}}}}`,
		"resources/bucket.crd.yaml": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: buckets.example.org},
  spec: {group: example.org, names: {kind: Bucket, listKind: BucketList, plural: buckets, singular: bucket}, scope: Namespaced,
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}` +
			map[string]string{"0.1": "", "0.2": ", b: {type: string}"}[version] + `}}}}]}}`,
	} {
		path := filepath.Join(w.folder, version, ".registry", name)
		w.must(os.MkdirAll(filepath.Dir(path), 0o700))
		w.must(os.WriteFile(path, []byte(text), 0o600))
	}
}

// write counts a write, and returns errKilled if the process is killed before it.
func (w *killWorld) write() error {
	if w.writesLeft == 0 {
		return errKilled
	}
	w.writesLeft--
	w.writes++
	return nil
}

// start starts a Stack Manager with no state of an earlier one.
func (w *killWorld) start() {
	c := interceptor.NewClient(w.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			deployment, ok := o.(*appsv1.Deployment)
			if ok && w.refused != "" && deployment.Spec.Template.Spec.Containers[0].Image == w.refused {
				return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), o.GetName(), nil)
			}
			if slices.Contains(opts, client.CreateOption(client.DryRunAll)) {
				return c.Create(ctx, o, opts...)
			}
			if err := w.write(); err != nil {
				return err
			}
			if ok {
				w.checkPods(deployment)
			}
			o.SetUID(types.UID(fmt.Sprintf("%T-%d", o, w.writes)))
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if slices.Contains(opts, client.UpdateOption(client.DryRunAll)) {
				return c.Update(ctx, o, opts...)
			}
			if err := w.write(); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	metadataScheme := metadatafake.NewTestScheme()
	w.must(metav1.AddMetaToScheme(metadataScheme))
	w.r = &Reconciler{
		Client: c, Live: w.client, Instances: metadatafake.NewSimpleMetadataClient(metadataScheme), Discovery: served,
		Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), kind: w.kind, claims: &sync.Mutex{},
		packages: newPackages(stackpackage.Options{Folder: w.folder}),
	}
}

// served is what the API server serves.
var served = &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
	{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", SingularName: "pod", Kind: "Pod", ShortNames: []string{"po"}}, {Name: "pods/status", Kind: "Pod"}}},
	{GroupVersion: "core.gardener.cloud/v1beta1", APIResources: []metav1.APIResource{
		{Name: "shoots", SingularName: "shoot", Kind: "Shoot", Categories: []string{"gardens"}}}},
	{GroupVersion: "other.example.com/v1", APIResources: []metav1.APIResource{
		{Name: "buckets", SingularName: "bucket", Kind: "Bucket", ShortNames: []string{"bu"}}}},
}}}

// checkPods fails if a controller is created while Pods of another version run.
func (w *killWorld) checkPods(deployment *appsv1.Deployment) {
	pods := &corev1.PodList{}
	w.must(w.client.List(w.t.Context(), pods))
	for _, pod := range pods.Items {
		if pod.Annotations[digestAnnotation] != deployment.Annotations[digestAnnotation] {
			w.t.Errorf("the controller is created while the Pod %s of another version runs", pod.Name)
		}
	}
}

// settle reconciles, and simulates the rest of the cluster, until nothing changes. It returns false if the process is
// killed.
func (w *killWorld) settle() bool {
	w.t.Helper()
	for range 40 {
		before := w.writes
		_, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: stackKey})
		if errors.Is(err, errKilled) {
			return false
		}
		if !w.clusterDoesItsPart() && w.writes == before && err == nil {
			return true
		}
	}
	w.t.Fatal("the install does not settle")
	return false
}

// clusterDoesItsPart simulates the API server and the controllers of workloads, and returns whether it has changed
// anything.
func (w *killWorld) clusterDoesItsPart() (changed bool) {
	ctx := w.t.Context()
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	w.must(w.client.List(ctx, crds))
	for i := range crds.Items {
		if crd := &crds.Items[i]; len(crd.Status.Conditions) == 0 {
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: "True"}}
			w.must(w.client.Status().Update(ctx, crd))
			changed = true
		}
	}
	deployments, pods := &appsv1.DeploymentList{}, &corev1.PodList{}
	w.must(w.client.List(ctx, deployments))
	w.must(w.client.List(ctx, pods))
	for i := range pods.Items {
		if len(deployments.Items) == 0 {
			w.must(w.client.Delete(ctx, &pods.Items[i]))
			changed = true
		}
	}
	for i := range deployments.Items {
		if d := &deployments.Items[i]; d.Status.AvailableReplicas == 0 {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}
			w.must(w.client.Status().Update(ctx, d))
			pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: d.Spec.Template.Spec}
			pod.Namespace, pod.Name = d.Namespace, "controller-"+d.Spec.Template.Annotations[digestAnnotation][7:15]
			w.must(client.IgnoreAlreadyExists(w.client.Create(ctx, pod)))
			changed = true
		}
	}
	return changed
}

// ask writes an install with this version of the stack, or deletes it if the version is empty.
func (w *killWorld) ask(version string) {
	install := w.kind.DeepCopyObject().(v1alpha1.Install)
	err := w.client.Get(w.t.Context(), stackKey, install)
	switch install.Request().Package = "file://" + version; {
	case version == "":
		w.must(w.client.Delete(w.t.Context(), install))
	case err != nil:
		install.SetNamespace(stackKey.Namespace)
		install.SetName(stackKey.Name)
		install.SetUID("install")
		w.must(w.client.Create(w.t.Context(), install))
	default:
		install.SetGeneration(install.GetGeneration() + 1)
		w.must(w.client.Update(w.t.Context(), install))
	}
}

// check compares all objects with those of this version of the stack. There must be none if the version is empty.
func (w *killWorld) check(version string) {
	w.t.Helper()
	ctx := w.t.Context()
	kinds := append(controlled(), &v1alpha1.Stack{}, &apiextensionsv1.CustomResourceDefinition{}, w.kind)
	found := []string{}
	for _, kind := range kinds {
		gvk, err := w.client.GroupVersionKindFor(kind)
		w.must(err)
		list, err := w.client.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		w.must(err)
		w.must(w.client.List(ctx, list.(client.ObjectList)))
		w.must(meta.EachListItem(list, func(o runtime.Object) error {
			if name := o.(client.Object).GetName(); name != listingRole {
				found = append(found, gvk.Kind)
			}
			return nil
		}))
	}
	want := []string{}
	if version != "" {
		want = []string{"Deployment", "ServiceAccount", "Pod"}
		if w.kind.Scope() == stackpackage.ClusterScope {
			want = append(want, "ClusterRole", "ClusterRoleBinding")
		} else {
			want = append(want, "Role", "RoleBinding")
		}
		want = append(want, "Stack", "CustomResourceDefinition", w.kind.Kind())
	}
	if !slices.Equal(found, want) {
		w.t.Errorf("there are %v, not %v", found, want)
	}
	listing := &rbacv1.ClusterRole{}
	w.must(w.client.Get(ctx, client.ObjectKey{Name: listingRole}, listing))
	if (len(listing.Rules) > 0) != (version != "") {
		w.t.Errorf("the Stack Manager may list %v", listing.Rules)
	}
	if version == "" || w.t.Failed() {
		return
	}
	install := w.kind.DeepCopyObject().(v1alpha1.Install)
	deployment, crd := &appsv1.Deployment{}, &apiextensionsv1.CustomResourceDefinition{}
	w.must(w.client.Get(ctx, stackKey, install))
	w.must(w.client.Get(ctx, client.ObjectKey{Namespace: stackKey.Namespace, Name: "controller"}, deployment))
	w.must(w.client.Get(ctx, client.ObjectKey{Name: "buckets.example.org"}, crd))
	state := install.State()
	if ready := state.Condition(v1alpha1.Ready); ready.Status != corev1.ConditionTrue || state.Package != "file://"+version {
		w.t.Errorf("%s is Ready=%s: %s", state.Package, ready.Status, ready.Message)
	}
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "example.org/b:"+version {
		w.t.Errorf("the controller has the image %s", image)
	}
	if properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties; version == "0.2" && len(properties) != 2 {
		w.t.Errorf("the CRD has the properties %v", properties)
	}
}

// TestKilledBeforeEachWrite kills the Stack Manager before each of the writes of an installation, an upgrade, a
// downgrade and an uninstallation, in turn. It checks that the next Stack Manager converges, that nothing is orphaned,
// and that two versions of a controller never run at the same time.
func TestKilledBeforeEachWrite(t *testing.T) {
	for _, kind := range []v1alpha1.Install{&v1alpha1.ClusterStackInstall{}, &v1alpha1.StackInstall{}} {
		for name, versions := range map[string][]string{
			"installation": {"0.1"}, "upgrade": {"0.1", "0.2"}, "downgrade": {"0.2", "0.1"}, "uninstallation": {"0.1", ""},
		} {
			t.Run(kind.Kind()+"/"+name, func(t *testing.T) {
				for n := 0; ; n++ {
					w := newKillWorld(t, kind)
					last := versions[len(versions)-1]
					for _, version := range versions[:len(versions)-1] {
						w.ask(version)
						w.settle()
						w.check(version)
					}
					w.ask(last)
					w.writesLeft = n
					if w.settle() {
						if n < 3 {
							t.Errorf("it is done with %d writes", n)
						}
						w.check(last)
						return
					}
					w.writesLeft = -1
					w.start()
					w.settle()
					w.check(last)
					if t.Failed() {
						t.Fatalf("killed before write %d", n+1)
					}
				}
			})
		}
	}
}

// TestJobRunsOnce checks that a Job that has completed gets its label back, and that it does not run again after its
// deletion, as after its time to live, until the package changes.
func TestJobRunsOnce(t *testing.T) {
	w := newKillWorld(t, &v1alpha1.StackInstall{})
	for _, version := range []string{"0.1", "0.2"} {
		w.must(os.WriteFile(filepath.Join(w.folder, version, ".registry", "install.yaml"), []byte(
			`{apiVersion: batch/v1, kind: Job, metadata: {name: controller}, spec: {ttlSecondsAfterFinished: 1, template: {spec:
  {restartPolicy: Never, containers: [{name: controller, image: "example.org/b:`+version+`"}]}}}}`), 0o600))
		w.ask(version)
		w.settle()
		job, key := &batchv1.Job{}, client.ObjectKey{Namespace: stackKey.Namespace, Name: "controller"}
		w.must(w.client.Get(t.Context(), key, job))
		if job.Spec.TTLSecondsAfterFinished != nil {
			t.Errorf("the Job of version %s may be deleted before its completion is recorded", version)
		}
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		job.Status.Succeeded = 1
		w.must(w.client.Status().Update(t.Context(), job))
		w.settle()
		w.must(w.client.Get(t.Context(), key, job))
		if ttl := job.Spec.TTLSecondsAfterFinished; ttl == nil || *ttl != 1 {
			t.Errorf("the Job of version %s that has completed has the time to live %v", version, ttl)
		}
		delete(job.Labels, stackLabel)
		w.must(w.client.Update(t.Context(), job))
		w.settle()
		w.must(w.client.Get(t.Context(), key, job))
		if job.Labels[stackLabel] != stackKey.Name {
			t.Errorf("the Job of version %s has the labels %v after it has completed", version, job.Labels)
		}
		w.must(w.client.Delete(t.Context(), job))
		w.settle()
		if err := w.client.Get(t.Context(), key, job); !apierrors.IsNotFound(err) {
			t.Errorf("the Job of version %s runs again: %v", version, err)
		}
		install := &v1alpha1.StackInstall{}
		w.must(w.client.Get(t.Context(), stackKey, install))
		if ready := install.State().Condition(v1alpha1.Ready); ready.Status != corev1.ConditionTrue {
			t.Errorf("without the Job of version %s it is Ready=%s: %s", version, ready.Status, ready.Message)
		}
	}
}

// TestUpgradeThatCannotBe checks that an upgrade to a controller that the API server refuses, or whose name another object
// has, changes nothing: the controller that runs is not ended, and goes on if the package of the install is the former again.
func TestUpgradeThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*killWorld)
		says   string
	}{
		"refused": {func(w *killWorld) { w.refused = "example.org/b:0.2" }, "the API server refuses the Deployment controller"},
		"taken": {func(w *killWorld) {
			w.must(w.client.Create(t.Context(), &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: stackKey.Namespace, Name: "others"}, Status: appsv1.DeploymentStatus{AvailableReplicas: 1}}))
			file := filepath.Join(w.folder, "0.2", ".registry", "install.yaml")
			text, err := os.ReadFile(file)
			w.must(err)
			w.must(os.WriteFile(file, bytes.Replace(text, []byte("{name: controller}"), []byte("{name: others}"), 1), 0o600))
		}, "the Deployment others exists already"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newKillWorld(t, &v1alpha1.StackInstall{})
			w.ask("0.1")
			w.settle()
			w.check("0.1")
			before := &appsv1.Deployment{}
			w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: stackKey.Namespace, Name: "controller"}, before))
			test.change(w)
			w.ask("0.2")
			w.settle()
			install, now, stack := &v1alpha1.StackInstall{}, &appsv1.Deployment{}, &v1alpha1.Stack{}
			w.must(w.client.Get(t.Context(), stackKey, install))
			w.must(w.client.Get(t.Context(), stackKey, stack))
			w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(before), now))
			state := install.State()
			if synced := state.Condition(v1alpha1.Synced); synced.Status != corev1.ConditionFalse || !strings.Contains(synced.Message, test.says) {
				t.Errorf("Synced is %+v; it should say %q", synced, test.says)
			}
			if ready := state.Condition(v1alpha1.Ready); ready.Status != corev1.ConditionTrue || state.Package != "file://0.1" {
				t.Errorf("%s: Ready is %+v", state.Package, ready)
			}
			if now.UID != before.UID || now.ResourceVersion != before.ResourceVersion || stack.Spec.Version != "0.1" {
				t.Errorf("the Deployment was %v and is %v, of version %s", before.ObjectMeta, now.ObjectMeta, stack.Spec.Version)
			}
			w.ask("0.1")
			w.settle()
			w.must(w.client.Get(t.Context(), stackKey, install))
			if synced := install.State().Condition(v1alpha1.Synced); synced.Status != corev1.ConditionTrue {
				t.Errorf("with the former package again, Synced is %+v", synced)
			}
		})
	}
}

// TestWaitsForAnotherInstall checks that an install that waits for the controller of another one is reconciled again: the
// watch of that controller triggers the other install only.
func TestWaitsForAnotherInstall(t *testing.T) {
	w := newKillWorld(t, &v1alpha1.StackInstall{})
	w.ask("0.1")
	others := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: stackKey.Namespace, Name: "controller", Labels: stackLabels(
		client.ObjectKey{Namespace: stackKey.Namespace, Name: "other"})}}
	w.must(w.client.Create(t.Context(), others))
	result, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: stackKey})
	w.must(err)
	if result.RequeueAfter != waitingRetry {
		t.Errorf("it is reconciled again after %s", result.RequeueAfter)
	}
	w.must(w.client.Delete(t.Context(), others))
	w.settle()
	w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(others), others))
	if others.Labels[stackLabel] != stackKey.Name {
		t.Errorf("the controller has the labels %v", others.Labels)
	}
}

// TestConflictIsNotRetried checks that an install that was refused because of another stack does not take over the group, or
// the place of a cluster stack, when that stack is uninstalled, also after a restart; and that it is installed once it has changed.
func TestConflictIsNotRetried(t *testing.T) {
	for name, other := range map[string]v1alpha1.StackSpec{
		"group": {App: stackpackage.App{Title: "Other", PermissionScope: stackpackage.NamespaceScope},
			CustomResourceDefinitions: []v1alpha1.CRDReference{{Name: "pails.example.org"}}},
		"cluster stack": {App: stackpackage.App{Title: "Buckets", PermissionScope: stackpackage.ClusterScope}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newKillWorld(t, &v1alpha1.ClusterStackInstall{})
			stack := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "other"}, Spec: other}
			w.must(w.client.Create(t.Context(), stack))
			w.ask("0.1")
			condition := func() v1alpha1.Condition {
				install := &v1alpha1.ClusterStackInstall{}
				w.must(w.client.Get(t.Context(), stackKey, install))
				return install.State().Condition(v1alpha1.Synced)
			}
			w.settle()
			before := condition()
			if before.Reason != v1alpha1.ReasonConflict || !strings.Contains(before.Message, "prod/other") {
				t.Errorf("Synced is %+v", before)
			}
			w.must(w.client.Delete(t.Context(), stack))
			w.start()
			w.settle()
			if now := condition(); now.Reason != before.Reason || now.Message != before.Message {
				t.Errorf("Synced was %+v and is %+v", before, now)
			}
			w.ask("0.2")
			w.settle()
			w.check("0.2")
		})
	}
}

// TestProcessMustKeepRunning checks that a controller that is a process counts as available only if it has run for a while.
func TestProcessMustKeepRunning(t *testing.T) {
	w := newKillWorld(t, &v1alpha1.StackInstall{})
	w.ask("0.1")
	w.settle()
	pods := &corev1.PodList{}
	w.must(w.client.List(t.Context(), pods))
	pod, now := &pods.Items[0], w.r.Clock.Now()
	for name, test := range map[string]struct {
		container corev1.ContainerStatus
		requeue   time.Duration
		says      string // empty if it is available
	}{
		"begins": {corev1.ContainerStatus{ContainerID: "process://1", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-time.Second))}}}, settleTime - time.Second, "keeps running"},
		"runs": {corev1.ContainerStatus{ContainerID: "process://1", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-settleTime))}}}, 0, ""},
		"simulated": {corev1.ContainerStatus{ContainerID: "simulated://1", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}}, 0, ""},
		"has ended": {corev1.ContainerStatus{ContainerID: "process://1", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}, settleTime, "ended with status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{test.container}
			w.must(w.client.Status().Update(t.Context(), pod))
			result, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: stackKey})
			w.must(err)
			install := &v1alpha1.StackInstall{}
			w.must(w.client.Get(t.Context(), stackKey, install))
			ready := install.State().Condition(v1alpha1.Ready)
			if (ready.Status == corev1.ConditionTrue) != (test.says == "") || !strings.Contains(ready.Message, test.says) ||
				result.RequeueAfter != test.requeue {
				t.Errorf("Ready is %+v, and it is reconciled again after %s", ready, result.RequeueAfter)
			}
		})
	}
}

// TestTakeBack checks that the Stack that an uninstallation has left goes on with the next install, without a new controller.
func TestTakeBack(t *testing.T) {
	w := newKillWorld(t, &v1alpha1.StackInstall{})
	w.ask("0.1")
	w.settle()
	stack, before := &v1alpha1.Stack{}, &appsv1.Deployment{}
	w.must(w.client.Get(t.Context(), stackKey, stack))
	w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: stackKey.Namespace, Name: "controller"}, before))
	stack.OwnerReferences = nil
	w.must(w.client.Update(t.Context(), stack))
	w.ask("")
	w.settle()
	w.ask("0.1")
	w.settle()
	w.check("0.1")
	now := &appsv1.Deployment{}
	w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(before), now))
	if now.UID != before.UID {
		t.Errorf("the controller was %s and is %s", before.UID, now.UID)
	}
}

// earlier returns a world in which an earlier version has installed a stack where, or with a group that, no stack has any more.
func earlier(t *testing.T, key client.ObjectKey, group string) *killWorld {
	t.Helper()
	before := stackKey
	stackKey = key
	t.Cleanup(func() { stackKey = before })
	w := newKillWorld(t, &v1alpha1.StackInstall{})
	w.ask("0.1")
	install := &v1alpha1.StackInstall{}
	w.must(w.client.Get(t.Context(), key, install))
	install.Finalizers = []string{finalizer}
	w.must(w.client.Update(t.Context(), install))
	stack := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "stack"},
		Spec: v1alpha1.StackSpec{CustomResourceDefinitions: []v1alpha1.CRDReference{{Name: "buckets." + group}}}}
	w.must(controllerutil.SetControllerReference(install, stack, w.client.Scheme()))
	w.must(w.client.Create(t.Context(), stack))
	role, binding := permissionsOf(key, stackpackage.NamespaceScope, nil)
	controller := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "controller"},
		Status: appsv1.DeploymentStatus{AvailableReplicas: 1}}
	for _, object := range []client.Object{serviceAccountOf(key), role, binding, controller} {
		object.SetLabels(stackLabels(key))
		w.must(controllerutil.SetControllerReference(stack, object, w.client.Scheme()))
		w.must(w.client.Create(t.Context(), object))
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "buckets." + group, Labels: map[string]string{
		stackpackage.ManagedByLabel: stackpackage.ManagedBy}}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: group,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "buckets"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}}}}
	w.must(w.client.Create(t.Context(), crd))
	return w
}

// TestPlaceOfEarlierVersion checks that a stack of an earlier version in a namespace of the landscape loses its controller and
// its permissions, and can be uninstalled.
func TestPlaceOfEarlierVersion(t *testing.T) {
	w := earlier(t, client.ObjectKey{Namespace: "seed-local", Name: "extension-x"}, "example.org")
	for range 3 { // the controller ends first
		_, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: stackKey})
		w.must(err)
	}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{},
		&rbacv1.RoleBindingList{}} {
		w.must(w.client.List(t.Context(), list))
		if n := meta.LenList(list); n > 0 {
			t.Errorf("%T has %d items", list, n)
		}
	}
	install := &v1alpha1.StackInstall{}
	w.must(w.client.Get(t.Context(), stackKey, install))
	if synced := install.State().Condition(v1alpha1.Synced); !strings.Contains(synced.Message, "in the namespace seed-local") {
		t.Errorf("Synced is %+v", synced)
	}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Name: "buckets.example.org"}, &apiextensionsv1.CustomResourceDefinition{}))
	w.ask("")
	w.settle()
	w.check("")
}

// TestGroupOfEarlierVersion checks that a stack of an earlier version with a group that no stack has any more is uninstalled when
// that is confirmed, without a right to list its instances.
func TestGroupOfEarlierVersion(t *testing.T) {
	w := earlier(t, stackKey, "kwok.x-k8s.io")
	listing := &rbacv1.ClusterRole{}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Name: listingRole}, listing))
	listing.Rules = []rbacv1.PolicyRule{listingRule("kwok.x-k8s.io", "buckets"), listingRule("other.example.org", "pails")}
	w.must(w.client.Update(t.Context(), listing))
	w.ask("")
	w.settle()
	install := &v1alpha1.StackInstall{}
	w.must(w.client.Get(t.Context(), stackKey, install))
	if synced := install.State().Condition(v1alpha1.Synced); !strings.Contains(synced.Message, "is not known") {
		t.Errorf("Synced is %+v", synced)
	}
	install.Annotations = map[string]string{"confirmation.gardener.cloud/deletion": "true"}
	w.must(w.client.Update(t.Context(), install))
	w.settle()
	if err := w.client.Get(t.Context(), stackKey, install); !apierrors.IsNotFound(err) {
		t.Errorf("the install is there: %v", err)
	}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Name: listingRole}, listing))
	if len(listing.Rules) != 1 || listing.Rules[0].APIGroups[0] != "other.example.org" {
		t.Errorf("the Stack Manager may list %v", listing.Rules)
	}
}
