package project

import (
	"context"
	"reflect"
	"strings"
	"testing"

	controllermanagerv1alpha1 "github.com/gardener/gardener/pkg/apis/config/controllermanager/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// made is the name of the namespace of the Project dev with the UID uid-1.
const made = "garden-dev-4a49a"

// world is a garden with a reconciler.
type world struct {
	*testing.T
	client.Client
	*Reconciler
	events chan string
}

func newWorld(t *testing.T, objects ...client.Object) world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1beta1.Project{}).Build()
	recorder := events.NewFakeRecorder(100)
	return world{t, c, &Reconciler{Base: kit.Base{Client: c, Reader: c, Recorder: recorder}}, recorder.Events}
}

func (w world) reconcileProject() (reconcile.Result, error) {
	return reconcile.AsReconciler(w.Client, w.Reconciler).Reconcile(w.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "dev"}})
}

func (w world) reconcileDev() error {
	w.Helper()
	_, err := w.reconcileProject()
	return err
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w world) project() *corev1beta1.Project {
	w.Helper()
	project := &corev1beta1.Project{}
	w.must(w.Client.Get(w.Context(), types.NamespacedName{Name: "dev"}, project))
	return project
}

func (w world) namespace(name string) *corev1.Namespace {
	w.Helper()
	namespace := &corev1.Namespace{}
	w.must(w.Client.Get(w.Context(), types.NamespacedName{Name: name}, namespace))
	return namespace
}

func (w world) exists(obj client.Object) bool {
	w.Helper()
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}
	return err == nil
}

// wantEvent fails the test if no event with this text was recorded.
func (w world) wantEvent(text string) {
	w.Helper()
	var all []string
	for {
		select {
		case e := <-w.events:
			if strings.Contains(e, text) {
				return
			}
			all = append(all, e)
		default:
			w.Fatalf("no event has %q: %q", text, all)
		}
	}
}

func dev(changes ...func(*corev1beta1.Project)) *corev1beta1.Project {
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev", UID: "uid-1", Generation: 3}}
	for _, change := range changes {
		change(project)
	}
	return project
}

func inNamespace(name string) func(*corev1beta1.Project) {
	return func(p *corev1beta1.Project) { p.Spec.Namespace = ptr.To(name) }
}

func withMembers(members ...corev1beta1.ProjectMember) func(*corev1beta1.Project) {
	return func(p *corev1beta1.Project) { p.Spec.Members = members }
}

func terminating(p *corev1beta1.Project) {
	p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{corev1beta1.GardenerName}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func member(name, role string, roles ...string) corev1beta1.ProjectMember {
	return corev1beta1.ProjectMember{Subject: user(name), Role: role, Roles: roles}
}

func namespaceWith(labels, annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine", UID: "ns-1", Labels: labels, Annotations: annotations}}
}

var labelsOfDev = map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev", "own": "label"}

func TestMakesNamespace(t *testing.T) {
	w := newWorld(t, dev())
	w.must(w.reconcileDev())
	project, namespace := w.project(), w.namespace(made)
	if *project.Spec.Namespace != made || project.Status.Phase != corev1beta1.ProjectReady ||
		project.Status.ObservedGeneration != project.Generation {
		t.Errorf("project: namespace %s, status %+v", *project.Spec.Namespace, project.Status)
	}
	if !reflect.DeepEqual(project.Finalizers, []string{"gardener"}) {
		t.Errorf("finalizers %v", project.Finalizers)
	}
	if want := map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}; !reflect.DeepEqual(
		namespace.Labels, want) {
		t.Errorf("labels %v", namespace.Labels)
	}
	want := map[string]string{"namespace.gardener.cloud/project": "uid-1", "namespace.gardener.cloud/created-by-project-controller": "true"}
	if !reflect.DeepEqual(namespace.Annotations, want) {
		t.Errorf("annotations %v", namespace.Annotations)
	}
	if owner := metav1.GetControllerOf(namespace); owner == nil || owner.Kind != "Project" || owner.UID != "uid-1" {
		t.Errorf("owners %v", namespace.OwnerReferences)
	}
	w.wantEvent("NamespaceReconcileSuccessful")
	// A second reconciliation, as after a crash, changes nothing.
	before := namespace.ResourceVersion
	w.must(w.reconcileDev())
	if after := w.namespace(made).ResourceVersion; after != before {
		t.Errorf("the namespace was written again: %s, %s", before, after)
	}
}

func TestFindsNamespaceOfBeforeACrash(t *testing.T) {
	w := newWorld(t, dev())
	w.must(w.createNamespace(t.Context(), dev(), made))
	w.must(w.reconcileDev())
	if _, keep := w.namespace(made).Annotations["namespace.gardener.cloud/keep-after-project-deletion"]; keep {
		t.Error("a namespace that was made for the project would be kept")
	}
}

func TestAdoptsNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		refused             string
	}{
		"its own":            {labels: labelsOfDev},
		"its own, once more": {labels: labelsOfDev, annotations: map[string]string{"namespace.gardener.cloud/project": "uid-1"}},
		"no labels":          {refused: "needs the labels"},
		"label of another": {labels: map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "other"},
			refused: "needs the labels"},
		"annotated by another": {labels: labelsOfDev, annotations: map[string]string{"namespace.gardener.cloud/project": "uid-2"},
			refused: "already in use by another project"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, dev(inNamespace("mine")), namespaceWith(test.labels, test.annotations))
			err := w.reconcileDev()
			phase, annotations := w.project().Status.Phase, w.namespace("mine").Annotations
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) || phase != corev1beta1.ProjectFailed {
					t.Errorf("phase %s, error %v", phase, err)
				}
				w.wantEvent("NamespaceReconcileFailed")
				return
			}
			w.must(err)
			if annotations["namespace.gardener.cloud/keep-after-project-deletion"] != "true" ||
				annotations["namespace.gardener.cloud/project"] != "uid-1" || phase != corev1beta1.ProjectReady {
				t.Errorf("phase %s, annotations %v", phase, annotations)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "mine"}}
	elsewhere := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "other"}}
	own := map[string]string{"namespace.gardener.cloud/project": "uid-1", "namespace.gardener.cloud/created-by-project-controller": "true"}
	keep := map[string]string{"namespace.gardener.cloud/project": "uid-1",
		"namespace.gardener.cloud/keep-after-project-deletion": "true", "x": "y"}
	for name, test := range map[string]struct {
		namespace                   *corev1.Namespace
		others                      []client.Object
		projectStays, namespaceGone bool
		event                       string
	}{
		"with a shoot": {namespace: namespaceWith(labelsOfDev, own), others: []client.Object{shoot},
			projectStays: true, event: "NamespaceNotEmpty"},
		"empty": {namespace: namespaceWith(labelsOfDev, own), others: []client.Object{elsewhere},
			projectStays: true, namespaceGone: true, event: "NamespaceMarkedForDeletion"},
		"kept":                      {namespace: namespaceWith(labelsOfDev, keep)},
		"namespace not its own":     {namespace: namespaceWith(map[string]string{"project.gardener.cloud/name": "other"}, own)},
		"namespace of its namesake": {namespace: namespaceWith(labelsOfDev, map[string]string{"namespace.gardener.cloud/project": "uid-0"})},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(test.others, dev(inNamespace("mine"), terminating), test.namespace)...)
			w.must(w.reconcileDev())
			if stays := w.exists(dev()); stays != test.projectStays {
				t.Fatalf("the project is there: %v", stays)
			}
			if test.projectStays {
				if phase := w.project().Status.Phase; phase != corev1beta1.ProjectTerminating {
					t.Errorf("phase %s", phase)
				}
				w.wantEvent(test.event)
			}
			if gone := !w.exists(namespaceWith(nil, nil)); gone != test.namespaceGone {
				t.Errorf("the namespace is gone: %v", gone)
			}
			if test.namespaceGone {
				w.must(w.reconcileDev())
				if w.exists(dev()) {
					t.Error("the project stays although its namespace is gone")
				}
			}
		})
	}
}

func TestGivesBackNamespace(t *testing.T) {
	w := newWorld(t, dev(inNamespace("mine")), namespaceWith(labelsOfDev, map[string]string{"x": "y"}))
	w.must(w.reconcileDev())
	w.must(w.Client.Delete(t.Context(), dev()))
	w.must(w.reconcileDev())
	namespace := w.namespace("mine")
	if !reflect.DeepEqual(namespace.Labels, map[string]string{"own": "label"}) ||
		!reflect.DeepEqual(namespace.Annotations, map[string]string{"x": "y"}) || len(namespace.OwnerReferences) > 0 {
		t.Errorf("left: %v, %v, %v", namespace.Labels, namespace.Annotations, namespace.OwnerReferences)
	}
}

func TestWaitsForNamespaceInDeletion(t *testing.T) {
	namespace := namespaceWith(labelsOfDev, map[string]string{"namespace.gardener.cloud/project": "uid-1"})
	namespace.DeletionTimestamp, namespace.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes"}
	w := newWorld(t, dev(inNamespace("mine"), terminating), namespace)
	result, err := w.reconcileProject()
	w.must(err)
	if !w.exists(dev()) || result.RequeueAfter != recheck {
		t.Errorf("the project is there: %v; again after %s", w.exists(dev()), result.RequeueAfter)
	}
}

func TestQuota(t *testing.T) {
	quantity := func(n string) corev1.ResourceList { return corev1.ResourceList{"count/secrets": resource.MustParse(n)} }
	configured := func(n string, selector map[string]string) controllermanagerv1alpha1.QuotaConfiguration {
		return controllermanagerv1alpha1.QuotaConfiguration{
			Config: corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec: corev1.ResourceQuotaSpec{Hard: quantity(n)}},
			ProjectSelector: &metav1.LabelSelector{MatchLabels: selector},
		}
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: "gardener"}}
	w := newWorld(t, dev(func(p *corev1beta1.Project) { p.Labels = map[string]string{"plan": "small"} }))
	w.Quotas = []controllermanagerv1alpha1.QuotaConfiguration{configured("1", map[string]string{"plan": "large"}),
		configured("2", map[string]string{"plan": "small"}), configured("3", nil)}
	w.must(w.reconcileDev())
	hard := func() string { n := quota.Spec.Hard["count/secrets"]; return n.String() }
	if !w.exists(quota) || hard() != "2" || quota.Labels["a"] != "b" {
		t.Fatalf("quota %+v", quota)
	}
	quota.Spec.Hard = quantity("20")
	w.must(w.Client.Update(t.Context(), quota))
	w.must(w.reconcileDev())
	if w.exists(quota); hard() != "20" {
		t.Errorf("what was changed is now %s", hard())
	}
}

func TestStatusFollowsGeneration(t *testing.T) {
	w := newWorld(t, dev())
	w.must(w.reconcileDev())
	project := w.project()
	project.Generation = 9
	w.must(w.setPhase(context.Background(), project, corev1beta1.ProjectReady))
	if got := w.project().Status.ObservedGeneration; got != 9 {
		t.Errorf("observed %d", got)
	}
}
