package stacks

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

const stackManager = "gardenlite.dev:system:stack-manager"

// TestPrivilegesOfTheStackManager: the Stack Manager itself cannot grant more than stacks have, whatever it writes
// ("Stack Manager").
func TestPrivilegesOfTheStackManager(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "privileges")
	config := rest.CopyConfig(shared.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: stackManager, Groups: []string{"system:authenticated"}}
	manager := dynamic.NewForConfigOrDie(config)
	labels := "labels: {stacks.crossplane.io/stack: s, stacks.crossplane.io/stack-namespace: privileges, " +
		"app.kubernetes.io/managed-by: stack-manager}"
	for name, test := range map[string]struct{ resource, object, says string }{
		"a role with nodes": {"rbac.authorization.k8s.io/v1/clusterroles", `
kind: ClusterRole
metadata: {name: "stack:privileges:s", LABELS}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]`, "ConfigMaps, Secrets, Events and custom resources only"},
		"a role with everything": {"rbac.authorization.k8s.io/v1/clusterroles", `
kind: ClusterRole
metadata: {name: "stack:privileges:s", LABELS}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`, "ConfigMaps, Secrets, Events and custom resources only"},
		"a role with Shoots": {"rbac.authorization.k8s.io/v1/roles", `
kind: Role
metadata: {name: s, namespace: privileges, LABELS}
rules: [{apiGroups: [core.gardener.cloud], resources: [shoots], verbs: [get]}]`, "custom resources only"},
		"a role with paths": {"rbac.authorization.k8s.io/v1/clusterroles", `
kind: ClusterRole
metadata: {name: "stack:privileges:s", LABELS}
rules: [{nonResourceURLs: ["/metrics"], verbs: [get]}]`, "custom resources only"},
		"an aggregated role": {"rbac.authorization.k8s.io/v1/clusterroles", `
kind: ClusterRole
metadata: {name: "stack:privileges:s", LABELS}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}`, "not aggregated"},
		"a role of another name": {"rbac.authorization.k8s.io/v1/clusterroles", `
kind: ClusterRole
metadata: {name: "view-more", LABELS}
rules: []`, "not a role of a stack"},
		"more for itself": {"rbac.authorization.k8s.io/v1/clusterroles", `
kind: ClusterRole
metadata: {name: "gardenlite.dev:system:stack-manager:instances", LABELS}
rules: [{apiGroups: [a.example.org], resources: [buckets], verbs: [list, get]}]`, "lists instances and does nothing else"},
		"cluster-admin": {"rbac.authorization.k8s.io/v1/clusterrolebindings", `
kind: ClusterRoleBinding
metadata: {name: "stack:privileges:s", LABELS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: privileges, name: s}]`, "a stack has its own role"},
		"admin in a namespace": {"rbac.authorization.k8s.io/v1/rolebindings", `
kind: RoleBinding
metadata: {name: s, namespace: privileges, LABELS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: s}
subjects: [{kind: ServiceAccount, namespace: privileges, name: s}]`, "a stack has its own role"},
		"a binding for a user": {"rbac.authorization.k8s.io/v1/rolebindings", `
kind: RoleBinding
metadata: {name: s, namespace: privileges, LABELS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: s}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: s}]`, "ServiceAccount only"},
		"a binding for another namespace": {"rbac.authorization.k8s.io/v1/clusterrolebindings", `
kind: ClusterRoleBinding
metadata: {name: "stack:privileges:s", LABELS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "stack:privileges:s"}
subjects: [{kind: ServiceAccount, namespace: default, name: s}]`, "ServiceAccount only"},
		"a controller with another identity": {"apps/v1/deployments", deployment("privileges", "serviceAccountName: default"),
			"the stack's ServiceAccount"},
		"a controller in kube-system": {"apps/v1/deployments", deployment("kube-system", "serviceAccountName: s"),
			"namespaces of Kubernetes"},
		"a controller in the garden": {"apps/v1/deployments", deployment("garden", "serviceAccountName: s"),
			"namespaces of Kubernetes and the landscape"},
		"a role in a namespace of Gardener's": {"rbac.authorization.k8s.io/v1/roles", `
kind: Role
metadata: {name: s, namespace: gardener-system-public, LABELS}
rules: []`, "namespaces of Kubernetes and the landscape"},
		"a binding for an extension": {"rbac.authorization.k8s.io/v1/clusterrolebindings", `
kind: ClusterRoleBinding
metadata: {name: "stack:seed-local:s", LABELS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "stack:seed-local:s"}
subjects: [{kind: ServiceAccount, namespace: seed-local, name: s}]`, "namespaces of Kubernetes and the landscape"},
		"a ServiceAccount in the garden": {"/v1/serviceaccounts", `
kind: ServiceAccount
metadata: {name: s, namespace: garden, LABELS}`, "namespaces of Kubernetes and the landscape"},
		"an extension's ServiceAccount": {"/v1/serviceaccounts", `
kind: ServiceAccount
metadata: {name: extension-x, namespace: privileges, labels: {stacks.crossplane.io/stack: extension-x}}`, "a meaning for another part"},
		"a controller on its node": {"apps/v1/deployments",
			deployment("privileges", "serviceAccountName: s\n      hostNetwork: true"), "no access to its node"},
		"a controller with a hostPath": {"apps/v1/deployments",
			deployment("privileges", "serviceAccountName: s\n      volumes: [{name: v, hostPath: {path: /}}]"), "volumes of its own only"},
		"a CRD of Kubernetes": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("batch.k8s.io", "Namespaced"), "not one of a stack"},
		"a CRD of Gardener": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("core.gardener.cloud", "Namespaced"), "not one of a stack"},
		"a CRD of KWOK": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("kwok.x-k8s.io", "Namespaced"), "not one of a stack"},
		"a CRD of a group like Kubernetes'": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("my-k8s.io", "Namespaced"), "not one of a stack"},
		"a CRD of machine-controller-manager": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("machine.sapcloud.io", "Namespaced"), "not one of a stack"},
		"a CRD of gardenlite": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("gardenlite.dev", "Namespaced"), "not one of a stack"},
		"a role with Stages": {"rbac.authorization.k8s.io/v1/roles", `
kind: Role
metadata: {name: s, namespace: privileges, LABELS}
rules: [{apiGroups: [kwok.x-k8s.io], resources: [stages], verbs: [create]}]`, "custom resources only"},
		"a cluster-scoped CRD": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("privileges.example.org", "Cluster"), "namespaced"},
		"a CRD that it does not manage": {"apiextensions.k8s.io/v1/customresourcedefinitions",
			strings.ReplaceAll(definition("privileges.example.org", "Namespaced"), "LABELS", "labels: {a: b}"), "not a CRD of a stack"},
		"a ServiceAccount of another name": {"/v1/serviceaccounts", `
kind: ServiceAccount
metadata: {name: other, namespace: privileges, LABELS}`, "not the ServiceAccount of a stack"},
		"a Secret": {"/v1/secrets", `
kind: Secret
metadata: {name: s, namespace: privileges}`, "cannot create resource"},
		"a Pod": {"/v1/pods", `
kind: Pod
metadata: {name: s, namespace: privileges}`, "cannot create resource"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			parts := strings.Split(test.resource, "/")
			must(t, yaml.Unmarshal(
				[]byte("apiVersion: "+strings.TrimPrefix(parts[0]+"/"+parts[1], "/")+strings.ReplaceAll(test.object, "LABELS", labels)), object))
			resource := manager.Resource(schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}).Namespace(
				object.GetNamespace())
			_, err := resource.Create(t.Context(), object, created)
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; it should say %q", err, test.says)
			}
		})
	}
	// It cannot delete objects that are not of a stack.
	for _, p := range []place{{rbacResource("clusterroles"), "", "view"}, {rbacResource("clusterrolebindings"), "", "cluster-admin"},
		{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "privileges", "default"},
		{crdResource, "", "stacks.stacks.crossplane.io"}} {
		eventually(t, suite.Timeout, func(ctx context.Context) error { _, err := shared.get(ctx, p); return err })
		err := manager.Resource(p.resource).Namespace(p.namespace).Delete(
			t.Context(), p.name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("deleting %s %s: %v", p.resource.Resource, p.name, err)
		}
	}
}

func deployment(namespace, pod string) string {
	return `
kind: Deployment
metadata: {name: d, namespace: ` + namespace + `, LABELS}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      ` + pod + `
      containers: [{name: c, image: i}]`
}

func definition(group, scope string) string {
	return `
kind: CustomResourceDefinition
metadata: {name: buckets.` + group + `, annotations: {api-approved.kubernetes.io: unapproved}, LABELS}
spec:
  group: ` + group + `
  names: {kind: Bucket, plural: buckets}
  scope: ` + scope + `
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`
}

func definitionObject(t *testing.T, group string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(
		[]byte("apiVersion: apiextensions.k8s.io/v1"+strings.ReplaceAll(definition(group, "Namespaced"), "LABELS", "labels: {a: b}")), object))
	return object
}
