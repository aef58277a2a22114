package gardenerplane

import (
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

const namespace = "shoot--dev--one"

type world struct {
	*testing.T
	client.Client
	*Reconciler
}

func secret(name, label string, issued int, data ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		"name": label, "managed-by": "secrets-manager", "issued-at-time": strconv.Itoa(issued)}}, Data: map[string][]byte{}}
	for i := 0; i < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

func deployment(name string, replicas int32, args ...string) *appsv1.Deployment {
	labels := map[string]string{"app": "kubernetes", "role": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1", Generation: 7}}
	d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Args: args,
		Image: "registry.example.com:5000/" + name + ":v1.35.2@sha256:abc"}}
	return d
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	return &world{t, c, &Reconciler{Client: c, Reader: c}}
}

func (w *world) run(name string) time.Duration {
	w.Helper()
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	if err != nil {
		w.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) description() *corev1.Secret {
	w.Helper()
	found := &corev1.Secret{}
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: spec.SecretName}, found); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return found
}

func server() *appsv1.Deployment {
	d := deployment("kube-apiserver", 2, "--service-cluster-ip-range=10.12.0.0/16,fd00::/108", "--service-account-issuer=https://a",
		"--service-account-issuer=https://b")
	for volume, name := range map[string]string{"ca": "ca-bundle-1", "ca-client": "ca-client-bundle-1", "service-account-key": "sa-1",
		"service-account-key-bundle": "sa-bundle-1", "etcd-encryption-secret": "enc-1"} {
		d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes, corev1.Volume{Name: volume,
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}})
	}
	return d
}

// secrets are those of a control plane during a rotation of its authorities.
func secrets() []client.Object {
	return []client.Object{
		secret("ca-bundle-1", "ca-bundle", 1, "bundle.crt", "trusted"),
		secret("ca-client-bundle-1", "ca-client-bundle", 1, "bundle.crt", "clients"),
		secret("sa-1", "service-account-key", 1, "id_rsa", "sa"), secret("sa-bundle-1", "service-account-key-bundle", 1, "bundle.key", "sas"),
		secret("enc-1", "encryption", 1, "encryption-configuration.yaml", "encryption"),
		secret("ca", "ca", 1, "ca.crt", "old", "ca.key", "oldkey"), secret("ca-2", "ca", 20, "ca.crt", "new", "ca.key", "newkey"),
		secret("ca-client", "ca-client", 1, "ca.crt", "oldclient", "ca.key", "oldclientkey"),
		secret("ca-client-2", "ca-client", 20, "ca.crt", "newclient", "ca.key", "newclientkey"),
		secret("ca-front-proxy", "ca-front-proxy", 1, "ca.crt", "proxy", "ca.key", "proxykey"),
	}
}

func TestDescribes(t *testing.T) {
	w := newWorld(t, append(secrets(), server(), deployment("kube-controller-manager", 1, "--cluster-cidr=10.3.0.0/16",
		"--node-cidr-mask-size=25"))...)
	w.run("kube-apiserver")
	found := w.description()
	for key, want := range map[string]string{
		spec.KeyCABundle: "trusted", spec.KeyClientCABundle: "clients", spec.KeyServiceAccountKey: "sa", spec.KeyServiceAccountBundle: "sas",
		spec.KeyEncryption: "encryption", spec.KeyCA: "old", spec.KeyCAKey: "oldkey", // clients may not know the new one
		spec.KeyClientCA: "newclient", spec.KeyClientCAKey: "newclientkey", spec.KeyFrontProxyCA: "proxy", spec.KeyFrontProxyCAKey: "proxykey",
	} {
		if got := string(found.Data[key]); got != want {
			t.Errorf("%s is %q, not %q", key, got, want)
		}
	}
	for annotation, want := range map[string]string{
		spec.AnnotationVersion: "1.35.2", spec.AnnotationServiceCIDR: "10.12.0.0/16", spec.AnnotationIssuers: "https://a https://b",
		spec.AnnotationGeneration: "7/7", spec.AnnotationPodCIDR: "10.3.0.0/16", spec.AnnotationNodeMask: "25",
	} {
		if got := found.Annotations[annotation]; got != want {
			t.Errorf("%s is %q, not %q", annotation, got, want)
		}
	}
	before := found.Annotations[spec.AnnotationChecksum]
	rotated := secret("ca-bundle-1", "ca-bundle", 1, "bundle.crt", "another")
	if err := w.Update(t.Context(), rotated); err != nil {
		t.Fatal(err)
	}
	w.run("kube-controller-manager") // its Deployment changes the description too
	if found := w.description(); found.Annotations[spec.AnnotationChecksum] == before || string(found.Data[spec.KeyCABundle]) != "another" {
		t.Errorf("a change does not change the checksum, or is not described: %v", found.Annotations)
	}
}

