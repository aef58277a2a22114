package stacks

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// place is where an object of a stack is.
type place struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func rbacResource(resource string) schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource(resource)
}

// objectsOf returns all objects of a stack ("Cluster Stacks", "Installation Flow"), except its CRDs.
func objectsOf(kind, namespace, name string) []place {
	objects := []place{
		{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, namespace, name},
		{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, namespace, "bucket-controller"},
	}
	stack := place{stacks, namespace, name} // the last one: with it, the others are deleted
	if kind == clusterInstall {
		role := "stack:" + namespace + ":" + name
		return append(objects, place{rbacResource("clusterroles"), "", role}, place{rbacResource("clusterrolebindings"), "", role}, stack)
	}
	return append(objects, place{rbacResource("roles"), namespace, name}, place{rbacResource("rolebindings"), namespace, name}, stack)
}

func (l *landscape) get(ctx context.Context, p place) (*unstructured.Unstructured, error) {
	return l.dyn.Resource(p.resource).Namespace(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
}

// exists waits until all objects exist, or none of them.
func (l *landscape) exists(t *testing.T, objects []place, want bool) {
	t.Helper()
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		for _, p := range objects {
			if _, err := l.get(ctx, p); ignoreNotFound(err) != nil || (err == nil) != want {
				return fmt.Errorf("%s %s/%s: %v", p.resource.Resource, p.namespace, p.name, err)
			}
		}
		return nil
	})
}

var scopes = map[string]string{clusterInstall: "Cluster", namespaceInstall: "Namespaced"}

// TestStackObjects: what an installation creates is owned, repaired and removed ("Cluster Stacks", "Namespace Stacks,
// Installation Flow").
func TestStackObjects(t *testing.T) {
	for kind, scope := range scopes {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			namespace := "objects-" + strings.ToLower(scope)
			group := strings.ToLower(scope) + ".objects.example.org"
			shared.namespace(t, namespace)
			shared.install(t, kind, namespace, "buckets", shared.write(t, namespace, bucketStack(group, scope, "0.1")))
			shared.ready(t, kind, namespace, "buckets", "0.1")
			objects := objectsOf(kind, namespace, "buckets")
			crd := place{crdResource, "", "buckets." + group}
			shared.exists(t, append(slices.Clone(objects), crd), true)
			shared.areOwned(t, kind, objects)
			shared.areRepaired(t, append([]place{crd}, objects...))
			shared.uninstall(t, kind, namespace, "buckets")
			shared.exists(t, append(objects, crd), false)
		})
	}
}

func (l *landscape) areOwned(t *testing.T, kind string, objects []place) {
	t.Helper()
	for _, p := range objects {
		object, err := l.get(t.Context(), p)
		must(t, err)
		owner := metav1.GetControllerOf(object)
		want := "Stack"
		if p.resource == stacks {
			want = map[string]string{clusterInstall: "ClusterStackInstall", namespaceInstall: "StackInstall"}[kind]
		}
		if p.namespace != "" && (owner == nil || owner.Kind != want || owner.Name != "buckets") {
			t.Errorf("%s %s has the owner %v", p.resource.Resource, p.name, owner)
		}
		if object.GetLabels()["app.kubernetes.io/managed-by"] != "stack-manager" {
			t.Errorf("%s %s has the labels %v", p.resource.Resource, p.name, object.GetLabels())
		}
	}
}

