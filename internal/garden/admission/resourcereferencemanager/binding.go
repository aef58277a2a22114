package resourcereferencemanager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// binding has the common fields of a SecretBinding and a CredentialsBinding.
type binding struct {
	name      string
	providers []string
	quotas    []corev1.ObjectReference
	// boundBy returns the name of the binding of this kind that a Shoot uses.
	boundBy func(*gardencore.Shoot) *string

	// credentials is the resource of the credentials, namespace and of are their namespace and name, and
	// credentialsPath is the field that refers to them.
	credentials     schema.GroupVersionResource
	namespace, of   string
	credentialsPath *field.Path
}

func (m *manager) secretBinding(ctx context.Context, a admission.Attributes, b, _ *gardencore.SecretBinding) error {
	common := &binding{
		name: b.Name, quotas: b.Quotas,
		boundBy:     func(shoot *gardencore.Shoot) *string { return shoot.Spec.SecretBindingName },
		credentials: corev1.SchemeGroupVersion.WithResource("secrets"),
		namespace:   b.SecretRef.Namespace, of: b.SecretRef.Name, credentialsPath: field.NewPath("secretRef"),
	}
	if b.Provider != nil {
		common.providers = strings.Split(b.Provider.Type, ",")
	}
	return m.binding(ctx, a, common)
}

func (m *manager) credentialsBinding(ctx context.Context, a admission.Attributes, b, _ *security.CredentialsBinding) error {
	path, ref := field.NewPath("credentialsRef"), b.CredentialsRef
	credentials, known := shootcommon.CredentialsResources[ref.APIVersion]
	if !known {
		return field.NotSupported(path.Child("kind"), ref.GroupVersionKind().String(), []string{"Secret", "InternalSecret", "WorkloadIdentity"})
	}
	return m.binding(ctx, a, &binding{
		name: b.Name, quotas: b.Quotas, providers: []string{b.Provider.Type},
		boundBy:     func(shoot *gardencore.Shoot) *string { return shoot.Spec.CredentialsBindingName },
		credentials: credentials, namespace: ref.Namespace, of: ref.Name, credentialsPath: path,
	})
}

func (m *manager) binding(ctx context.Context, a admission.Attributes, b *binding) error {
	if err := m.fitsShoots(ctx, a, b); err != nil {
		return err
	}
	if err := m.bindable(ctx, a, b.credentials, b.namespace, b.of, b.credentialsPath); err != nil {
		return err
	}
	if err := m.checkCredentials(ctx, b); err != nil {
		return err
	}
	return m.quotas(ctx, a, b.quotas)
}

// fitsShoots checks that the binding is for the provider of every Shoot that uses it.
func (m *manager) fitsShoots(ctx context.Context, a admission.Attributes, b *binding) error {
	shoots, err := plugin.List[*gardencore.Shoot](ctx, m.deps.Reader, gardencore.Resource("shoots"), a.GetNamespace(), nil)
	if err != nil {
		return fmt.Errorf("listing the shoots of namespace %q: %v", a.GetNamespace(), err)
	}
	for _, shoot := range shoots {
		if ptr.Deref(b.boundBy(shoot), "") == b.name && !slices.Contains(b.providers, shoot.Spec.Provider.Type) {
			return field.Invalid(field.NewPath("provider", "type"), strings.Join(b.providers, ","),
				fmt.Sprintf("shoot %q uses the binding and has provider %q", shoot.Name, shoot.Spec.Provider.Type))
		}
	}
	return nil
}

// bindable checks that the user may read the object that a binding refers to. gardenadm, which creates the binding when
// it connects a self-hosted Shoot, need not have read access to objects in the same namespace.
func (m *manager) bindable(ctx context.Context, a admission.Attributes, resource schema.GroupVersionResource, namespace,
	name string, path *field.Path) error {
	if namespace == a.GetNamespace() && isGardenadm(a.GetUserInfo()) {
		return nil
	}
	return m.validateReadAccess(ctx, a, resource, namespace, name, path)
}

func isGardenadm(who user.Info) bool {
	return slices.Contains(who.GetGroups(), v1beta1constants.ShootsGroup) &&
		strings.HasPrefix(who.GetName(), v1beta1constants.GardenadmUserNamePrefix)
}

// scopes maps the scope of a Quota to its name; there are only two of them.
var scopes = map[schema.GroupVersionKind]string{
	gardencorev1beta1.SchemeGroupVersion.WithKind("Project"):         "project",
	corev1.SchemeGroupVersion.WithKind("Secret"):                     "credentials",
	securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity"): "credentials",
}

// quotas checks that the user may read the Quotas and that each scope has at most one.
func (m *manager) quotas(ctx context.Context, a admission.Attributes, refs []corev1.ObjectReference) error {
	seen := map[string]string{}
	for i, ref := range refs {
		path := field.NewPath("quotas").Index(i)
		if err := m.bindable(ctx, a, gardencorev1beta1.SchemeGroupVersion.WithResource("quotas"), ref.Namespace, ref.Name, path); err != nil {
			return err
		}
		quota, err := get[*gardencore.Quota](ctx, m, gardencore.Resource("quotas"), ref.Namespace, ref.Name, path)
		if err != nil {
			return err
		}
		name := ref.Namespace + "/" + ref.Name
		scope, known := scopes[quota.Spec.Scope.GroupVersionKind()]
		if !known {
			return field.Invalid(path, name, fmt.Sprintf("has the unknown scope %s", quota.Spec.Scope.GroupVersionKind()))
		}
		if other, ok := seen[scope]; ok {
			return field.Forbidden(
				path, fmt.Sprintf("%s has the scope %q, as has %s; a binding has one quota of each scope at most", name, scope, other))
		}
		seen[scope] = name
	}
	return nil
}
