package shoot

import (
	"context"
	"fmt"
	"strconv"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

// needsForceDeletion reports whether the user has confirmed that the Shoot is deleted even if its infrastructure is left behind.
func (b *botanist) needsForceDeletion() bool {
	return b.kind == corev1beta1.LastOperationTypeDelete && isForced(b.shoot)
}

func isForced(obj metav1.Object) bool {
	force, err := strconv.ParseBool(obj.GetAnnotations()[constants.AnnotationConfirmationForceDeletion])
	return err == nil && force
}

// stepForce precedes all other steps of a forced deletion.
const stepForce = "Announcing deletion by force"

// announceForce tells the extensions, and the controller of the Shoot's Bastions, that errors must not block the
// deletion.
func (b *botanist) announceForce(ctx context.Context) error {
	cluster := &extensionsv1alpha1.Cluster{}
	err := b.SeedReader.Get(ctx, client.ObjectKey{Name: b.namespace()}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Cluster %s: %w", b.namespace(), err)
	}
	if err == nil {
		raw, err := clusterPart(b.shoot.DeepCopy(), "Shoot")
		if err != nil {
			return err
		}
		err = operation.Patch(ctx, b.SeedClient, cluster, func(cluster *extensionsv1alpha1.Cluster) { cluster.Spec.Shoot.Raw = raw })
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	bastions, err := b.bastions(ctx)
	if err != nil {
		return err
	}
	for i := range bastions {
		err := operation.Patch(ctx, b.GardenClient, &bastions[i], func(bastion *operationsv1alpha1.Bastion) {
			metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, constants.AnnotationConfirmationForceDeletion, "true")
		})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// removeFinalizers removes the finalizers of an extension resource in a forced deletion once the extension's time has
// passed.
func (b *botanist) removeFinalizers(ctx context.Context, kind string, obj extensionsv1alpha1.Object) error {
	key := client.ObjectKeyFromObject(obj)
	if !operation.ForceDeletionTimedOut(obj, b.Clock.Now()) {
		return flow.Pending("%s %s has not gone yet", kind, key)
	}
	if err := operation.RemoveFinalizers(ctx, b.SeedClient, obj, obj.GetFinalizers()...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting by force %s %s: %w", kind, key, err)
	}
	return b.waitDeleted(ctx, kind, obj)
}

// releaseSecrets removes the finalizers that broken extensions have left on Secrets in the Shoot's namespace, because
// they would block the deletion of the namespace.
func (b *botanist) releaseSecrets(ctx context.Context) error {
	if b.namespace() == "" { // the list would contain those of all Shoots
		return nil
	}
	secrets := &corev1.SecretList{}
	if err := b.SeedReader.List(ctx, secrets, client.InNamespace(b.namespace())); err != nil {
		return fmt.Errorf("listing the Secrets of namespace %s: %w", b.namespace(), err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if err := operation.RemoveFinalizers(ctx, b.SeedClient, secret, secret.Finalizers...); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("taking the finalizers from Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
	}
	return nil
}