// areRepaired changes each object so that it would grant more or do less, and deletes it: each time it is restored.
func (l *landscape) areRepaired(t *testing.T, objects []place) {
	t.Helper()
	changes := map[string]string{
		"stacks": `{"spec":{"permissionScope":"Cluster","version":"9","customresourcedefinitions":[]}}`,
		"deployments": `{"metadata":{"labels":{"stacks.crossplane.io/stack":null}},"spec":{"replicas":3,` +
			`"template":{"spec":{"serviceAccountName":"default","containers":[{"name":"controller","image":"other"}]}}}}`,
		"roles":           `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`,
		"clusterroles":    `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`,
		"rolebindings":    `{"subjects":[{"kind":"User","name":"mallory","apiGroup":"rbac.authorization.k8s.io"}]}`,
		"serviceaccounts": `{"metadata":{"labels":{"stacks.crossplane.io/stack":null}}}`,
		"customresourcedefinitions": `{"spec":{"versions":[{"name":"v1alpha1","served":true,"storage":true,
			"subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
			"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
	}
	changes["clusterrolebindings"] = changes["rolebindings"]
	for _, p := range objects {
		before, err := l.get(t.Context(), p)
		must(t, err)
		_, err = l.dyn.Resource(p.resource).Namespace(p.namespace).Patch(t.Context(), p.name, types.MergePatchType,
			[]byte(changes[p.resource.Resource]), metav1.PatchOptions{})
		must(t, err)
		l.isAgain(t, p, before)
		must(t, l.dyn.Resource(p.resource).Namespace(p.namespace).Delete(t.Context(), p.name, metav1.DeleteOptions{}))
		l.isAgain(t, p, before)
	}
}

// isAgain waits until an object has its former content.
func (l *landscape) isAgain(t *testing.T, p place, before *unstructured.Unstructured) {
	t.Helper()
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		now, err := l.get(ctx, p)
		if err != nil {
			return err
		}
		if now.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s %s is being deleted", p.resource.Resource, p.name)
		}
		for _, part := range []string{"spec", "rules", "subjects", "roleRef"} {
			if is, was := fmt.Sprint(now.Object[part]), fmt.Sprint(before.Object[part]); is != was {
				return fmt.Errorf("%s %s: its %s is %s, not %s", p.resource.Resource, p.name, part, is, was)
			}
		}
		if is, was := now.GetLabels()["stacks.crossplane.io/stack"], before.GetLabels()["stacks.crossplane.io/stack"]; is != was {
			return fmt.Errorf("%s %s has the label %q, not %q", p.resource.Resource, p.name, is, was)
		}
		return nil
	})
}

// TestScopeMismatch: an install of the other kind is an error, and nothing is installed ("Stack Install").
func TestScopeMismatch(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "mismatch")
	for kind, scope := range map[string]string{clusterInstall: "Namespaced", namespaceInstall: "Cluster"} {
		group := strings.ToLower(scope) + ".mismatch.example.org"
		shared.install(t, kind, "mismatch", strings.ToLower(scope), shared.write(t, "mismatch-"+scope, bucketStack(group, scope, "0.1")))
		shared.becomes(t, kind, "mismatch", strings.ToLower(scope), "Synced", "False", "the package has permissionScope "+scope)
		shared.exists(t, append(objectsOf(kind, "mismatch", strings.ToLower(scope)), place{crdResource, "", "buckets." + group}), false)
		shared.uninstall(t, kind, "mismatch", strings.ToLower(scope))
	}
}

// TestSingleInstance: a cluster stack has one instance, whose change is for all namespaces ("Cluster Stack Single
// Instance Version Limitation"), and a namespace stack has one in each namespace.
func TestSingleInstance(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"single-1", "single-2"} {
		shared.namespace(t, namespace)
	}
	cluster := bucketStack("cluster.single.example.org", "Cluster", "0.1")
	reference := shared.write(t, "single-cluster", cluster)
	shared.install(t, clusterInstall, "single-1", "one", reference)
	shared.ready(t, clusterInstall, "single-1", "one", "0.1")
	shared.install(t, clusterInstall, "single-2", "two", reference)
	shared.becomes(t, clusterInstall, "single-2", "two", "Synced", "False", "is installed by single-1/one already")
	shared.exists(t, objectsOf(clusterInstall, "single-2", "two"), false)
	shared.install(t, clusterInstall, "single-1", "one",
		shared.write(t, "single-cluster-2", cluster.replace(t, "app.yaml", "version: 0.1", "version: 0.2")))
	shared.ready(t, clusterInstall, "single-1", "one", "0.2")

	reference = shared.write(t, "single-namespaced", bucketStack("namespaced.single.example.org", "Namespaced", "0.1").
		replace(t, "install.yaml", "bucket-controller", "namespaced-controller"))
	shared.install(t, namespaceInstall, "single-1", "three", reference)
	shared.ready(t, namespaceInstall, "single-1", "three", "0.1")
	shared.install(t, namespaceInstall, "single-1", "four", reference)
	shared.becomes(t, namespaceInstall, "single-1", "four", "Synced", "False", "is installed by three already")
	shared.install(t, namespaceInstall, "single-2", "five", reference)
	shared.ready(t, namespaceInstall, "single-2", "five", "0.1")
}

// TestVersions: versions of a namespace stack work side by side, and the CRD that they share is never narrowed ("Multiple
// Versions").
func TestVersions(t *testing.T) {
	t.Parallel()
	group := "versions.example.org"
	old := bucketStack(group, "Namespaced", "1.0")
	wider := old.replace(t, crdPath, "{size: {type: integer}}}\n          status",
		"{size: {type: integer}, colour: {type: string}}}\n          status").
		replace(t, "app.yaml", "version: 1.0", "version: 1.1")
	incompatible := wider.replace(t, crdPath, "colour: {type: string}", "colour: {type: integer}").replace(t, "app.yaml", "1.1", "1.2")
	raised := incompatible.replace(t, crdPath, "name: v1alpha1", "name: v1alpha2").replace(t, "app.yaml", "1.2", "2.0")
	for i, files := range []stackFiles{old, wider, old, incompatible, raised} {
		namespace := fmt.Sprintf("versions-%d", i)
		shared.namespace(t, namespace)
		shared.install(t, namespaceInstall, namespace, "buckets", shared.write(t, namespace, files))
		if i == 3 {
			shared.becomes(t, namespaceInstall, namespace, "buckets", "Synced", "False",
				`version "1.2" of the stack cannot be installed: version v1alpha1 of the CRD buckets.versions.example.org is not `+
					`compatible with the one that version "1.1" of the stack has installed`)
			shared.exists(t, objectsOf(namespaceInstall, namespace, "buckets"), false)
			continue
		}
		shared.becomes(t, namespaceInstall, namespace, "buckets", "Ready", "True", "")
		if i > 0 {
			shared.hasField(t, "buckets."+group, "colour")
		}
	}
	crd, err := shared.get(t.Context(), place{crdResource, "", "buckets." + group})
	must(t, err)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if len(versions) != 2 || versions[0].(map[string]any)["storage"] != true {
		t.Errorf("the CRD has the versions %v", versions)
	}
}

// TestInstalledAtOnce: installs that bring the same CRD at the same time do not fail ("Multiple Versions").
func TestInstalledAtOnce(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "package")
	bucketStack("atonce.example.org", "Namespaced", "0.1").writeTo(t, folder)
	results := make([]suite.Result, 6)
	var installs sync.WaitGroup
	for i := range results {
		installs.Go(func() {
			results[i] = suite.Gardenlite(t, shared.dir, "stack", "install", folder, "--as", "buckets", "-n", fmt.Sprintf("at-once-%d", i))
		})
	}
	installs.Wait()
	for _, result := range results {
		result.OK(t)
	}
}

func (l *landscape) hasField(t *testing.T, crd, field string) {
	t.Helper()
	object, err := l.get(t.Context(), place{crdResource, "", crd})
	must(t, err)
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	_, ok, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", field)
	if !ok {
		t.Errorf("the CRD %s has no field %s", crd, field)
	}
}

// TestUninstall: instances, and stacks that depend on a CRD, block a deletion unless it is confirmed. Instances of a
// CRD that another stack owns stay.
func TestUninstall(t *testing.T) {
	t.Parallel()
	group := "uninstall.example.org"
	buckets := schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "buckets"}
	for _, namespace := range []string{"uninstall-1", "uninstall-2"} {
		shared.namespace(t, namespace)
		shared.install(t, namespaceInstall, namespace, "buckets", shared.write(t, "uninstall", bucketStack(group, "Namespaced", "0.1")))
		shared.ready(t, namespaceInstall, namespace, "buckets", "0.1")
		eventually(t, suite.Timeout, func(ctx context.Context) error {
			_, err := shared.dyn.Resource(buckets).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1alpha1", "kind": "Bucket", "metadata": map[string]any{"name": "b"}}}, created)
			return err
		})
	}
	installs := shared.dyn.Resource(stacksResource(namespaceInstall))
	deletion := func(namespace string) {
		must(t, installs.Namespace(namespace).Delete(t.Context(), "buckets", metav1.DeleteOptions{}))
	}
	deletion("uninstall-1")
	shared.becomes(t, namespaceInstall, "uninstall-1", "buckets", "Synced", "False",
		"there are instances of buckets.uninstall.example.org: uninstall-1/b")
	shared.exists(t, objectsOf(namespaceInstall, "uninstall-1", "buckets"), true)
	must(t, shared.dyn.Resource(buckets).Namespace("uninstall-1").Delete(t.Context(), "b", metav1.DeleteOptions{}))
	shared.exists(t, objectsOf(namespaceInstall, "uninstall-1", "buckets"), false)
	_, err := shared.dyn.Resource(buckets).Namespace("uninstall-2").Get(t.Context(), "b", metav1.GetOptions{})
	must(t, err)
	deletion("uninstall-2")
	shared.becomes(t, namespaceInstall, "uninstall-2", "buckets", "Synced", "False", "uninstall-2/b")
	_, err = installs.Namespace("uninstall-2").Patch(t.Context(), "buckets", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`), metav1.PatchOptions{})
	must(t, err)
	shared.exists(t, append(objectsOf(namespaceInstall, "uninstall-2", "buckets"), place{crdResource, "", "buckets." + group}), false)
}