// TestWaits: the gardenlet writes the Secrets one by one.
func TestWaits(t *testing.T) {
	w := newWorld(t, append(secrets()[:5], server())...)
	if wait := w.run("kube-apiserver"); wait != secretsPoll || w.description().Name != "" {
		t.Errorf("it waits %s", wait)
	}
}

// TestPods: the Pods are those that the gardenlet counts.
func TestPods(t *testing.T) {
	w := newWorld(t, append(secrets(), server())...)
	count := func(want int) {
		t.Helper()
		w.run("kube-apiserver")
		pods := &corev1.PodList{}
		if err := w.List(t.Context(), pods, client.MatchingLabels{"role": "kube-apiserver"}); err != nil || len(pods.Items) != want {
			t.Errorf("%d Pods, not %d: %v", len(pods.Items), want, err)
		}
		for _, pod := range pods.Items {
			if len(pod.Spec.Volumes) > 0 || !metav1.IsControlledBy(&pod, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "1"}}) {
				t.Errorf("Pod %+v", pod)
			}
		}
	}
	count(2)
	for _, replicas := range []int32{1, 0, 2} {
		d := &appsv1.Deployment{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "kube-apiserver"}, d); err != nil {
			t.Fatal(err)
		}
		d.Spec.Replicas = ptr.To(replicas)
		if err := w.Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		count(int(replicas))
	}
}

// TestOwnStays: what gardenlite's own gardenlet deploys is no translation.
func TestOwnStays(t *testing.T) {
	own := deployment("kube-apiserver", 1)
	w := newWorld(t, append(secrets(), own)...)
	w.run("kube-apiserver")
	pods := &corev1.PodList{}
	if err := w.List(t.Context(), pods); err != nil || len(pods.Items) > 0 || w.description().Name != "" {
		t.Errorf("%d Pods, %v", len(pods.Items), err)
	}
}

// TestControllersOfBefore: while the Deployment of the controllers is still that of gardenlite's gardenlet, it says itself what they need.
func TestControllersOfBefore(t *testing.T) {
	w := newWorld(t, append(secrets(), server(), deployment("kube-controller-manager", 1))...)
	w.run("kube-apiserver")
	found := w.description().Annotations
	if _, has := found[spec.AnnotationPodCIDR]; has || found[spec.AnnotationGeneration] != "7" {
		t.Errorf("the description: %v", found)
	}
}

// TestLeaves: when gardenlite's gardenlet has the control plane again, the objects of etcd-druid go, which only Gardener's deletes.
func TestLeaves(t *testing.T) {
	etcd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd",
		"metadata": map[string]any{"name": "etcd-main", "namespace": namespace, "finalizers": []any{"druid.gardener.cloud/etcd-druid"}}}}
	exists := func(w *world) bool {
		t.Helper()
		err := w.Get(t.Context(), client.ObjectKeyFromObject(etcd), etcd)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil && etcd.GetDeletionTimestamp() == nil
	}
	description := secret(spec.SecretName, "", 1)
	w := newWorld(t, etcd.DeepCopy(), description, deployment("kube-apiserver", 1))
	w.run("kube-apiserver")
	if !exists(w) {
		t.Error("it is gone, although Gardener's gardenlet was never here")
	}
	description.Annotations = map[string]string{spec.AnnotationGeneration: "7"}
	w = newWorld(t, etcd.DeepCopy(), description, deployment("kube-apiserver", 1))
	w.run("kube-apiserver")
	if exists(w) || etcd.GetAnnotations()["confirmation.gardener.cloud/deletion"] != "true" {
		t.Errorf("it is there, or its deletion is not confirmed: %v", etcd.GetAnnotations())
	}
	if found := w.description(); found.Annotations[spec.AnnotationGeneration] != "" {
		t.Errorf("the description still says that Gardener's gardenlet is here: %v", found.Annotations)
	}
}
