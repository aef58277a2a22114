package controlplane

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// TestPolicyIsRepairedAndLeftAlone writes the policy, checks that the next start only lists it, damages it, and checks
// that it is repaired.
func TestPolicyIsRepairedAndLeftAlone(t *testing.T) {
	client := fake.NewClientset()
	if err := reconcilePolicy(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	roles := client.RbacV1().ClusterRoles()
	for _, want := range bootstrappolicy.ClusterRoles() {
		if _, err := roles.Get(t.Context(), want.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	client.ClearActions()
	if err := reconcilePolicy(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		if resource := action.GetResource().Resource; action.GetVerb() != "list" &&
			(resource == "clusterroles" || resource == "clusterrolebindings") {
			t.Errorf("nothing has changed, and there is a %s of %s", action.GetVerb(), resource)
		}
	}

	damaged, err := roles.Get(t.Context(), "view", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gone := "system:basic-user"
	damaged.AggregationRule = nil
	if _, err := roles.Update(t.Context(), damaged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := roles.Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := reconcilePolicy(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if role, err := roles.Get(t.Context(), "view", metav1.GetOptions{}); err != nil || role.AggregationRule == nil {
		t.Errorf("the damaged role is %v, %v", role, err)
	}
	if _, err := roles.Get(t.Context(), gone, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestBootstrapHookOutlastsLoad checks that a server that needs minutes to create the policy, on a busy machine, does
// not end the process, and that a server that is stopped meanwhile does not wait.
func TestBootstrapHookOutlastsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hook := genericapiserver.PostStartHookContext{LoopbackClientConfig: &rest.Config{Host: "127.0.0.1:1"}, Context: ctx}
		began := time.Now()
		err := runBootstrapHook(hook, "policy", func(context.Context, kubernetes.Interface) error {
			if time.Since(began) < 3*time.Minute {
				return errors.New("the server is busy")
			}
			return nil
		})
		if took := time.Since(began); err != nil || took < 3*time.Minute {
			t.Errorf("it ended after %s: %v", took, err)
		}
		err = runBootstrapHook(hook, "policy", func(context.Context, kubernetes.Interface) error {
			cancel()
			return context.Canceled
		})
		if err != nil {
			t.Errorf("the server ends: %v", err)
		}
	})
}

// TestKnownAnswersOnce checks that the second read of an object is not answered from the list.
func TestKnownAnswersOnce(t *testing.T) {
	client := fake.NewClientset(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
	roles := &knownClusterRoles{client.RbacV1().ClusterRoles(), newKnown[*rbacv1.ClusterRole]()}
	roles.listed["old"] = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	get := func(name string) error {
		_, err := roles.Get(context.Background(), name, metav1.GetOptions{})
		return err
	}
	if err := get("old"); err != nil {
		t.Error(err)
	}
	if err := get("old"); !apierrors.IsNotFound(err) {
		t.Errorf("asked again: %v", err)
	}
	if err := get("new"); !apierrors.IsNotFound(err) {
		t.Errorf("not listed: %v", err)
	}
	if err := get("new"); err != nil {
		t.Error(err)
	}
}
