package controllerinstallation

import (
	"context"
	"fmt"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The label of Pod Security Admission.
const labelPodSecurityEnforce = "pod-security.kubernetes.io/enforce"

// createOrPatch makes an object as mutate wants it.
func createOrPatch[T client.Object](ctx context.Context, c client.Client, obj T, mutate func(T)) error {
	key := client.ObjectKeyFromObject(obj)
	err := c.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		mutate(obj)
		if err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s in the seed: %w", obj, key, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s in the seed: %w", obj, key, err)
	}
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing %T %s in the seed: %w", obj, key, err)
	}
	return nil
}

func (r *Reconciler) reconcileNamespace(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	registration *corev1beta1.ControllerRegistration, seed *corev1beta1.Seed) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NamespaceName(installation.Name)}}
	return createOrPatch(ctx, r.SeedClient, namespace, func(namespace *corev1.Namespace) {
		for key, value := range map[string]string{
			constants.GardenRole:                             constants.GardenRoleExtension,
			constants.LabelControllerRegistrationName:        registration.Name,
			resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
		} {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, key, value)
		}
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesv1alpha1.HighAvailabilityConfigZones, strings.Join(seed.Spec.Provider.Zones, ","))
		if level, ok := installation.Annotations[constants.AnnotationPodSecurityEnforce]; ok {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, labelPodSecurityEnforce, level)
		} else {
			delete(namespace.Labels, labelPodSecurityEnforce)
		}
	})
}

func managedResource(installation *corev1beta1.ControllerInstallation) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: installation.Name}}
}

// reconcileManagedResource makes the ManagedResource of an installation. There is no chart whose objects it could have.
func (r *Reconciler) reconcileManagedResource(ctx context.Context, installation *corev1beta1.ControllerInstallation) error {
	return createOrPatch(ctx, r.SeedClient, managedResource(installation), func(resource *resourcesv1alpha1.ManagedResource) {
		metav1.SetMetaDataLabel(&resource.ObjectMeta, LabelInstallation, installation.Name)
		metav1.SetMetaDataLabel(&resource.ObjectMeta, LabelRegistration, installation.Spec.RegistrationRef.Name)
		resource.Spec.Class = ptr.To(constants.SeedResourceManagerClass)
		if resource.Spec.SecretRefs == nil {
			resource.Spec.SecretRefs = []corev1.LocalObjectReference{}
		}
	})
}
