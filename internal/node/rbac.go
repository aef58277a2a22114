package node

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	groupBootstrappers = "system:bootstrappers"
	groupNodes         = "system:nodes"
	roleName           = "gardener-node-agent"
	stagesRoleName     = "gardenlite:stages"
	// StagesCRD is the name of the CustomResourceDefinition of KWOK's Stages.
	StagesCRD = "stages.kwok.x-k8s.io"
)

// RBAC returns the objects that nodes need in a shoot in addition to Kubernetes' Node authorizer: to request a client
// certificate with a bootstrap token and to renew it, to read the OperatingSystemConfigs of the pools (secretNames:
// those of all pools of the shoot, and no other Secret), and to read KWOK's Stages.
func RBAC(secretNames ...string) []client.Object {
	binding := func(name, group, role string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{subject(group)},
		}
	}
	const certificates = "system:certificates.k8s.io:certificatesigningrequests:"
	objects := []client.Object{
		binding("system:node-bootstrapper", groupBootstrappers, "system:node-bootstrapper"),
		binding(certificates+"nodeclient", groupBootstrappers, certificates+"nodeclient"),
		binding(certificates+"selfnodeclient", groupNodes, certificates+"selfnodeclient"),
		&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: stagesRoleName}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"kwok.x-k8s.io"}, Resources: []string{"stages"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{StagesCRD},
				Verbs: []string{"watch"}},
		}},
		binding(stagesRoleName, groupNodes, stagesRoleName),
	}
	if len(secretNames) == 0 { // a rule without names would be one for all Secrets
		return objects
	}
	meta := metav1.ObjectMeta{Name: roleName, Namespace: SecretNamespace}
	return append(objects,
		&rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, ResourceNames: secretNames, Verbs: []string{"get", "watch"},
		}}},
		&rbacv1.RoleBinding{TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName},
			Subjects: []rbacv1.Subject{subject(groupBootstrappers), subject(groupNodes)},
		})
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func subject(group string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}
}
