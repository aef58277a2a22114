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
	return Kind{Name: name, Finalizer: installedFinalizer, object: object, clearsItself: true, uses: []use{{
		by: "ControllerInstallations", object: &corev1beta1.ControllerInstallation{},
		list: func() client.ObjectList { return &corev1beta1.ControllerInstallationList{} },
		refers: func(user client.Object) []types.NamespacedName {
			name := referred(user.(*corev1beta1.ControllerInstallation))
			return named("", &name)
		},
	}}}
}

func byShoots(refers func(*corev1beta1.Shoot) []types.NamespacedName) use {
	return use{
		by: "Shoots", object: &corev1beta1.Shoot{},
		list:   func() client.ObjectList { return &corev1beta1.ShootList{} },
		refers: func(user client.Object) []types.NamespacedName { return refers(user.(*corev1beta1.Shoot)) },
	}
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

var byNamespacedCloudProfiles = use{
	by: "NamespacedCloudProfiles", object: &corev1beta1.NamespacedCloudProfile{},
	list: func() client.ObjectList { return &corev1beta1.NamespacedCloudProfileList{} },
	refers: func(user client.Object) []types.NamespacedName {
		return parentOf(user.(*corev1beta1.NamespacedCloudProfile))
	},
}

func parentOf(profile *corev1beta1.NamespacedCloudProfile) []types.NamespacedName {
	if profile.Spec.Parent.Kind != constants.CloudProfileReferenceKindCloudProfile {
		return nil
	}
	return []types.NamespacedName{{Name: profile.Spec.Parent.Name}}
}

var bySecretBindings = use{
	by: "SecretBindings", object: &corev1beta1.SecretBinding{},
	list: func() client.ObjectList { return &corev1beta1.SecretBindingList{} },
	refers: func(user client.Object) []types.NamespacedName {
		return keys(user.(*corev1beta1.SecretBinding).Quotas)
	},
}

var byCredentialsBindings = use{
	by: "CredentialsBindings", object: &securityv1alpha1.CredentialsBinding{},
	list: func() client.ObjectList { return &securityv1alpha1.CredentialsBindingList{} },
	refers: func(user client.Object) []types.NamespacedName {
		return keys(user.(*securityv1alpha1.CredentialsBinding).Quotas)
	},
}

var byControllerRegistrations = use{
	by: "ControllerRegistrations", object: &corev1beta1.ControllerRegistration{},
	list: func() client.ObjectList { return &corev1beta1.ControllerRegistrationList{} },
	refers: func(user client.Object) (names []types.NamespacedName) {
		if deployment := user.(*corev1beta1.ControllerRegistration).Spec.Deployment; deployment != nil {
			for _, ref := range deployment.DeploymentRefs {
				names = append(names, types.NamespacedName{Name: ref.Name})
			}
		}
		return names
	},
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
