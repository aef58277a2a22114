package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

func (l *landscape) core(resource, namespace string) dynamic.ResourceInterface {
	r := l.dyn.Resource(schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: resource})
	if namespace != "" {
		return r.Namespace(namespace)
	}
	return r
}

// register creates a ControllerRegistration with a policy for Extensions of a type, which is named like the
// registration.
func (l *landscape) register(t *testing.T, name, policy string) {
	t.Helper()
	_, err := l.core("controllerdeployments", "").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerDeployment", "type": "gardenlite",
		"metadata":               map[string]any{"name": name, "annotations": map[string]any{"gardenlite.dev/simulated": "true"}},
		"injectGardenKubeconfig": true,
	}}, created)
	must(t, err)
	deployment := map[string]any{"deploymentRefs": []any{map[string]any{"name": name}}}
	if policy != "" {
		deployment["policy"] = policy
	}
	_, err = l.core("controllerregistrations", "").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"deployment": deployment, "resources": []any{map[string]any{"kind": "Extension", "type": name}}},
	}}, created)
	must(t, err)
}

// installations returns the ControllerInstallations by the names of their registrations, without that of
// provider-local.
func (l *landscape) installations(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	list, err := l.core("controllerinstallations", "").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		item := &list.Items[i]
		registration, _, _ := unstructured.NestedString(item.Object, "spec", "registrationRef", "name")
		if registration == "provider-local" {
			continue
		}
		if found[registration] != nil {
			return nil, fmt.Errorf("%s is installed twice", registration)
		}
		found[registration] = item
	}
	return found, nil
}

// expect waits until exactly these registrations are installed and healthy, and returns their installations.
func (l *landscape) expect(t *testing.T, registrations ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	var found map[string]*unstructured.Unstructured
	var names []string
	eventually(t, waitTimeout, func(ctx context.Context) error {
		now, err := l.installations(ctx)
		if err != nil {
			return fmt.Errorf("installed: %v, expected %v: %w", names, registrations, err)
		}
		found, names = now, nil
		for name := range found {
			names = append(names, name)
		}
		if slices.Sort(names); !slices.Equal(names, registrations) {
			return fmt.Errorf("installed: %v, expected %v", names, registrations)
		}
		for name, installation := range found {
			for condition, want := range map[string]string{"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False"} {
				if got := conditionOf(installation, condition)["status"]; got != want {
					return fmt.Errorf("%s: %s is %v", name, condition, got)
				}
			}
		}
		return nil
	})
	return found
}

// conditionOf returns the condition of a type in an object's status, or an empty one.
func conditionOf(obj *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == kind {
			return condition
		}
	}
	return map[string]any{}
}

