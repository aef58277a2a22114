package graph

import (
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"
)

// keptForShoots are the objects that a gardenlet writes for a shoot to the project's namespace. Their names begin with
// that of the shoot.
var keptForShoots = []struct {
	kind     Kind
	suffixes []string
}{
	{KindSecret, []string{".ca-cluster", ".ssh-keypair", ".ssh-keypair.old", ".monitoring"}},
	{KindInternalSecret, []string{".ca-client"}},
	{KindConfigMap, []string{".ca-cluster", ".ca-kubelet"}},
}

// ShootSuffixes returns the suffixes that follow a shoot's name in the names of the objects of this kind in
// keptForShoots.
func ShootSuffixes(kind Kind) []string {
	for _, kept := range keptForShoots {
		if kept.kind == kind {
			return kept.suffixes
		}
	}
	return nil
}

func shootEdges(shoot *gardencorev1beta1.Shoot) *edgeBuilder {
	b := edgesFor(KindShoot, shoot.Namespace, shoot.Name)
	b.edges = make([]Edge, 0, 16)
	b.toSeeds(shoot.Spec.SeedName, shoot.Status.SeedName)
	b.from(KindNamespace, "", shoot.Namespace)
	b.fromCloudProfile(shoot)
	b.from(KindSecretBinding, shoot.Namespace, ptr.Deref(shoot.Spec.SecretBindingName, ""))
	b.from(KindCredentialsBinding, shoot.Namespace, ptr.Deref(shoot.Spec.CredentialsBindingName, ""))
	b.from(KindExposureClass, "", ptr.Deref(shoot.Spec.ExposureClassName, ""))
	b.fromKubeAPIServer(shoot.Namespace, shoot.Spec.Kubernetes.KubeAPIServer)
	b.fromShootReferences(shoot)
	for _, kept := range keptForShoots {
		for _, suffix := range kept.suffixes {
			b.from(kept.kind, shoot.Namespace, shoot.Name+suffix)
		}
	}
	b.from(KindShootState, shoot.Namespace, shoot.Name)
	b.from(KindSecret, gardencorev1beta1.GardenerShootIssuerNamespace, issuerSecretName(shoot))
	return b
}

func (b *edgeBuilder) fromCloudProfile(shoot *gardencorev1beta1.Shoot) {
	ref := shoot.Spec.CloudProfile
	if ref == nil {
		b.from(KindCloudProfile, "", ptr.Deref(shoot.Spec.CloudProfileName, ""))
		return
	}
	switch ref.Kind {
	case v1beta1constants.CloudProfileReferenceKindCloudProfile, "":
		b.from(KindCloudProfile, "", ref.Name)
	case v1beta1constants.CloudProfileReferenceKindNamespacedCloudProfile:
		b.from(KindNamespacedCloudProfile, shoot.Namespace, ref.Name)
	}
}

func (b *edgeBuilder) fromKubeAPIServer(namespace string, config *gardencorev1beta1.KubeAPIServerConfig) {
	if config == nil {
		return
	}
	if audit := config.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		b.from(KindConfigMap, namespace, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if config.StructuredAuthentication != nil {
		b.from(KindConfigMap, namespace, config.StructuredAuthentication.ConfigMapName)
	}
	if config.StructuredAuthorization != nil {
		b.from(KindConfigMap, namespace, config.StructuredAuthorization.ConfigMapName)
		for _, kubeconfig := range config.StructuredAuthorization.Kubeconfigs {
			b.from(KindSecret, namespace, kubeconfig.SecretName)
		}
	}
}

// fromShootReferences adds edges from DNS credentials and spec.resources. A shoot refers only to objects in its
// namespace.
func (b *edgeBuilder) fromShootReferences(shoot *gardencorev1beta1.Shoot) {
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			if provider.CredentialsRef != nil {
				b.fromResource(shoot.Namespace, *provider.CredentialsRef, KindSecret, KindWorkloadIdentity)
			}
		}
	}
	for _, resource := range shoot.Spec.Resources {
		b.fromResource(shoot.Namespace, resource.ResourceRef, KindSecret, KindConfigMap, KindWorkloadIdentity)
	}
}

// issuerSecretName returns the name of the Secret with the shoot's public service account keys, which exists if the garden
// serves its issuer: "<project>--<uid of the shoot>". The gardenlet deletes it with every shoot. The project is taken from the technical ID, which contains it whatever
// the name of the namespace, or else from the namespace. A wrong project does no harm: the name ends with the UID of
// this shoot.
func issuerSecretName(shoot *gardencorev1beta1.Shoot) string {
	if shoot.UID == "" {
		return ""
	}
	project := strings.TrimPrefix(shoot.Namespace, "garden-")
	if id, ok := strings.CutPrefix(shoot.Status.TechnicalID, v1beta1constants.TechnicalIDPrefix+"-"); ok {
		if fromID, ok := strings.CutSuffix(id, "--"+shoot.Name); ok && fromID != "" {
			project = fromID
		}
	}
	return project + "--" + string(shoot.UID)
}
