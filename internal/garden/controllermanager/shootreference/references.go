package shootreference

import (
	"context"
	"fmt"
	"maps"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The kinds of what is kept.
var (
	secret           = corev1.SchemeGroupVersion.WithKind("Secret")
	configMap        = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	workloadIdentity = securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity")
	kinds            = []schema.GroupVersionKind{secret, configMap, workloadIdentity}
)

// reference is what something refers to, in one namespace.
type reference struct {
	kind schema.GroupVersionKind
	name string
}

// object is what there is to know of it.
func (r reference) object(namespace string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.name}}
	obj.SetGroupVersionKind(r.kind)
	return obj
}

// references are all different ones.
type references map[reference]bool

func (r references) add(kind schema.GroupVersionKind, name string) {
	if name != "" {
		r[reference{kind, name}] = true
	}
}

func (r references) addRef(ref *autoscalingv1.CrossVersionObjectReference) {
	if ref == nil {
		return
	}
	for _, kind := range kinds {
		if ref.APIVersion == kind.GroupVersion().String() && ref.Kind == kind.Kind {
			r.add(kind, ref.Name)
		}
	}
}

func (r references) addResources(resources []corev1beta1.NamedResourceReference) {
	for i := range resources {
		r.addRef(&resources[i].ResourceRef)
	}
}

// ofShoot are the references of a Shoot.
func ofShoot(shoot *corev1beta1.Shoot) references {
	refs := references{}
	refs.addResources(shoot.Spec.Resources)
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			refs.addRef(provider.CredentialsRef)
		}
	}
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server == nil {
		return refs
	}
	for _, plugin := range server.AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil {
			refs.add(secret, *plugin.KubeconfigSecretName)
		}
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		refs.add(configMap, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := server.StructuredAuthentication; authentication != nil {
		refs.add(configMap, authentication.ConfigMapName)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		refs.add(configMap, authorization.ConfigMapName)
		for _, kubeconfig := range authorization.Kubeconfigs {
			refs.add(secret, kubeconfig.SecretName)
		}
	}
	return refs
}

// isUsing says whether what a Shoot refers to has to be kept for it: until the gardenlet is done with it.
func isUsing(shoot *corev1beta1.Shoot) bool {
	return shoot.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(shoot, corev1beta1.GardenerName)
}

// inNamespace are the references of all that refers to things in a namespace.
func inNamespace(ctx context.Context, reader client.Reader, namespace string) (references, error) {
	refs, shoots := references{}, &corev1beta1.ShootList{}
	if err := reader.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Shoots in the namespace %q: %w", namespace, err)
	}
	for i := range shoots.Items {
		if isUsing(&shoots.Items[i]) {
			maps.Copy(refs, ofShoot(&shoots.Items[i]))
		}
	}
	if namespace != constants.GardenNamespace {
		return refs, nil
	}
	return refs, refs.addOfGarden(ctx, reader)
}

// addOfGarden adds the references of what has no namespace and refers to things in garden.
func (r references) addOfGarden(ctx context.Context, reader client.Reader) error {
	seeds, deployments := &corev1beta1.SeedList{}, &gardencorev1.ControllerDeploymentList{}
	if err := reader.List(ctx, seeds); err != nil {
		return fmt.Errorf("listing the Seeds: %w", err)
	}
	if err := reader.List(ctx, deployments); err != nil {
		return fmt.Errorf("listing the ControllerDeployments: %w", err)
	}
	for _, seed := range seeds.Items {
		r.addResources(seed.Spec.Resources)
	}
	for _, deployment := range deployments.Items {
		for i := range deployment.Resources {
			r.addRef(&deployment.Resources[i].ResourceRef)
		}
		if deployment.Helm == nil || deployment.Helm.OCIRepository == nil {
			continue
		}
		for _, ref := range []*corev1.LocalObjectReference{deployment.Helm.OCIRepository.PullSecretRef, deployment.Helm.OCIRepository.CABundleSecretRef} {
			if ref != nil {
				r.add(secret, ref.Name)
			}
		}
	}
	return nil
}
