package controllermanager

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// extensionClusterRoleName is the name of the controller, as in Gardener.
const extensionClusterRoleName = "controllerregistration-extension-clusterrole"

// selectorAnnotation is the annotation of a ClusterRole with the selector for service accounts.
const selectorAnnotation = constants.LabelAuthorizationExtensionsServiceAccountSelector

// projectNamespacePrefix is the prefix of the names of the namespaces of Projects.
const projectNamespacePrefix = "garden-"

// ExtensionClusterRole grants extensions additional permissions in the garden: for each ClusterRole that is labelled
// for it, it binds the service accounts that the ClusterRole's annotation selects.
//
// Only service accounts that nothing but Gardener creates are bound: those in the namespace of a Seed, and, in the
// namespace garden and in namespaces of Projects, those with the name prefix for extensions.
type ExtensionClusterRole struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ExtensionClusterRole) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, extensionClusterRoleName)
	return component.NewControllerBuilder(mgr, extensionClusterRoleName).
		For(&rbacv1.ClusterRole{}, builder.OnlyMetadata, builder.WithPredicates(mayBeBound())).
		WatchesMetadata(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.clusterRolesOf),
			builder.WithPredicates(predicate.NewPredicateFuncs(isOfExtension))).
		Complete(r)
}

// mayBeBound passes ClusterRoles that are for extensions, or were: the binding of one without the label is deleted.
func mayBeBound() predicate.Predicate {
	return kit.IsOrWas(func(clusterRole client.Object) bool {
		_, selects := clusterRole.GetAnnotations()[selectorAnnotation]
		return selects || isForExtensions(clusterRole)
	})
}

func isForExtensions(clusterRole client.Object) bool {
	return clusterRole.GetLabels()[constants.LabelAuthorizationCustomExtensionsPermissions] == "true"
}

// isOfExtension reports whether a service account can only belong to an extension.
func isOfExtension(account client.Object) bool {
	namespace := account.GetNamespace()
	if strings.HasPrefix(namespace, seedidentity.NamespacePrefix) {
		return true
	}
	return strings.HasPrefix(account.GetName(), constants.ExtensionShootServiceAccountPrefix) &&
		(namespace == constants.GardenNamespace || strings.HasPrefix(namespace, projectNamespacePrefix))
}

// clusterRolesOf returns requests for the ClusterRoles that select a service account.
func (r *ExtensionClusterRole) clusterRolesOf(ctx context.Context, account client.Object) []reconcile.Request {
	clusterRoles := kit.MetadataList(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	return kit.RequestsIf(ctx, r.Client, clusterRoles, func(clusterRole *metav1.PartialObjectMetadata) bool {
		selector, err := selectorOf(clusterRole)
		if err != nil {
			logf.FromContext(ctx).Error(err, "Reading which service accounts a ClusterRole is for")
		}
		return err == nil && selector.Matches(labels.Set(account.GetLabels()))
	}, client.MatchingLabels{constants.LabelAuthorizationCustomExtensionsPermissions: "true"})
}

// Reconcile makes the subjects of the ClusterRoleBinding exactly the service accounts that the ClusterRole selects.
func (r *ExtensionClusterRole) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	clusterRole := &metav1.PartialObjectMetadata{}
	clusterRole.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err := r.Client.Get(ctx, request.NamespacedName, clusterRole); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if clusterRole.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if !isForExtensions(clusterRole) {
		return reconcile.Result{}, r.deleteBinding(ctx, clusterRole)
	}
	subjects, err := r.subjects(ctx, clusterRole)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.bind(ctx, clusterRole, subjects); err != nil {
		return reconcile.Result{}, fmt.Errorf("binding extensions to the ClusterRole %q: %w", request.Name, err)
	}
	return reconcile.Result{}, nil
}

func (r *ExtensionClusterRole) bind(ctx context.Context, clusterRole *metav1.PartialObjectMetadata, subjects []rbacv1.Subject) error {
	owner := metav1.NewControllerRef(clusterRole, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	owner.BlockOwnerDeletion = ptr.To(false)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: clusterRole.Name}}
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, binding, func() error {
		binding.OwnerReferences, binding.Subjects = []metav1.OwnerReference{*owner}, subjects
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole.Name}
		return nil
	})
	return err
}

// deleteBinding deletes the ClusterRoleBinding that bind has created.
func (r *ExtensionClusterRole) deleteBinding(ctx context.Context, clusterRole *metav1.PartialObjectMetadata) error {
	binding := &rbacv1.ClusterRoleBinding{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(clusterRole), binding)
	if err == nil && metav1.IsControlledBy(binding, clusterRole) {
		err = r.Client.Delete(ctx, binding, client.Preconditions{UID: &binding.UID})
	}
	return client.IgnoreNotFound(err)
}

// subjects returns the service accounts that a ClusterRole selects, sorted.
func (r *ExtensionClusterRole) subjects(ctx context.Context, clusterRole *metav1.PartialObjectMetadata) (subjects []rbacv1.Subject,
	err error) {
	selector, err := selectorOf(clusterRole)
	if err != nil {
		return nil, err
	}
	accounts := kit.MetadataList(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err := r.Client.List(ctx, accounts, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the service accounts that the ClusterRole %q is for: %w", clusterRole.Name, err)
	}
	for i := range accounts.Items {
		if isOfExtension(&accounts.Items[i]) {
			subjects = append(subjects,
				rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: accounts.Items[i].Namespace, Name: accounts.Items[i].Name})
		}
	}
	slices.SortFunc(subjects, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return subjects, nil
}

// selectorOf returns the selector for service accounts in the annotation of a ClusterRole.
func selectorOf(clusterRole client.Object) (labels.Selector, error) {
	value, ok := clusterRole.GetAnnotations()[selectorAnnotation]
	if !ok {
		return nil, fmt.Errorf("the ClusterRole %q is labelled for extensions and therefore needs the annotation %s, a label selector",
			clusterRole.GetName(), selectorAnnotation)
	}
	selector := &metav1.LabelSelector{}
	if err := json.Unmarshal([]byte(value), selector); err != nil {
		return nil, fmt.Errorf("reading the annotation %s of the ClusterRole %q, which must be a label selector in JSON: %w",
			selectorAnnotation, clusterRole.GetName(), err)
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("reading the label selector in the annotation %s of the ClusterRole %q: %w",
			selectorAnnotation, clusterRole.GetName(), err)
	}
	return read, nil
}
