package shootreference

import (
	"context"
	"fmt"
	"maps"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/references"
)

// ofShoot returns the references of a Shoot.
func ofShoot(shoot *corev1beta1.Shoot) references.References {
	refs := references.References{}
	refs.AddResources(shoot.Spec.Resources)
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			refs.AddRef(provider.CredentialsRef)
		}
	}
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server == nil {
		return refs
	}
	for _, plugin := range server.AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil {
			refs.Add(references.Secret, *plugin.KubeconfigSecretName)
		}
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		refs.Add(references.ConfigMap, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := server.StructuredAuthentication; authentication != nil {
		refs.Add(references.ConfigMap, authentication.ConfigMapName)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		refs.Add(references.ConfigMap, authorization.ConfigMapName)
		for _, kubeconfig := range authorization.Kubeconfigs {
			refs.Add(references.Secret, kubeconfig.SecretName)
		}
	}
	return refs
}

// inNamespace returns all references to objects in a namespace.
func inNamespace(ctx context.Context, reader client.Reader, namespace string) (references.References, error) {
	refs, shoots := references.References{}, &corev1beta1.ShootList{}
	if err := reader.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Shoots in the namespace %q: %w", namespace, err)
	}
	for i := range shoots.Items {
		if references.NeedsReferences(&shoots.Items[i]) {
			maps.Copy(refs, ofShoot(&shoots.Items[i]))
		}
	}
	if namespace != constants.GardenNamespace {
		return refs, nil
	}
	return refs, addOfGarden(ctx, reader, refs)
}

// addOfGarden adds the references of cluster-scoped objects to objects in the namespace garden.
func addOfGarden(ctx context.Context, reader client.Reader, refs references.References) error {
	seeds, deployments := &corev1beta1.SeedList{}, &gardencorev1.ControllerDeploymentList{}
	if err := reader.List(ctx, seeds); err != nil {
		return fmt.Errorf("listing the Seeds: %w", err)
	}
	if err := reader.List(ctx, deployments); err != nil {
		return fmt.Errorf("listing the ControllerDeployments: %w", err)
	}
	for _, seed := range seeds.Items {
		refs.AddResources(seed.Spec.Resources)
	}
	for _, deployment := range deployments.Items {
		for i := range deployment.Resources {
			refs.AddRef(&deployment.Resources[i].ResourceRef)
		}
		if deployment.Helm == nil || deployment.Helm.OCIRepository == nil {
			continue
		}
		for _, ref := range []*corev1.LocalObjectReference{deployment.Helm.OCIRepository.PullSecretRef,
			deployment.Helm.OCIRepository.CABundleSecretRef} {
			if ref != nil {
				refs.Add(references.Secret, ref.Name)
			}
		}
	}
	return nil
}
