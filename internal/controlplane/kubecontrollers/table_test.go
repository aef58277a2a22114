package kubecontrollers

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// TestServiceAccounts holds the identities to Kubernetes' own policy: with another name a controller may do nothing.
func TestServiceAccounts(t *testing.T) {
	_, ofNodes := NodesPolicy()
	subjects := ofNodes.Subjects
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
