package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func (l *landscape) at(resource, namespace string) dynamic.ResourceInterface {
	return objectsIn(l.dyn, resource, namespace)
}

// watched is like at, for watches that take longer than the timeout of other requests: their context ends them.
func (l *landscape) watched(t *testing.T, resource, namespace string) dynamic.ResourceInterface {
	t.Helper()
	config := rest.CopyConfig(l.admin)
	config.Timeout = 0
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return objectsIn(client, resource, namespace)
}

func objectsIn(client dynamic.Interface, resource, namespace string) dynamic.ResourceInterface {
	in := accessResources[resource]
	gv, _ := schema.ParseGroupVersion(strings.TrimPrefix(strings.TrimPrefix(in.Path, "/apis/"), "/api/"))
	all := client.Resource(gv.WithResource(in.Name))
	if namespace == "" {
		return all
	}
	return all.Namespace(namespace)
}

// create creates an object as soon as admission knows the objects that it refers to.
func (l *landscape) create(t *testing.T, resource string, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: object}
	var last error
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := l.at(resource, obj.GetNamespace()).Create(ctx, obj, created)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		return fmt.Errorf("%s %s: %w", resource, obj.GetName(), last)
	})
	return obj
}

func (l *landscape) delete(t *testing.T, resource string, obj *unstructured.Unstructured) {
	t.Helper()
	objects := l.at(resource, obj.GetNamespace())
	if _, err := objects.Patch(t.Context(), obj.GetName(), types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if err := objects.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error {
		left, err := objects.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%s %s is there still: %v", resource, obj.GetName(), left.Object["status"])
		}
		return err
	})
}

// succeeds waits until the last operation of an object has succeeded.
func (l *landscape) succeeds(t *testing.T, resource string, obj *unstructured.Unstructured) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error { return l.checkSucceeded(ctx, resource, obj) })
}