// TestUninstallIsTakenBack: the uninstallation of a stack that has instances is pending, and is taken back by an installation of
// the same package. Controller and instances are not touched.
func TestUninstallIsTakenBack(t *testing.T) {
	t.Parallel()
	const name, group = "taken-back", "taken-back.example.org"
	folder := filepath.Join(t.TempDir(), "package")
	bucketStack(group, "Namespaced", "0.1").writeTo(t, folder)
	install := []string{"stack", "install", folder, "-n", name, "--as", "buckets"}
	suite.Gardenlite(t, shared.dir, install...).OK(t)
	bucket := place{schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "buckets"}, name, "b"}
	_, err := shared.dyn.Resource(bucket.resource).Namespace(name).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1alpha1", "kind": "Bucket", "metadata": map[string]any{"name": "b"}}}, created)
	must(t, err)
	objects := append(objectsOf(namespaceInstall, name, "buckets"), bucket)
	before := map[place]types.UID{}
	for _, p := range objects {
		object, err := shared.get(t.Context(), p)
		must(t, err)
		before[p] = object.GetUID()
	}
	r := suite.Gardenlite(t, shared.dir, "stack", "uninstall", "buckets", "-n", name)
	for _, says := range []string{"there are instances", "its uninstallation is pending",
		"gardenlite stack install with the same package takes it back"} {
		if r.Code == 0 || !strings.Contains(r.Stderr, says) {
			t.Errorf("exit status %d, errors %q; it should say %q", r.Code, r.Stderr, says)
		}
	}
	suite.Gardenlite(t, shared.dir, install...).OK(t).Shows(t, name+"/buckets is ready")
	for _, p := range objects {
		if object, err := shared.get(t.Context(), p); err != nil || object.GetUID() != before[p] || object.GetDeletionTimestamp() != nil {
			t.Errorf("%s %s is not the one of before: %v", p.resource.Resource, p.name, err)
		}
	}
	must(t, shared.dyn.Resource(bucket.resource).Namespace(name).Delete(t.Context(), "b", metav1.DeleteOptions{}))
	suite.Gardenlite(t, shared.dir, "stack", "uninstall", "buckets", "-n", name).OK(t)
	shared.exists(t, objectsOf(namespaceInstall, name, "buckets"), false)
}

