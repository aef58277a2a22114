package resourcemanager

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
)

// shootWorld is a seed whose namespace garden is that of a shoot.
type shootWorld struct {
	world
	shoot  client.Client
	server *appsv1.Deployment
}

func newShootWorld(t *testing.T, class, objects string) *shootWorld {
	t.Helper()
	w := &shootWorld{world: newWorld(t, class, objects), shoot: fake.NewClientBuilder().Build()}
	w.Shoots.connect = func(context.Context, types.NamespacedName, string) (*shootaccess.Cluster, error) {
		return &shootaccess.Cluster{Client: w.shoot}, nil
	}
	w.must(w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden",
		Labels: map[string]string{"gardener.cloud/role": "shoot"}}}))
	w.server = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "kube-apiserver"}}
	w.server.Status.ReadyReplicas = 1
	w.must(w.Client.Create(t.Context(), w.server))
	return w
}

func (w *shootWorld) has(c client.Client, name string) bool {
	w.Helper()
	err := c.Get(w.Context(), client.ObjectKey{Namespace: "x", Name: name}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return err == nil
}

func (w *shootWorld) gone() bool {
	w.Helper()
	err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: "garden", Name: "mr"}, &resourcesv1alpha1.ManagedResource{})
	return apierrors.IsNotFound(err)
}

// TestAppliesToShoot: without a class, the objects are the shoot's, and nothing of them is in the seed.
func TestAppliesToShoot(t *testing.T) {
	for _, class := range []string{"", "resources"} {
		w := newShootWorld(t, class, two)
		if wait := w.run().RequeueAfter; wait != syncPeriod {
			t.Errorf("looks again after %s", wait)
		}
		w.wantConditions("True", "True", "False")
		if w.has(w.Client, "a") || !w.has(w.shoot, "a") || !w.has(w.shoot, "b") {
			t.Fatal("the objects are in the seed, or not in the shoot")
		}
		w.must(w.Client.Delete(t.Context(), w.resource()))
		w.run()
		if w.has(w.shoot, "a") || !w.gone() {
			t.Error("an object stays in the shoot, or the ManagedResource stays")
		}
	}
}

func TestLooksSoonAtUnhealthyShoot(t *testing.T) {
	w := newShootWorld(t, "", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: x}}")
	if wait := w.run().RequeueAfter; wait != shootPoll {
		t.Errorf("looks again after %s", wait)
	}
	w.wantConditions("True", "False", "True")
}

// TestAsleep: while the API server does not run, nothing is reported and nothing is given up.
func TestAsleep(t *testing.T) {
	w := newShootWorld(t, "", two)
	w.run()
	w.server.Status.ReadyReplicas = 0
	w.must(w.Client.Status().Update(t.Context(), w.server))
	w.setObjects("")
	if wait := w.run().RequeueAfter; wait != shootPoll {
		t.Errorf("looks again after %s", wait)
	}
	w.wantConditions("True", "True", "False")
	w.must(w.Client.Delete(t.Context(), w.resource()))
	if w.run(); w.gone() || !w.has(w.shoot, "a") {
		t.Error("the ManagedResource is given up, with its objects in the shoot")
	}
	w.server.Status.ReadyReplicas = 1
	w.must(w.Client.Status().Update(t.Context(), w.server))
	if w.run(); !w.gone() || w.has(w.shoot, "a") {
		t.Error("the objects stay although the shoot is awake")
	}
}

// TestShootEnds: a ManagedResource does not wait for an API server that will not run again.
func TestShootEnds(t *testing.T) {
	deleted, err := json.Marshal(&corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(time.Unix(1, 0)))}})
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(*shootWorld) error{
		"deleted": func(w *shootWorld) error {
			cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
			cluster.Spec.Shoot = runtime.RawExtension{Raw: deleted}
			return w.Client.Create(w.Context(), cluster)
		},
		"moved to another seed": func(w *shootWorld) error {
			namespace := &corev1.Namespace{}
			w.must(w.Client.Get(w.Context(), client.ObjectKey{Name: "garden"}, namespace))
			namespace.Finalizers = []string{"test.dev/x"}
			w.must(w.Client.Update(w.Context(), namespace))
			return w.Client.Delete(w.Context(), namespace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newShootWorld(t, "", two)
			w.run()
			w.must(w.Client.Delete(t.Context(), w.server))
			w.must(w.Client.Delete(t.Context(), w.resource()))
			if w.run(); w.gone() {
				t.Error("it is given up while the shoot may come back")
			}
			w.must(end(w))
			if w.run(); !w.gone() {
				t.Error("it stays")
			}
		})
	}
}

// TestClassChanges: the objects move from the seed to the shoot, and back.
func TestClassChanges(t *testing.T) {
	w := newShootWorld(t, "seed", two)
	w.run()
	for _, class := range []string{"", "seed"} {
		resource := w.resource()
		resource.Spec.Class = ptr.To(class)
		w.must(w.Client.Update(t.Context(), resource))
		w.run()
		if inShoot := class == ""; w.has(w.shoot, "a") != inShoot || w.has(w.Client, "a") == inShoot {
			t.Errorf("class %q: in the shoot %t, in the seed %t", class, w.has(w.shoot, "a"), w.has(w.Client, "a"))
		}
		if finalizers := w.resource().Finalizers; len(finalizers) != 1 {
			t.Errorf("class %q: the finalizers are %v", class, finalizers)
		}
	}
}

func compressed(t *testing.T, data string) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := brotli.NewWriter(&out)
	if _, err := writer.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBrotli: Gardener's components compress what they write.
func TestBrotli(t *testing.T) {
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"objects":              {compressed(t, two), ""},
		"not compressed":       {[]byte(two), "decompressing it with Brotli"},
		"truncated":            {compressed(t, two)[:20], "decompressing it with Brotli"},
		"a decompression bomb": {compressed(t, strings.Repeat(" ", maxSize+1)), "more than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "seed", "")
			secret := &corev1.Secret{}
			w.must(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "objects"}, secret))
			secret.Data = map[string][]byte{"data.yaml.br": test.data}
			w.must(w.Client.Update(t.Context(), secret))
			w.run()
			if test.says == "" {
				if w.wantConditions("True", "True", "False"); w.configMap("a") == nil {
					t.Error("the objects are not applied")
				}
				return
			}
			w.wantConditions("False", "True", "False")
			if message := w.resource().Status.Conditions[0].Message; !strings.Contains(message, test.says) {
				t.Errorf("it says %q", message)
			}
		})
	}
}