// checkSucceeded returns an error if the last operation of an object has not succeeded.
func (l *landscape) checkSucceeded(ctx context.Context, resource string, obj *unstructured.Unstructured) error {
	now, err := l.at(resource, obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if state, _, _ := unstructured.NestedString(now.Object, "status", "lastOperation", "state"); state != "Succeeded" {
		return fmt.Errorf("%s %s: %v", resource, obj.GetName(), now.Object["status"])
	}
	return nil
}

// annotate requests the reconciliation of an object.
func (l *landscape) annotate(t *testing.T, resource, namespace, name string) {
	t.Helper()
	if _, err := l.at(resource, namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// checkNothingForbidden checks in the status that no request of a component was forbidden, and that every component
// runs.
func (l *landscape) checkNothingForbidden(t *testing.T) {
	t.Helper()
	components := componentsOf(t, l.dir)
	for _, c := range components {
		if c.Forbidden != 0 {
			t.Errorf("%d requests of %s were forbidden:\n%s", c.Forbidden, c.Name,
				strings.Join(l.logged(t, 0, "forbidden something", "is forbidden"), "\n"))
		}
		if c.State != "Ready" {
			t.Errorf("%s is %s: %s", c.Name, c.State, c.Message)
		}
	}
	if wanted := 5 + 5*len(l.names); len(components) != wanted { // the garden has 5, and each seed 5
		t.Errorf("%d components, not %d: %v", len(components), wanted, components)
	}
}

// TestGardenletLifeWithoutRefusals goes through the life of a landscape with two seeds. No request of its components
// is forbidden: they have the rights that they need, and request nothing else.
func TestGardenletLifeWithoutRefusals(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	deployment := meta("core.gardener.cloud/v1", "ControllerDeployment", "", "life", map[string]any{"injectGardenKubeconfig": true})
	deployment["metadata"].(map[string]any)["annotations"] = map[string]any{
		"gardenlite.dev/simulated": "true", "migration.controllerdeployment.gardener.cloud/type": "gardenlite"}
	extension := l.create(t, "controllerdeployments", deployment)
	registration := l.create(t, "controllerregistrations",
		meta("core.gardener.cloud/v1beta1", "ControllerRegistration", "", "life", map[string]any{"spec": map[string]any{
			"deployment": map[string]any{"policy": "Always", "deploymentRefs": []any{map[string]any{"name": "life"}}},
			"resources":  []any{map[string]any{"kind": "Extension", "type": "life"}}}}))
	l.installed(t, "life", len(l.names))

	for _, seed := range l.names {
		bucket := l.create(t, "backupbuckets", bucketObject("life-"+seed, seed, "seed-"+seed+"-backup"))
		entry := l.create(t, "backupentries", entryObject("garden-dev", "life-"+seed, seed, "life-"+seed))
		l.succeeds(t, "backupbuckets", bucket)
		l.succeeds(t, "backupentries", entry)
		for resource, obj := range map[string]*unstructured.Unstructured{"backupbuckets": bucket, "backupentries": entry} {
			l.annotate(t, resource, obj.GetNamespace(), obj.GetName())
			l.reconciled(t, resource, obj)
		}
		l.delete(t, "backupentries", entry)
		l.delete(t, "backupbuckets", bucket)
		l.annotate(t, "seeds", "", seed)
		l.reconciled(t, "seeds", &unstructured.Unstructured{Object: meta("", "Seed", "", seed, nil)})
	}
	l.scheduleShoot(t)

	l.delete(t, "controllerregistrations", registration)
	l.installed(t, "life", 0)
	l.delete(t, "controllerdeployments", extension)
	eventually(t, waitTimeout, func(ctx context.Context) (err error) {
		for _, seed := range l.names {
			err = errors.Join(err, l.seedIsReady(ctx, seed, time.Time{}))
		}
		return err
	})
	l.checkNothingForbidden(t)
}

// reconciled waits until a reconciliation that annotate requested is done.
func (l *landscape) reconciled(t *testing.T, resource string, obj *unstructured.Unstructured) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error { return l.checkReconciled(ctx, resource, obj) })
	l.succeeds(t, resource, obj)
}

// checkReconciled returns an error if the requested reconciliation of an object has not begun.
func (l *landscape) checkReconciled(ctx context.Context, resource string, obj *unstructured.Unstructured) error {
	now, err := l.at(resource, obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err == nil && now.GetAnnotations()["gardener.cloud/operation"] != "" {
		err = fmt.Errorf("not reconciled: %s %s", resource, obj.GetName())
	}
	return err
}

// installed waits until an extension is installed and healthy in as many seeds.
func (l *landscape) installed(t *testing.T, registration string, seeds int) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		all, err := l.at("controllerinstallations", "").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		healthy := 0
		for _, installation := range all.Items {
			if name, _, _ := unstructured.NestedString(installation.Object, "spec", "registrationRef", "name"); name != registration {
				continue
			}
			if healthy++; !slices.ContainsFunc(conditionsOf(&installation),
				func(c map[string]any) bool { return c["type"] == "Healthy" && c["status"] == "True" }) {
				return fmt.Errorf("%s: %v", installation.GetName(), installation.Object["status"])
			}
		}
		if healthy != seeds {
			return fmt.Errorf("%s is installed in %d seeds, not in %d", registration, healthy, seeds)
		}
		return nil
	})
}

func conditionsOf(obj *unstructured.Unstructured) (conditions []map[string]any) {
	all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range all {
		if condition, ok := c.(map[string]any); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// scheduleShoot creates the sample Shoot, and waits until it has a seed.
func (l *landscape) scheduleShoot(t *testing.T) {
	t.Helper()
	command(t, "", kubectlBinary, "--kubeconfig", filepath.Join(l.dir, "kubeconfig"), "--cache-dir", t.TempDir(), "apply",
		"-f", "../manifests/samples/shoot.yaml").OK(t)
	eventually(t, waitTimeout, func(ctx context.Context) error {
		shoot, err := l.at("shoots", "garden-dev").Get(ctx, "sample", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if seed, _, _ := unstructured.NestedString(shoot.Object, "spec", "seedName"); !slices.Contains(l.names, seed) {
			return fmt.Errorf("the Shoot is on the seed %q: %v", seed, shoot.Object["status"])
		}
		return nil
	})
}
