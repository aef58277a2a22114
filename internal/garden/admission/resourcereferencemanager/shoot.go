package resourcereferencemanager

import (
	"context"
	"errors"
	"reflect"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
)

// shoot checks references that have changed. Only the cloud profile must exist with every change of the spec.
func (m *manager) shoot(ctx context.Context, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	if a.GetOperation() == admission.Update && reflect.DeepEqual(shoot.Spec, old.Spec) {
		return nil
	}
	path := field.NewPath("spec")
	if _, err := cloudprofile.Spec(ctx, m.deps.Reader, shoot); err != nil {
		if fieldErr := (*field.Error)(nil); errors.As(err, &fieldErr) {
			return err
		}
		return field.InternalError(path.Child("cloudProfile"), err)
	}
	for _, ref := range []struct {
		resource  schema.GroupResource
		namespace string
		name, old *string
		field     string
	}{
		{gardencore.Resource("seeds"), "", shoot.Spec.SeedName, old.Spec.SeedName, "seedName"},
		{gardencore.Resource("secretbindings"), shoot.Namespace, shoot.Spec.SecretBindingName, old.Spec.SecretBindingName, "secretBindingName"},
		{security.Resource("credentialsbindings"), shoot.Namespace, shoot.Spec.CredentialsBindingName,
			old.Spec.CredentialsBindingName, "credentialsBindingName"},
		{gardencore.Resource("exposureclasses"), "", shoot.Spec.ExposureClassName, old.Spec.ExposureClassName, "exposureClassName"},
	} {
		if ref.name == nil || same(ref.name, ref.old) {
			continue
		}
		if err := m.exists(ctx, ref.resource, ref.namespace, *ref.name, path.Child(ref.field)); err != nil {
			return err
		}
	}
	if err := m.resources(ctx, a, shoot.Namespace, shoot.Spec.Resources, old.Spec.Resources, path.Child("resources")); err != nil {
		return err
	}
	if err := m.dnsCredentials(ctx, shoot, old); err != nil {
		return err
	}
	return m.kubeAPIServer(ctx, shoot.Namespace, ptr.Deref(shoot.Spec.Kubernetes.KubeAPIServer, gardencore.KubeAPIServerConfig{}),
		ptr.Deref(old.Spec.Kubernetes.KubeAPIServer, gardencore.KubeAPIServerConfig{}), path.Child("kubernetes", "kubeAPIServer"))
}

func (m *manager) seed(ctx context.Context, a admission.Attributes, seed, old *gardencore.Seed) error {
	if a.GetOperation() == admission.Update && reflect.DeepEqual(seed.Spec, old.Spec) {
		return nil
	}
	return m.resources(ctx, a, v1beta1constants.GardenNamespace, seed.Spec.Resources, old.Spec.Resources, field.NewPath("spec", "resources"))
}

// kinds are the kinds that a reference may have, and their resources.
var kinds = map[schema.GroupVersionKind]schema.GroupVersionResource{
	corev1.SchemeGroupVersion.WithKind("Secret"):                     corev1.SchemeGroupVersion.WithResource("secrets"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):                  corev1.SchemeGroupVersion.WithResource("configmaps"),
	securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity"): securityv1alpha1.SchemeGroupVersion.WithResource("workloadidentities"),
}

// resources checks all references of a list if any of them changed.
func (m *manager) resources(ctx context.Context, a admission.Attributes, namespace string, refs,
	old []gardencore.NamedResourceReference, path *field.Path) error {
	if same(refs, old) {
		return nil
	}
	for i, ref := range refs {
		refPath := path.Index(i).Child("resourceRef")
		kind := schema.FromAPIVersionAndKind(ref.ResourceRef.APIVersion, ref.ResourceRef.Kind)
		resource, known := kinds[kind]
		if !known {
			return field.NotSupported(refPath.Child("kind"), kind.String(), []string{"Secret", "ConfigMap", "WorkloadIdentity"})
		}
		if err := m.validateReadAccess(ctx, a, resource, namespace, ref.ResourceRef.Name, refPath); err != nil {
			return err
		}
		if err := m.resourceExists(ctx, resource, namespace, ref.ResourceRef.Name, refPath.Child("name")); err != nil {
			return err
		}
	}
	return nil
}

func (m *manager) resourceExists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string,
	path *field.Path) error {
	switch resource {
	case corev1.SchemeGroupVersion.WithResource("secrets"):
		return m.secretExists(ctx, namespace, name, path)
	case corev1.SchemeGroupVersion.WithResource("configmaps"):
		return m.configMapExists(ctx, namespace, name, path)
	}
	return m.exists(ctx, resource.GroupResource(), namespace, name, path)
}

// dnsCredentials checks references to Secrets and WorkloadIdentities; as in Gardener, other kinds of credentials are
// not checked.
func (m *manager) dnsCredentials(ctx context.Context, shoot, old *gardencore.Shoot) error {
	if shoot.Spec.DNS == nil || same(shoot.Spec.DNS, old.Spec.DNS) {
		return nil
	}
	for i, provider := range shoot.Spec.DNS.Providers {
		ref := provider.CredentialsRef
		if ref == nil {
			continue
		}
		resource, known := kinds[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)]
		if !known || resource.Resource == "configmaps" {
			continue
		}
		path := field.NewPath("spec", "dns", "providers").Index(i).Child("credentialsRef", "name")
		if err := m.resourceExists(ctx, resource, shoot.Namespace, ref.Name, path); err != nil {
			return err
		}
	}
	return nil
}

func (m *manager) kubeAPIServer(ctx context.Context, namespace string, config, old gardencore.KubeAPIServerConfig, path *field.Path) error {
	if !same(config.AdmissionPlugins, old.AdmissionPlugins) {
		for i, p := range config.AdmissionPlugins {
			if p.KubeconfigSecretName == nil {
				continue
			}
			if err := m.secretExists(ctx, namespace, *p.KubeconfigSecretName,
				path.Child("admissionPlugins").Index(i).Child("kubeconfigSecretName")); err != nil {
				return err
			}
		}
	}
	if authn := config.StructuredAuthentication; authn != nil && !same(authn, old.StructuredAuthentication) {
		if err := m.configMapExists(ctx, namespace, authn.ConfigMapName, path.Child("structuredAuthentication", "configMapName")); err != nil {
			return err
		}
	}
	authz := config.StructuredAuthorization
	if authz == nil || same(authz, old.StructuredAuthorization) {
		return nil
	}
	path = path.Child("structuredAuthorization")
	if err := m.configMapExists(ctx, namespace, authz.ConfigMapName, path.Child("configMapName")); err != nil {
		return err
	}
	for i, kubeconfig := range authz.Kubeconfigs {
		if err := m.secretExists(ctx, namespace, kubeconfig.SecretName, path.Child("kubeconfigs").Index(i).Child("secretName")); err != nil {
			return err
		}
	}
	return nil
}
