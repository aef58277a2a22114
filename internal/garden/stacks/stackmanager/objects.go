package stackmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

const (
	// stackLabel and namespaceLabel name the Stack of an object. A cluster-scoped object needs both.
	stackLabel     = "stacks.crossplane.io/stack"
	namespaceLabel = "stacks.crossplane.io/stack-namespace"
	// digestAnnotation has the digest of the package that a controller is from.
	digestAnnotation = "stacks.crossplane.io/package-digest"
	// completedAnnotation of a Stack has the digest of the package whose Job has completed.
	completedAnnotation = "stacks.crossplane.io/completed-digest"
	// clusterRolePrefix is the prefix of the names of ClusterRoles and ClusterRoleBindings, followed by NAMESPACE:NAME.
	clusterRolePrefix = "stack:"
)

// stackLabels returns the labels of the objects of a stack.
func stackLabels(key client.ObjectKey) map[string]string {
	return map[string]string{stackLabel: key.Name, namespaceLabel: key.Namespace, stackpackage.ManagedByLabel: stackpackage.ManagedBy}
}

// allVerbs is granted for owned CRDs and for CRDs in dependsOn (Stacks security and isolation, "Allowed Resource
// Access").
var allVerbs = []string{"*"}

// rulesOf returns the permissions of a stack with access to the CRDs.
func rulesOf(crds []*apiextensionsv1.CustomResourceDefinition) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "events", "secrets"}, Verbs: allVerbs}}
	for _, crd := range crds {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{crd.Spec.Group}, Resources: resourcesOf(crd), Verbs: allVerbs})
	}
	return rules
}

// resourcesOf returns the resource of a CRD and its subresources.
func resourcesOf(crd *apiextensionsv1.CustomResourceDefinition) []string {
	plural := crd.Spec.Names.Plural
	resources := []string{plural, plural + "/finalizers"}
	if slices.ContainsFunc(crd.Spec.Versions, hasStatus) {
		resources = append(resources, plural+"/status")
	}
	if slices.ContainsFunc(crd.Spec.Versions, hasScale) {
		resources = append(resources, plural+"/scale")
	}
	return resources
}

// serviceAccountOf returns the ServiceAccount of the stack's controller.
func serviceAccountOf(key client.ObjectKey) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}}
}

// permissionsOf returns the role of the stack and its binding, which are cluster-scoped for a cluster stack.
func permissionsOf(key client.ObjectKey, scope stackpackage.Scope, rules []rbacv1.PolicyRule) (role, binding client.Object) {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: key.Namespace, Name: key.Name}}
	if scope == stackpackage.ClusterScope {
		meta := metav1.ObjectMeta{Name: clusterRoleName(key)}
		return &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}
	}
	meta := metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}
	return &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}
}

// clusterRoleName includes the namespace, so that the names for Stacks of two namespaces do not collide.
func clusterRoleName(key client.ObjectKey) string {
	return clusterRolePrefix + key.Namespace + ":" + key.Name
}

// controllerOf returns the controller of a package with the ServiceAccount of its Stack, and nil if there is none.
func controllerOf(key client.ObjectKey, p *stackpackage.Package) client.Object {
	switch {
	case p.Deployment != nil:
		d := p.Deployment.DeepCopy()
		d.Namespace = key.Namespace
		setTemplate(&d.Spec.Template, key, p)
		d.Spec.Selector = cmp.Or(d.Spec.Selector, &metav1.LabelSelector{})
		// The label excludes the Pods of other stacks.
		metav1.AddLabelToSelector(d.Spec.Selector, stackLabel, key.Name)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, digestAnnotation, p.Digest)
		return d
	case p.Job != nil:
		j := p.Job.DeepCopy()
		j.Namespace = key.Namespace
		setTemplate(&j.Spec.Template, key, p)
		metav1.SetMetaDataAnnotation(&j.ObjectMeta, digestAnnotation, p.Digest)
		return j
	}
	return nil
}

func setTemplate(template *corev1.PodTemplateSpec, key client.ObjectKey, p *stackpackage.Package) {
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, digestAnnotation, p.Digest)
	metav1.SetMetaDataLabel(&template.ObjectMeta, stackLabel, key.Name)
	metav1.SetMetaDataLabel(&template.ObjectMeta, namespaceLabel, key.Namespace)
	template.Spec.ServiceAccountName = key.Name
}

// record returns the spec of the Stack for a package. CRDs that an earlier version of the package owned remain in it
// until the stack is uninstalled.
func record(stack *v1alpha1.Stack, p *stackpackage.Package, rules []rbacv1.PolicyRule) v1alpha1.StackSpec {
	spec := v1alpha1.StackSpec{App: p.App, Permissions: v1alpha1.Permissions{Rules: rules}}
	for _, crd := range p.CRDs {
		spec.CustomResourceDefinitions = append(spec.CustomResourceDefinitions, v1alpha1.CRDReference{
			APIVersion: crd.Spec.Group + "/" + storageVersion(crd), Kind: crd.Spec.Names.Kind, Name: crd.Name,
		})
	}
	for _, earlier := range stack.Spec.CustomResourceDefinitions {
		if !slices.ContainsFunc(spec.CustomResourceDefinitions, func(c v1alpha1.CRDReference) bool { return c.Name == earlier.Name }) {
			spec.CustomResourceDefinitions = append(spec.CustomResourceDefinitions, earlier)
		}
	}
	slices.SortFunc(spec.CustomResourceDefinitions, func(a, b v1alpha1.CRDReference) int { return strings.Compare(a.Name, b.Name) })
	switch controller := controllerOf(client.ObjectKeyFromObject(stack), p).(type) {
	case *appsv1.Deployment:
		spec.Controller.Deployment = &v1alpha1.ControllerDeployment{Name: controller.Name, Spec: controller.Spec}
	case *batchv1.Job:
		spec.Controller.Job = &v1alpha1.ControllerJob{Name: controller.Name, Spec: controller.Spec}
	}
	return spec
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// owns reports whether a Stack owns a CRD.
func owns(stack *v1alpha1.Stack, crd string) bool {
	return slices.ContainsFunc(stack.Spec.CustomResourceDefinitions, func(c v1alpha1.CRDReference) bool { return c.Name == crd })
}

// finalizer is the finalizer of installs: their stack is uninstalled before they are deleted.
const finalizer = "stacks.crossplane.io/stack-manager"

// kindOf returns the kind of an object from its Go type, because the TypeMeta may be empty.
func kindOf(object client.Object) string {
	name := fmt.Sprintf("%T", object)
	return name[strings.LastIndex(name, ".")+1:]
}
