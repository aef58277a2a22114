package seed

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	securityconstants "github.com/gardener/gardener/pkg/apis/security/v1alpha1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
)

// renew handles the operation annotations that request new credentials before they expire: it marks the Secrets for the
// controllers that manage them, and then removes the annotation from the Seed.
func (r *Reconciler) renew(ctx context.Context, seed *corev1beta1.Seed) (err error) {
	switch operation.RequestedOperation(seed) {
	case constants.GardenerOperationRenewKubeconfig:
		err = r.renewKubeconfig(ctx)
	case constants.SeedOperationRenewGardenAccessSecrets:
		err = r.renewTokens(ctx, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp, client.MatchingLabels{
			resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
			resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassGarden,
		})
	case constants.SeedOperationRenewWorkloadIdentityTokens:
		err = r.renewTokens(ctx, securityconstants.AnnotationWorkloadIdentityTokenRenewTimestamp, client.MatchingLabels{
			securityconstants.LabelPurpose: securityconstants.LabelPurposeWorkloadIdentityTokenRequestor,
		})
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return operation.Patch(ctx, r.GardenClient, seed, func(seed *corev1beta1.Seed) {
		delete(seed.Annotations, constants.GardenerOperation)
	})
}

// renewKubeconfig requests a new client certificate for the gardenlet.
func (r *Reconciler) renewKubeconfig(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := r.SeedReader.Get(ctx, bootstrap.KubeconfigSecret, secret); err != nil {
		return fmt.Errorf("reading the gardenlet's kubeconfig, Secret %s of the seed: %w", bootstrap.KubeconfigSecret, err)
	}
	return operation.Patch(ctx, r.SeedClient, secret, func(secret *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, constants.GardenerOperation, constants.KubeconfigSecretOperationRenew)
	})
}

// renewTokens removes the annotation with the renewal time from Secrets, so that their tokens are renewed at once.
func (r *Reconciler) renewTokens(ctx context.Context, annotation string, of client.MatchingLabels) error {
	secrets := &corev1.SecretList{}
	if err := r.SeedReader.List(ctx, secrets, of); err != nil {
		return fmt.Errorf("listing the Secrets of the seed with tokens, %v: %w", of, err)
	}
	for i := range secrets.Items {
		err := operation.Patch(ctx, r.SeedClient, &secrets.Items[i], func(secret *corev1.Secret) { delete(secret.Annotations, annotation) })
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
