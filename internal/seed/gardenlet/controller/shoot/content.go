package shoot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/node"
)

// deployContent writes what Gardener's users expect into the shoot: RBAC objects, and information about the shoot.
func (b *botanist) deployContent(ctx context.Context) error {
	readers, err := b.readOnlyRole()
	if err != nil {
		return err
	}
	extensions, err := b.extensionTypes(ctx, b.shoot)
	if err != nil {
		return err
	}
	objects := []client.Object{
		systemNamespace(), b.shootInfo(extensions), b.clusterIdentity(), readers,
		clusterBinding(constants.ShootReadOnlyClusterRoleName, constants.ShootReadOnlyClusterRoleName,
			groups(constants.ShootSystemViewersGroupName, constants.ShootProjectViewersGroupName)...),
		clusterBinding(constants.ShootSystemAdminsGroupName, "cluster-admin", groups(constants.ShootSystemAdminsGroupName)...),
		clusterBinding(constants.ShootProjectAdminsGroupName, "cluster-admin", groups(constants.ShootProjectAdminsGroupName)...),
	}
	if len(b.shoot.Spec.Extensions) > 0 {
		objects = append(objects, clusterBinding("gardener.cloud:system:"+constants.SecretNameGardener, "cluster-admin",
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: constants.SecretNameGardener}))
	}
	if !b.workerless() {
		objects = append(objects, node.RBAC()...)
		objects = append(objects, machineControllerRoles()...)
	}
	return b.applyAll(ctx, objects...)
}

// applyAll ensures that objects with the wanted content are in the shoot. Other labels and annotations are kept.
func (b *botanist) applyAll(ctx context.Context, objects ...client.Object) error {
	for _, wanted := range objects {
		obj := wanted.DeepCopyObject().(client.Object)
		err := ensure(ctx, b.shootClient.Client, b.shootClient.Client, obj, func(obj client.Object) error { return overlay(obj, wanted) })
		if err != nil {
			return fmt.Errorf("in the shoot: %w", err)
		}
	}
	return nil
}

// overlay copies the wanted content into an object. It keeps other labels and annotations, which users may have added.
func overlay(obj, wanted client.Object) error {
	obj.SetLabels(labels.Merge(obj.GetLabels(), wanted.GetLabels()))
	obj.SetAnnotations(labels.Merge(obj.GetAnnotations(), wanted.GetAnnotations()))
	switch wanted := wanted.(type) {
	case *corev1.Namespace:
	case *corev1.ConfigMap:
		obj.(*corev1.ConfigMap).Data = wanted.Data
	case *corev1.Secret:
		obj.(*corev1.Secret).Data = wanted.Data
	case *rbacv1.ClusterRole:
		obj.(*rbacv1.ClusterRole).Rules = wanted.Rules
	case *rbacv1.Role:
		obj.(*rbacv1.Role).Rules = wanted.Rules
	case *rbacv1.ClusterRoleBinding:
		obj.(*rbacv1.ClusterRoleBinding).Subjects, obj.(*rbacv1.ClusterRoleBinding).RoleRef = wanted.Subjects, wanted.RoleRef
	case *rbacv1.RoleBinding:
		obj.(*rbacv1.RoleBinding).Subjects, obj.(*rbacv1.RoleBinding).RoleRef = wanted.Subjects, wanted.RoleRef
	default:
		return fmt.Errorf("a %T is not known", wanted)
	}
	return nil
}

// systemNamespace returns kube-system with Gardener's labels.
func systemNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, Labels: map[string]string{
		constants.GardenerPurpose: metav1.NamespaceSystem, "shoot.gardener.cloud/no-cleanup": "true",
	}}}
}

