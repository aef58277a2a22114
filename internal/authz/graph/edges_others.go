package graph

import (
	"strings"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

func backupBucketEdges(bucket *gardencorev1beta1.BackupBucket) *edgeBuilder {
	b := edgesFor(KindBackupBucket, "", bucket.Name)
	b.fromCredentials(bucket.Spec.CredentialsRef)
	if secret := bucket.Status.GeneratedSecretRef; secret != nil && secret.Namespace != "" {
		b.from(KindSecret, secret.Namespace, secret.Name)
	}
	b.toSeeds(bucket.Spec.SeedName, nil)
	return b
}

// backupEntryEdges adds an edge from the bucket to the seed in the specification only. An edge through the entry would
// also lead to the seed in the status. During a migration, that is the source seed, which writes the status itself,
// while the bucket is already that of the destination seed.
func backupEntryEdges(entry *gardencorev1beta1.BackupEntry) *edgeBuilder {
	b := edgesFor(KindBackupEntry, entry.Namespace, entry.Name)
	if bucket, seed := entry.Spec.BucketName, ptr.Deref(entry.Spec.SeedName, ""); bucket != "" && seed != "" {
		b.edges = append(b.edges, Edge{From: Vertex{Kind: KindBackupBucket, Name: bucket}, To: Vertex{Kind: KindSeed, Name: seed}})
	}
	b.toSeeds(entry.Spec.SeedName, entry.Status.SeedName)
	for _, owner := range entry.OwnerReferences {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if owner.Kind == "Shoot" && group == gardencorev1beta1.GroupName {
			b.to(KindShoot, entry.Namespace, owner.Name)
			break // an entry belongs to one shoot
		}
	}
	return b
}

func bastionEdges(bastion *operationsv1alpha1.Bastion) *edgeBuilder {
	b := edgesFor(KindBastion, bastion.Namespace, bastion.Name)
	b.toSeeds(bastion.Spec.SeedName, nil)
	return b
}

func controllerInstallationEdges(installation *gardencorev1beta1.ControllerInstallation) *edgeBuilder {
	b := edgesFor(KindControllerInstallation, "", installation.Name)
	b.from(KindControllerRegistration, "", installation.Spec.RegistrationRef.Name)
	if installation.Spec.DeploymentRef != nil {
		b.from(KindControllerDeployment, "", installation.Spec.DeploymentRef.Name)
	}
	if installation.Spec.SeedRef != nil {
		b.to(KindSeed, "", installation.Spec.SeedRef.Name)
	}
	return b
}

// controllerDeploymentEdges adds edges from the objects to which a ControllerDeployment refers, in the garden
// namespace.
func controllerDeploymentEdges(deployment *gardencorev1.ControllerDeployment) *edgeBuilder {
	b := edgesFor(KindControllerDeployment, "", deployment.Name)
	if deployment.Helm != nil && deployment.Helm.OCIRepository != nil {
		if ref := deployment.Helm.OCIRepository.PullSecretRef; ref != nil {
			b.from(KindSecret, v1beta1constants.GardenNamespace, ref.Name)
		}
		if ref := deployment.Helm.OCIRepository.CABundleSecretRef; ref != nil {
			b.from(KindSecret, v1beta1constants.GardenNamespace, ref.Name)
		}
	}
	for _, resource := range deployment.Resources {
		b.fromResource(v1beta1constants.GardenNamespace, resource.ResourceRef, KindSecret, KindConfigMap)
	}
	return b
}

func projectEdges(project *gardencorev1beta1.Project) *edgeBuilder {
	b := edgesFor(KindProject, "", project.Name)
	b.to(KindNamespace, "", ptr.Deref(project.Spec.Namespace, ""))
	return b
}

func secretBindingEdges(binding *gardencorev1beta1.SecretBinding) *edgeBuilder {
	b := edgesFor(KindSecretBinding, binding.Namespace, binding.Name)
	if binding.SecretRef.Namespace != "" {
		b.from(KindSecret, binding.SecretRef.Namespace, binding.SecretRef.Name)
	}
	return b
}

func credentialsBindingEdges(binding *securityv1alpha1.CredentialsBinding) *edgeBuilder {
	b := edgesFor(KindCredentialsBinding, binding.Namespace, binding.Name)
	ref := &binding.CredentialsRef
	b.fromCredentials(ref)
	if ref.APIVersion == gardencorev1beta1.SchemeGroupVersion.String() && ref.Kind == "InternalSecret" && ref.Namespace != "" {
		b.from(KindInternalSecret, ref.Namespace, ref.Name)
	}
	return b
}

func serviceAccountEdges(account *corev1.ServiceAccount) *edgeBuilder {
	b := edgesFor(KindServiceAccount, account.Namespace, account.Name)
	for _, secret := range account.Secrets {
		b.from(KindSecret, account.Namespace, secret.Name)
	}
	return b
}

// certificateSigningRequestEdges adds an edge if the request is for the client certificate of a Seed's gardenlet.
func certificateSigningRequestEdges(request *certificatesv1.CertificateSigningRequest) *edgeBuilder {
	b := edgesFor(KindCertificateSigningRequest, "", request.Name)
	if wanted, err := bootstraprules.Parse(request.Spec.Request); err == nil {
		if seed, refused := bootstraprules.SeedOf(wanted, request.Spec.Usages); refused == "" {
			b.to(KindSeed, "", seed)
		}
	}
	return b
}
