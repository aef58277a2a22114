package controllermanager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// projectUse finds out whether a namespace is used, and by what.
type projectUse struct {
	reader    client.Reader
	namespace string
}

// refersTo reports whether a binding refers to one of the objects in question. References to Quotas have no API
// version.
type refersTo func(credentials corev1.ObjectReference, quotas []corev1.ObjectReference) bool

// by returns the kind of objects through which the namespace is used, "" if it is unused.
func (u *projectUse) by(ctx context.Context) (string, error) {
	for kind, list := range map[string]client.ObjectList{"Shoots": &corev1beta1.ShootList{}, "BackupEntries": &corev1beta1.BackupEntryList{}} {
		if err := u.reader.List(ctx, list, client.InNamespace(u.namespace)); err != nil {
			return "", fmt.Errorf("listing %s: %w", kind, err)
		}
		if meta.LenList(list) > 0 {
			return kind, nil
		}
	}
	quotas := &corev1beta1.QuotaList{}
	if err := u.reader.List(ctx, quotas, client.InNamespace(u.namespace)); err != nil {
		return "", fmt.Errorf("listing Quotas: %w", err)
	}
	names := sets.New[string]()
	for _, quota := range quotas.Items {
		names.Insert(quota.Name)
	}
	refersToQuota := func(_ corev1.ObjectReference, quotas []corev1.ObjectReference) bool {
		return slices.ContainsFunc(quotas, func(q corev1.ObjectReference) bool { return q.Namespace == u.namespace && names.Has(q.Name) })
	}
	if used, err := u.throughBindings(ctx, len(names) > 0, refersToQuota, refersToQuota); err != nil || used {
		return "Quotas", err
	}
	return u.byCredentials(ctx)
}

// byCredentials returns the kind of credentials through which the namespace is used, "" if none of its credentials are
// used.
func (u *projectUse) byCredentials(ctx context.Context) (string, error) {
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1beta1.SchemeGroupVersion.WithKind("InternalSecret"),
		securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity"),
	} {
		bySecretBinding, err := u.marked(ctx, kind, constants.LabelSecretBindingReference)
		if err != nil {
			return "", err
		}
		byCredentialsBinding, err := u.marked(ctx, kind, constants.LabelCredentialsBindingReference)
		if err != nil {
			return "", err
		}
		among := func(names map[string]bool) refersTo {
			return func(c corev1.ObjectReference, _ []corev1.ObjectReference) bool {
				return c.GroupVersionKind() == kind && c.Namespace == u.namespace && names[c.Name]
			}
		}
		used, err := u.throughBindings(ctx, len(bySecretBinding)+len(byCredentialsBinding) > 0, among(bySecretBinding),
			among(byCredentialsBinding))
		if err != nil || used {
			return kind.Kind + "s", err
		}
	}
	return "", nil
}

// marked returns the names of the objects with the label of a kind of binding, without the Secrets of control planes
// that gardenlets have created.
func (u *projectUse) marked(ctx context.Context, kind schema.GroupVersionKind, label string) (map[string]bool, error) {
	selector, err := labels.Parse(fmt.Sprintf("%s=true,%s notin (%s)", label, constants.GardenRole,
		strings.Join(constants.ControlPlaneSecretRoles, ",")))
	if err != nil {
		return nil, fmt.Errorf("selecting things with the label %s: %w", label, err)
	}
	list := kit.MetadataList(kind)
	if err := u.reader.List(ctx, list, client.InNamespace(u.namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	names := map[string]bool{}
	for _, item := range list.Items {
		names[item.Name] = true
	}
	return names, nil
}

// throughBindings reports whether a Shoot in any namespace uses a binding for which bySecretBinding or
// byCredentialsBinding returns true. If something is false, there are no objects to refer to, and it returns false
// without listing bindings.
func (u *projectUse) throughBindings(ctx context.Context, something bool, bySecretBinding, byCredentialsBinding refersTo) (bool, error) {
	if !something {
		return false, nil
	}
	secretBindings, credentialsBindings := &corev1beta1.SecretBindingList{}, &securityv1alpha1.CredentialsBindingList{}
	if err := u.reader.List(ctx, secretBindings); err != nil {
		return false, fmt.Errorf("listing SecretBindings: %w", err)
	}
	if err := u.reader.List(ctx, credentialsBindings); err != nil {
		return false, fmt.Errorf("listing CredentialsBindings: %w", err)
	}
	secret, credentials := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	for _, b := range secretBindings.Items {
		if bySecretBinding(kit.SecretOf(&b), b.Quotas) {
			secret[client.ObjectKeyFromObject(&b)] = true
		}
	}
	for _, b := range credentialsBindings.Items {
		if byCredentialsBinding(b.CredentialsRef, b.Quotas) {
			credentials[client.ObjectKeyFromObject(&b)] = true
		}
	}
	return u.haveShoots(ctx, secret, credentials)
}

// haveShoots reports whether a Shoot uses one of the bindings.
func (u *projectUse) haveShoots(ctx context.Context, secretBindings, credentialsBindings map[types.NamespacedName]bool) (bool, error) {
	namespaces := map[string]bool{}
	for _, bindings := range []map[types.NamespacedName]bool{secretBindings, credentialsBindings} {
		for name := range bindings {
			namespaces[name.Namespace] = true
		}
	}
	for namespace := range namespaces {
		shoots := &corev1beta1.ShootList{}
		if err := u.reader.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("listing Shoots in the namespace %q: %w", namespace, err)
		}
		for _, shoot := range shoots.Items {
			name := func(name *string) types.NamespacedName {
				return types.NamespacedName{Namespace: namespace, Name: ptr.Deref(name, "")}
			}
			if secretBindings[name(shoot.Spec.SecretBindingName)] || credentialsBindings[name(shoot.Spec.CredentialsBindingName)] {
				return true, nil
			}
		}
	}
	return false, nil
}