// shootInfo returns the ConfigMap with information about the Shoot for workloads in it.
func (b *botanist) shootInfo(extensions []string) *corev1.ConfigMap {
	s := b.shoot
	data := map[string]string{
		"extensions": strings.Join(extensions, ","), "projectName": b.project, "shootNamespace": s.Namespace, "shootName": s.Name,
		"provider": s.Spec.Provider.Type, "region": s.Spec.Region, "kubernetesVersion": s.Spec.Kubernetes.Version,
		"uid": string(s.UID), "statusUID": string(s.Status.UID),
	}
	if m := s.Spec.Maintenance; m != nil && m.TimeWindow != nil {
		data["maintenanceBegin"], data["maintenanceEnd"] = m.TimeWindow.Begin, m.TimeWindow.End
	}
	if dns := s.Spec.DNS; dns != nil && dns.Domain != nil {
		data["domain"] = *dns.Domain
	}
	if n := s.Spec.Networking; n != nil {
		for name, cidr := range map[string]*string{"podNetwork": n.Pods, "serviceNetwork": n.Services, "nodeNetwork": n.Nodes} {
			if cidr != nil {
				data[name], data[name+"s"] = *cidr, *cidr
			}
		}
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ConfigMapNameShootInfo}, Data: data}
}

// clusterIdentity returns the ConfigMap with the identity that distinguishes the shoot from all other clusters.
func (b *botanist) clusterIdentity() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity},
		Data: map[string]string{
			constants.ClusterIdentity:       ptr.Deref(b.shoot.Status.ClusterIdentity, ""),
			constants.ClusterIdentityOrigin: constants.ClusterIdentityOriginShoot,
		},
	}
}

// readOnlyRole returns the ClusterRole with which viewers read all resources that the API server serves, except secret
// ones.
func (b *botanist) readOnlyRole() (*rbacv1.ClusterRole, error) {
	lists, err := b.shootClient.Resources()
	if err != nil {
		return nil, fmt.Errorf("asking the shoot for its resources: %w", err)
	}
	byGroup := map[string][]string{}
	for _, list := range lists {
		group, _, versioned := strings.Cut(list.GroupVersion, "/")
		if !versioned {
			group = corev1.GroupName
		}
		for _, resource := range list.APIResources {
			readable := slices.Contains(resource.Verbs, "get") || slices.Contains(resource.Verbs, "list")
			if readable && !strings.Contains(resource.Name, "/") && !isSecret(b.shoot, group, resource.Name) &&
				!slices.Contains(byGroup[group], resource.Name) {
				byGroup[group] = append(byGroup[group], resource.Name)
			}
		}
	}
	if pods := byGroup[corev1.GroupName]; slices.Contains(pods, "pods") {
		byGroup[corev1.GroupName] = append(pods, "pods/log")
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: constants.ShootReadOnlyClusterRoleName}}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		slices.Sort(byGroup[group])
		role.Rules = append(role.Rules,
			rbacv1.PolicyRule{APIGroups: []string{group}, Resources: byGroup[group], Verbs: []string{"get", "list", "watch"}})
	}
	return role, nil
}

// isSecret reports whether viewers may not read a resource: Secrets, and resources that the Shoot wants to be
// encrypted.
func isSecret(shoot *corev1beta1.Shoot, group, resource string) bool {
	if group == corev1.GroupName && resource == "secrets" {
		return true
	}
	return slices.Contains(encryptionConfig(shoot).Resources, schema.GroupResource{Group: group, Resource: resource}.String())
}

func groups(names ...string) (subjects []rbacv1.Subject) {
	for _, name := range names {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return subjects
}

func clusterBinding(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

// machineController is the user of the machine controller in a shoot.
const machineController = "gardener.cloud:system:machine-controller-manager"

// machineControllerRoles returns the roles with which the machine controller drains and removes Nodes, and creates the
// bootstrap tokens of machines.
func machineControllerRoles() []client.Object {
	who := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: machineController}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: machineController}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: machineController}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete", "get", "list", "patch", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete", "list"}},
			{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		}},
		clusterBinding(machineController, machineController, who),
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "delete", "get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{who},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: machineController}},
	}
}
