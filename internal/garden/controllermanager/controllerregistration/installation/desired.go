package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// These labels of installations contain the hashes of the objects that an installation derives from, as in Gardener.
const (
	seedSpecHash         = "seed-spec-hash"
	registrationSpecHash = "registration-spec-hash"
	deploymentHash       = "deployment-hash"
)

// installOne creates the installation of a registration, or updates it.
func (r *Reconciler) installOne(ctx context.Context, s *state, registration *corev1beta1.ControllerRegistration) error {
	deployment, err := r.deploymentOf(ctx, registration)
	if err != nil {
		return err
	}
	resources, err := r.resourcesOf(ctx, deployment)
	if err != nil {
		return err
	}
	existing := s.installations[registration.Name]
	if existing == nil {
		installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{GenerateName: registration.Name + "-"}}
		if err := describe(installation, s.seed, registration, deployment, resources); err != nil {
			return err
		}
		if err := r.Client.Create(ctx, installation); err != nil {
			return fmt.Errorf("creating a ControllerInstallation: %w", err)
		}
		logf.FromContext(ctx).Info("Created a ControllerInstallation", "controllerInstallation", installation.Name,
			"controllerRegistration", registration.Name)
		return nil
	}
	if existing.DeletionTimestamp != nil {
		return fmt.Errorf("it is needed again, but the old ControllerInstallation %q is still being deleted", existing.Name)
	}
	before := existing.DeepCopy()
	if err := describe(existing, s.seed, registration, deployment, resources); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, existing) {
		return nil
	}
	if err := r.Client.Patch(ctx, existing, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("updating the ControllerInstallation %q: %w", existing.Name, err)
	}
	return nil
}

// deploymentOf returns the ControllerDeployment of a registration, and nil if it has none. There is never more than
// one.
func (r *Reconciler) deploymentOf(ctx context.Context, registration *corev1beta1.ControllerRegistration) (
	*gardencorev1.ControllerDeployment, error) {
	if registration.Spec.Deployment == nil || len(registration.Spec.Deployment.DeploymentRefs) == 0 {
		return nil, nil
	}
	name, deployment := registration.Spec.Deployment.DeploymentRefs[0].Name, &gardencorev1.ControllerDeployment{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, deployment); err != nil {
		return nil, fmt.Errorf("reading the ControllerDeployment %q that it refers to: %w", name, err)
	}
	return deployment, nil
}

// resourcesOf returns references to the ConfigMaps and Secrets of a deployment. They include the resource versions, so
// that a change leads to an update of the installation.
func (r *Reconciler) resourcesOf(ctx context.Context, deployment *gardencorev1.ControllerDeployment) (
	refs []corev1.ObjectReference, err error) {
	if deployment == nil {
		return nil, nil
	}
	for _, resource := range deployment.Resources {
		ref := resource.ResourceRef
		if ref.Kind != "ConfigMap" && ref.Kind != "Secret" {
			return nil, fmt.Errorf("the ControllerDeployment %q refers to the %s %q: only a ConfigMap or a Secret is possible",
				deployment.Name, ref.Kind, ref.Name)
		}
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ref.Kind))
		if err := r.Reader.Get(ctx, types.NamespacedName{Namespace: constants.GardenNamespace, Name: ref.Name}, obj); err != nil {
			return nil, fmt.Errorf("reading the %s %q that the ControllerDeployment %q refers to: %w", ref.Kind, ref.Name, deployment.Name, err)
		}
		refs = append(refs, corev1.ObjectReference{Kind: ref.Kind, Namespace: obj.Namespace, Name: obj.Name,
			ResourceVersion: obj.ResourceVersion})
	}
	return refs, nil
}

// describe sets the spec, labels and annotations of an installation.
func describe(installation *corev1beta1.ControllerInstallation, seed *corev1beta1.Seed, registration *corev1beta1.ControllerRegistration,
	deployment *gardencorev1.ControllerDeployment, resources []corev1.ObjectReference) error {
	installation.Spec = corev1beta1.ControllerInstallationSpec{
		RegistrationRef: corev1.ObjectReference{Name: registration.Name, ResourceVersion: registration.ResourceVersion},
		SeedRef:         &corev1.ObjectReference{Name: seed.Name, ResourceVersion: seed.ResourceVersion},
		ResourceRefs:    resources,
	}
	hashes := map[string]any{seedSpecHash: seed.Spec, registrationSpecHash: registration.Spec}
	if deployment != nil {
		installation.Spec.DeploymentRef = &corev1.ObjectReference{Name: deployment.Name, ResourceVersion: deployment.ResourceVersion}
		// A ControllerDeployment has no spec; only these parts of it are relevant.
		hashes[deploymentHash] = []any{
			deployment.Annotations[gardencorev1.MigrationControllerDeploymentType],
			deployment.Annotations[gardencorev1.MigrationControllerDeploymentProviderConfig],
			deployment.Helm,
		}
	}
	var errs []error
	for label, hashed := range hashes {
		value, err := hash(hashed)
		metav1.SetMetaDataLabel(&installation.ObjectMeta, label, value)
		errs = append(errs, err)
	}
	if level, ok := registration.Annotations[constants.AnnotationPodSecurityEnforce]; ok {
		metav1.SetMetaDataAnnotation(&installation.ObjectMeta, constants.AnnotationPodSecurityEnforce, level)
	} else {
		delete(installation.Annotations, constants.AnnotationPodSecurityEnforce)
	}
	return errors.Join(errs...)
}

// hash returns a digest that is short enough for a label.
func hash(value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding %T: %w", value, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}