// followPolicies registers an extension with each policy, and creates and deletes a Shoot that needs those that are
// installed on demand.
func (l *landscape) followPolicies(t *testing.T) {
	const always, withShoots, demanded, byDefault, unused = "e2e-a-always", "e2e-b-except-no-shoots", "e2e-c-demanded",
		"e2e-d-default", "e2e-e-unused"
	for name, policy := range map[string]string{
		always: "Always", withShoots: "AlwaysExceptNoShoots", demanded: "OnDemand", byDefault: "", unused: "OnDemand",
	} {
		l.register(t, name, policy)
	}
	installed := l.expect(t, always)
	l.checkInSeed(t, always, installed[always].GetName())

	l.createShoot(t, "plain")
	l.expect(t, always, withShoots)
	l.createShoot(t, "needy", demanded, byDefault)
	all := l.expect(t, always, withShoots, demanded, byDefault)
	for name, installation := range all {
		l.checkInSeed(t, name, installation.GetName())
	}
	l.checkIdentities(t, all[demanded].GetName(), all[always].GetName())
	if all[always].GetUID() != installed[always].GetUID() {
		t.Error("what was installed already was replaced")
	}

	l.deleteShoot(t, "needy")
	left := l.expect(t, always, withShoots)
	l.checkGone(t, all[demanded].GetName())
	l.deleteShoot(t, "plain")
	l.expect(t, always)
	l.checkGone(t, left[withShoots].GetName())
	for _, name := range []string{always, withShoots, demanded, byDefault, unused} {
		must(t, l.core("controllerregistrations", "").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	l.expect(t)
	l.checkGone(t, left[always].GetName())
	l.checkAllGone(t, "e2e-")
}

// registrationInUseStays deletes a registration that a Shoot needs: it stays until the Shoot is gone.
func (l *landscape) registrationInUseStays(t *testing.T) {
	const name = "e2e-in-use"
	l.register(t, name, "OnDemand")
	l.createShoot(t, "needy", name)
	installation := l.expect(t, name)[name]
	registrations := l.core("controllerregistrations", "")
	must(t, registrations.Delete(t.Context(), name, metav1.DeleteOptions{}))
	// When another extension is installed, the deletion of the registration has been processed as well.
	l.register(t, "e2e-later", "Always")
	if now := l.expect(t, name, "e2e-later")[name]; now.GetUID() != installation.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Error("what the Shoot needs was removed")
	}
	if _, err := registrations.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("the registration that is in use: %v", err)
	}
	l.deleteShoot(t, "needy")
	l.expect(t, "e2e-later")
	l.checkGone(t, installation.GetName())
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if _, err := registrations.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the registration is not gone: %v", err)
		}
		return nil
	})
	must(t, registrations.Delete(t.Context(), "e2e-later", metav1.DeleteOptions{}))
	l.expect(t)
}

// createShoot creates a Shoot on the seed, with Extensions of these types.
func (l *landscape) createShoot(t *testing.T, name string, extensions ...string) {
	t.Helper()
	all := []any{}
	for _, extension := range extensions {
		all = append(all, map[string]any{"type": extension})
	}
	_, err := l.core("shoots", "garden-dev").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": map[string]any{"name": name, "namespace": "garden-dev"},
		"spec": map[string]any{
			"cloudProfile": map[string]any{"kind": "CloudProfile", "name": "local"}, "credentialsBindingName": "sample", "region": "local",
			"extensions": all, "kubernetes": map[string]any{"version": "1.36.0"},
			"networking": map[string]any{"type": "local", "nodes": "10.10.0.0/16", "pods": "10.11.0.0/16", "services": "10.12.0.0/16"},
			"provider": map[string]any{"type": "local", "workers": []any{map[string]any{
				"name": "worker", "minimum": int64(1), "maximum": int64(1), "zones": []any{"local-a"},
				"machine": map[string]any{"type": "local", "image": map[string]any{"name": "local", "version": "1.0.0"}},
			}}},
		},
	}}, created)
	must(t, err)
}

func (l *landscape) deleteShoot(t *testing.T, name string) {
	t.Helper()
	shoots := l.core("shoots", "garden-dev")
	_, err := shoots.Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, shoots.Delete(t.Context(), name, metav1.DeleteOptions{}))
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if _, err := shoots.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Shoot %s is not gone: %v", name, err)
		}
		return nil
	})
}

// checkAllGone waits until the seed and the garden have no objects and no registrations with this prefix in their
// names.
func (l *landscape) checkAllGone(t *testing.T, prefix string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		var left []string
		registrations, err := l.core("controllerregistrations", "").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, r := range registrations.Items {
			left = append(left, "ControllerRegistration "+r.GetName())
		}
		namespaces, err := l.seeds["local"].CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range namespaces.Items {
			left = append(left, "seed's Namespace "+n.Name)
		}
		accounts, err := l.kube.CoreV1().ServiceAccounts("seed-local").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, a := range accounts.Items {
			left = append(left, "ServiceAccount "+a.Name)
		}
		bindings, err := l.kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, b := range bindings.Items {
			left = append(left, "ClusterRoleBinding "+b.Name)
		}
		if left = slices.DeleteFunc(left, func(s string) bool { return !strings.Contains(s, prefix) }); len(left) > 0 {
			return fmt.Errorf("left behind: %v", left)
		}
		return nil
	})
}
