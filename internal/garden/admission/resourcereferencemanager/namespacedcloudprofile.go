package resourcereferencemanager

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// namespacedCloudProfile refuses to remove versions that Shoots use, unless the parent has the version and it has not
// expired there, and to set limits below the number of nodes of a Shoot.
func (m *manager) namespacedCloudProfile(ctx context.Context, a admission.Attributes, profile,
	old *gardencore.NamespacedCloudProfile) error {
	if a.GetOperation() != admission.Update {
		return nil
	}
	removedKubernetes := kubernetesVersions(old).Difference(kubernetesVersions(profile))
	images, oldImages := imageVersions(profile.Spec.MachineImages), imageVersions(old.Spec.MachineImages)
	limitsChange := !same(profile.Spec.Limits, old.Spec.Limits)
	if removedKubernetes.Len() == 0 && len(oldImages) == 0 && !limitsChange {
		return nil
	}
	parent, err := get[*gardencore.CloudProfile](ctx, m, gardencore.Resource("cloudprofiles"), "", profile.Spec.Parent.Name,
		field.NewPath("spec", "parent", "name"))
	if err != nil {
		return err
	}
	shoots, err := m.shootsOf(ctx, profile)
	if err != nil {
		return err
	}
	var errs field.ErrorList
	for _, shoot := range shoots {
		if version := shoot.Spec.Kubernetes.Version; removedKubernetes.Has(version) && m.kubernetesExpired(parent, version) {
			errs = append(errs, inUse(kubernetesPath, version, shootName(shoot)))
		}
		for i := range shoot.Spec.Provider.Workers {
			image := shoot.Spec.Provider.Workers[i].Machine.Image
			if image != nil && oldImages.has(image.Name, image.Version) && !images.has(image.Name, image.Version) && m.imageExpired(parent, image) {
				errs = append(errs, inUse(imagesPath, image.Name+"@"+image.Version, shootName(shoot)))
			}
		}
		if limitsChange {
			errs = append(errs, withinLimits(shoot, profile.Spec.Limits)...)
		}
	}
	return request.Forbidden(a, errs)
}

func kubernetesVersions(profile *gardencore.NamespacedCloudProfile) sets.Set[string] {
	if profile.Spec.Kubernetes == nil {
		return nil
	}
	return versions(profile.Spec.Kubernetes.Versions)
}

// shootsOf returns the Shoots of a NamespacedCloudProfile, without those that are being deleted.
func (m *manager) shootsOf(ctx context.Context, profile *gardencore.NamespacedCloudProfile) ([]*gardencore.Shoot, error) {
	all, err := plugin.List[*gardencore.Shoot](ctx, m.deps.Reader, gardencore.Resource("shoots"), profile.Namespace, nil)
	if err != nil {
		return nil, fmt.Errorf("listing the shoots of namespace %q: %v", profile.Namespace, err)
	}
	var shoots []*gardencore.Shoot
	for _, shoot := range all {
		if ref := shoot.Spec.CloudProfile; shoot.DeletionTimestamp == nil && ref != nil && ref.Name == profile.Name &&
			ref.Kind == v1beta1constants.CloudProfileReferenceKindNamespacedCloudProfile {
			shoots = append(shoots, shoot)
		}
	}
	return shoots, nil
}

// kubernetesExpired returns false for a version that the parent does not have: a NamespacedCloudProfile cannot add
// versions.
func (m *manager) kubernetesExpired(parent *gardencore.CloudProfile, version string) bool {
	offered := cloudprofile.KubernetesVersion(parent.Spec.Kubernetes.Versions, version)
	return offered != nil && cloudprofile.Expired(*offered, m.deps.Clock.Now())
}

// imageExpired returns true for a version that the parent does not have.
func (m *manager) imageExpired(parent *gardencore.CloudProfile, image *gardencore.ShootMachineImage) bool {
	offered := cloudprofile.ImageVersion(parent.Spec.MachineImages, image.Name, image.Version)
	return offered == nil || cloudprofile.Expired(offered.ExpirableVersion, m.deps.Clock.Now())
}
