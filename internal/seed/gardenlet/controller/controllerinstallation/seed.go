package controllerinstallation

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

func (r *Reconciler) reconcileNamespace(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	registration *corev1beta1.ControllerRegistration, seed *corev1beta1.Seed) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NamespaceName(installation.Name)}}
	return controllerutils.CreateOrPatch(ctx, r.SeedClient, r.SeedClient, namespace, func(namespace *corev1.Namespace) error {
		for key, value := range map[string]string{
			constants.GardenRole:                             constants.GardenRoleExtension,
			constants.LabelControllerRegistrationName:        registration.Name,
			resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
		} {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, key, value)
		}
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesv1alpha1.HighAvailabilityConfigZones,
			strings.Join(seed.Spec.Provider.Zones, ","))
		if level, ok := installation.Annotations[constants.AnnotationPodSecurityEnforce]; ok {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, podsecurity.EnforceLevelLabel, level)
		} else {
			delete(namespace.Labels, podsecurity.EnforceLevelLabel)
		}
		return nil
	})
}

func managedResource(installation *corev1beta1.ControllerInstallation) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: installation.Name}}
}

// objectsFile is the key of the objects in the Secret of a ManagedResource.
const objectsFile = "objects.yaml"

// reconcileManagedResource ensures the ManagedResource of an installation, and the Secret with the objects of its
// chart.
func (r *Reconciler) reconcileManagedResource(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	objects []*unstructured.Unstructured) error {
	secret, err := objectsSecret(installation, objects)
	if err != nil {
		return err
	}
	refs := []corev1.LocalObjectReference{}
	if secret != nil {
		refs = append(refs, corev1.LocalObjectReference{Name: secret.Name})
		if err := r.SeedClient.Create(ctx, secret.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating Secret %s/%s in the seed: %w", secret.Namespace, secret.Name, err)
		}
	}
	resource := managedResource(installation)
	err = controllerutils.CreateOrPatch(ctx, r.SeedClient, r.SeedClient, resource, func(resource *resourcesv1alpha1.ManagedResource) error {
		metav1.SetMetaDataLabel(&resource.ObjectMeta, LabelInstallation, installation.Name)
		metav1.SetMetaDataLabel(&resource.ObjectMeta, LabelRegistration, installation.Spec.RegistrationRef.Name)
		resource.Spec.Class, resource.Spec.SecretRefs = ptr.To(constants.SeedResourceManagerClass), refs
		return nil
	})
	if err != nil {
		return err
	}
	return r.reconcileObjectsSecret(ctx, installation, secret)
}

// reconcileObjectsSecret ensures that the installation has the wanted Secret with its objects, none if nil, and no
// older one.
func (r *Reconciler) reconcileObjectsSecret(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	wanted *corev1.Secret) error {
	return r.reconcileUnique(ctx, wanted, installation.Name,
		client.InNamespace(constants.GardenNamespace), client.MatchingLabels{LabelInstallation: installation.Name})
}

// objectsSecret returns the Secret with the objects of an installation, nil if there are none.
func objectsSecret(installation *corev1beta1.ControllerInstallation, objects []*unstructured.Unstructured) (*corev1.Secret, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	var data bytes.Buffer
	for _, obj := range objects {
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		data.WriteString("---\n")
		data.Write(text)
	}
	if data.Len() > corev1.MaxSecretSize {
		return nil, fmt.Errorf("the objects of the chart have %d bytes, a Secret has %d at most", data.Len(), corev1.MaxSecretSize)
	}
	secret := unique(constants.GardenNamespace, installation.Name, objectsFile, data.Bytes())
	secret.Labels[LabelInstallation] = installation.Name
	return secret, nil
}
