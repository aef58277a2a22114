package finalizers

import (
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The finalizers are those of Gardener: one for ControllerDeployments, and one for objects that ControllerInstallations
// refer to; all other kinds have corev1beta1.GardenerName.
const (
	controllerDeploymentFinalizer = "core.gardener.cloud/controllerdeployment"
	installedFinalizer            = "core.gardener.cloud/controllerregistration"
)

// Kinds returns all kinds that are protected.
func Kinds() []Kind {
	return []Kind{
		{
			Name: "cloudprofile", Finalizer: corev1beta1.GardenerName,
			object: func() client.Object { return &corev1beta1.CloudProfile{} },
			uses:   []use{byShoots(cloudProfileOf), byNamespacedCloudProfiles},
			settle: settleCloudProfile,
		},
		{
			Name: "namespacedcloudprofile", Finalizer: corev1beta1.GardenerName,
			object:  func() client.Object { return &corev1beta1.NamespacedCloudProfile{} },
			uses:    []use{byShoots(namespacedCloudProfileOf)},
			watches: []watch{{&corev1beta1.CloudProfile{}, childrenOf}},
			settle:  settleNamespacedCloudProfile,
		},
		{
			Name: "secretbinding", Finalizer: corev1beta1.GardenerName,
			object: func() client.Object { return &corev1beta1.SecretBinding{} },
			uses: []use{byShoots(func(s *corev1beta1.Shoot) []types.NamespacedName {
				return named(s.Namespace, s.Spec.SecretBindingName)
			})},
			settle: settleBinding, release: releaseBinding,
		},
		{
			Name: "credentialsbinding", Finalizer: corev1beta1.GardenerName,
			object: func() client.Object { return &securityv1alpha1.CredentialsBinding{} },
			uses: []use{byShoots(func(s *corev1beta1.Shoot) []types.NamespacedName {
				return named(s.Namespace, s.Spec.CredentialsBindingName)
			})},
			settle: settleBinding, release: releaseBinding,
		},
		{
			Name: "exposureclass", Finalizer: corev1beta1.GardenerName,
			object: func() client.Object { return &corev1beta1.ExposureClass{} },
			uses: []use{byShoots(func(s *corev1beta1.Shoot) []types.NamespacedName {
				return named("", s.Spec.ExposureClassName)
			})},
		},
		{
			Name: "quota", Finalizer: corev1beta1.GardenerName,
			object: func() client.Object { return &corev1beta1.Quota{} },
			uses:   []use{bySecretBindings, byCredentialsBindings},
		},
		{
			Name: "controllerdeployment", Finalizer: controllerDeploymentFinalizer,
			object: func() client.Object { return &gardencorev1.ControllerDeployment{} },
			uses:   []use{byControllerRegistrations},
		},
		installed("controllerregistration-controllerregistration-finalizer",
			func() client.Object { return &corev1beta1.ControllerRegistration{} },
			func(i *corev1beta1.ControllerInstallation) string { return i.Spec.RegistrationRef.Name }),
		installed("controllerregistration-cluster-finalizer-seed",
			func() client.Object { return &corev1beta1.Seed{} },
			func(i *corev1beta1.ControllerInstallation) string {
				if i.Spec.SeedRef == nil {
					return ""
				}
				return i.Spec.SeedRef.Name
			}),
	}
}

// installed returns a kind that is protected while a ControllerInstallation refers to the object, so that the installed
// extension can be cleaned up first.
func installed(name string, object func() client.Object, referred func(*corev1beta1.ControllerInstallation) string) Kind {
	by := usedBy("ControllerInstallations", &corev1beta1.ControllerInstallation{}, &corev1beta1.ControllerInstallationList{},
		func(installation *corev1beta1.ControllerInstallation) []types.NamespacedName {
			name := referred(installation)
			return named("", &name)
		})
	return Kind{Name: name, Finalizer: installedFinalizer, object: object, clearsItself: true, uses: []use{by}}
}

// usedBy returns the use by the objects of a kind.
func usedBy[T client.Object](by string, object T, list client.ObjectList, refers func(T) []types.NamespacedName) use {
	return use{by: by, object: object, list: list,
		refers: func(user client.Object) []types.NamespacedName { return refers(user.(T)) }}
}

func byShoots(refers func(*corev1beta1.Shoot) []types.NamespacedName) use {
	return usedBy("Shoots", &corev1beta1.Shoot{}, &corev1beta1.ShootList{}, refers)
}

var (
	byNamespacedCloudProfiles = usedBy("NamespacedCloudProfiles", &corev1beta1.NamespacedCloudProfile{},
		&corev1beta1.NamespacedCloudProfileList{}, parentOf)
	bySecretBindings = usedBy("SecretBindings", &corev1beta1.SecretBinding{}, &corev1beta1.SecretBindingList{},
		func(binding *corev1beta1.SecretBinding) []types.NamespacedName { return keys(binding.Quotas) })
	byCredentialsBindings = usedBy("CredentialsBindings", &securityv1alpha1.CredentialsBinding{},
		&securityv1alpha1.CredentialsBindingList{},
		func(binding *securityv1alpha1.CredentialsBinding) []types.NamespacedName { return keys(binding.Quotas) })
	byControllerRegistrations = usedBy("ControllerRegistrations", &corev1beta1.ControllerRegistration{},
		&corev1beta1.ControllerRegistrationList{}, deploymentsOf)
)

func deploymentsOf(registration *corev1beta1.ControllerRegistration) (names []types.NamespacedName) {
	if deployment := registration.Spec.Deployment; deployment != nil {
		for _, ref := range deployment.DeploymentRefs {
			names = append(names, types.NamespacedName{Name: ref.Name})
		}
	}
	return names
}

// cloudProfileOf returns the CloudProfile that a Shoot refers to with either of the two fields.
func cloudProfileOf(shoot *corev1beta1.Shoot) []types.NamespacedName {
	names := named("", shoot.Spec.CloudProfileName)
	if ref := shoot.Spec.CloudProfile; ref != nil && ref.Kind == constants.CloudProfileReferenceKindCloudProfile {
		names = append(names, types.NamespacedName{Name: ref.Name})
	}
	return names
}

func namespacedCloudProfileOf(shoot *corev1beta1.Shoot) []types.NamespacedName {
	if ref := shoot.Spec.CloudProfile; ref != nil && ref.Kind == constants.CloudProfileReferenceKindNamespacedCloudProfile {
		return []types.NamespacedName{{Namespace: shoot.Namespace, Name: ref.Name}}
	}
	return nil
}

func parentOf(profile *corev1beta1.NamespacedCloudProfile) []types.NamespacedName {
	if profile.Spec.Parent.Kind != constants.CloudProfileReferenceKindCloudProfile {
		return nil
	}
	return []types.NamespacedName{{Name: profile.Spec.Parent.Name}}
}

func named(namespace string, name *string) []types.NamespacedName {
	if name == nil || *name == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: namespace, Name: *name}}
}

func keys(refs []corev1.ObjectReference) (names []types.NamespacedName) {
	for _, ref := range refs {
		names = append(names, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	}
	return names
}
