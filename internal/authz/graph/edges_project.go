package graph

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

func projectEdges(project *gardencorev1beta1.Project) *edgeBuilder {
	b := edgesFor(KindProject, "", project.Name)
	if project.Spec.Namespace != nil {
		b.to(KindNamespace, "", *project.Spec.Namespace)
	}
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
