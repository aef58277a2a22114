package seed

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func identityWith(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-identity", Namespace: "kube-system"}, Data: data}
}

func TestEnsureIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		there *corev1.ConfigMap
		want  map[string]string // nil: an error
	}{
		"a new cluster": {nil, map[string]string{"cluster-identity": "uid", "origin": "seed"}},
		"one that has one": {identityWith(map[string]string{"cluster-identity": "shoot-1", "origin": "shoot"}),
			map[string]string{"cluster-identity": "shoot-1", "origin": "shoot"}},
		"one without value": {identityWith(nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid"}}}
			if test.there != nil {
				objects = append(objects, test.there)
			}
			client := fake.NewClientset(objects...)
			identity, err := ensureIdentity(t.Context(), client)
			if test.want == nil {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			cm, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(cm.Data, test.want) || identity != test.want["cluster-identity"] {
				t.Errorf("the ConfigMap has %v, and %s is returned; want %v", cm.Data, identity, test.want)
			}
		})
	}
}

// TestIdentityOfTwoStarts covers a namespace that is created late, and an identity that another process creates first.
func TestIdentityOfTwoStarts(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid"}})
	missing := 2
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		if missing--; missing >= 0 {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kube-system")
		}
		return false, nil, nil
	})
	client.PrependReactor("create", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		other := identityWith(map[string]string{"cluster-identity": "the other's"})
		_ = client.Tracker().Add(other)
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, other.Name)
	})
	identity, err := ensureIdentity(t.Context(), client)
	if err != nil || identity != "the other's" {
		t.Errorf("the identity is %q (%v)", identity, err)
	}
	if missing >= 0 {
		t.Error("the namespace was not asked for again")
	}
}