// TestDependencies: a stack waits for the CRDs that it depends on. Cluster-scoped ones grant it nothing, and its
// status says so ("Allowed Resource Access").
func TestDependencies(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "depends")
	files := bucketStack("depends.example.org", "Cluster", "0.1")
	files["app.yaml"] += "dependsOn: [{crd: buckets.needed.example.org/v1alpha1}, {crd: pails.cluster.example.org}]\n"
	shared.install(t, clusterInstall, "depends", "buckets", shared.write(t, "depends", files))
	shared.becomes(t, clusterInstall, "depends", "buckets", "Ready", "False", "waiting for the CRD buckets.needed.example.org")
	shared.exists(t, objectsOf(clusterInstall, "depends", "buckets"), false)
	shared.install(t, namespaceInstall, "depends", "needed", shared.write(t, "needed", bucketStack("needed.example.org", "Namespaced", "0.1").
		replace(t, "install.yaml", "bucket-controller", "needed-controller")))
	shared.becomes(t, clusterInstall, "depends", "buckets", "Ready", "False", "waiting for the CRD pails.cluster.example.org")
	pails := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "pails.cluster.example.org"},
		"spec": map[string]any{"group": "cluster.example.org", "scope": "Cluster", "names": map[string]any{"kind": "Pail", "plural": "pails"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}}},
	}}
	_, err := shared.dyn.Resource(crdResource).Create(t.Context(), pails, created)
	must(t, err)
	shared.ready(t, clusterInstall, "depends", "buckets", "0.1")
	shared.becomes(t, clusterInstall, "depends", "buckets", "Synced", "True", "dependsOn pails.cluster.example.org grants nothing")
	role, err := shared.kube.RbacV1().ClusterRoles().Get(t.Context(), "stack:depends:buckets", metav1.GetOptions{})
	must(t, err)
	verbs := map[string][]string{}
	for _, rule := range role.Rules {
		verbs[rule.APIGroups[0]] = append(rule.Verbs, rule.Resources...)
	}
	if owned, needed := verbs["depends.example.org"], verbs["needed.example.org"]; !slices.Equal(owned, needed) ||
		len(owned) == 0 || len(verbs) != 3 {
		t.Errorf("owned CRDs give %v, and those depended on %v, of %v", owned, needed, verbs)
	}
}
