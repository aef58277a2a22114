package kubecontrollers

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/manifests"
)

// TestServiceAccounts compares the identities with Kubernetes' own policy: under another name, a controller would have
// no permissions.
func TestServiceAccounts(t *testing.T) {
	policy, err := manifest.LoadFS(manifests.FS, "shoot")
	if err != nil {
		t.Fatal(err)
	}
	var subjects []rbacv1.Subject
	for _, obj := range policy {
		binding := &rbacv1.ClusterRoleBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, binding); err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, binding.Subjects...)
	}
	for _, binding := range bootstrappolicy.ControllerRoleBindings() {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			subjects = append(subjects, binding.Subjects...)
		}
	}
	bound := sets.New[string]()
	for _, subject := range subjects {
		bound.Insert(subject.Namespace + "/" + subject.Name)
	}
	for _, entry := range table {
		if entry.serviceAccount != "" && !bound.Has("kube-system/"+entry.serviceAccount) {
			t.Errorf("%s: Kubernetes binds no role to the service account %s", entry.name, entry.serviceAccount)
		}
	}
	for _, entry := range workloads {
		if entry.serviceAccount != "" && !bound.Has("kube-system/"+entry.serviceAccount) {
			t.Errorf("%s: Kubernetes binds no role to the service account %s", entry.name, entry.serviceAccount)
		}
	}
}
