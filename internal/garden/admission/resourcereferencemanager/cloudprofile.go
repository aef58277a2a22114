package resourcereferencemanager

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// These are the fields of both kinds of profiles that errors refer to.
var (
	kubernetesPath   = field.NewPath("spec", "kubernetes", "versions")
	imagesPath       = field.NewPath("spec", "machineImages")
	capabilitiesPath = field.NewPath("spec", "machineCapabilities")
	limitsPath       = field.NewPath("spec", "limits", "maxNodesTotal")
)

// profileUsers are the NamespacedCloudProfiles of a CloudProfile and the Shoots of all these profiles, without objects
// that are being deleted.
type profileUsers struct {
	profiles []*gardencore.NamespacedCloudProfile
	shoots   []*gardencore.Shoot
}

// cloudProfile refuses to remove versions, images and capabilities that are in use, and to set limits below the number
// of nodes of a Shoot.
func (m *manager) cloudProfile(ctx context.Context, a admission.Attributes, profile, old *gardencore.CloudProfile) error {
	if a.GetOperation() != admission.Update || same(profile.Spec, old.Spec) {
		return nil
	}
	users, err := m.profileUsers(ctx, profile.Name)
	if err != nil {
		return err
	}
	removedKubernetes := versions(old.Spec.Kubernetes.Versions).Difference(versions(profile.Spec.Kubernetes.Versions))
	images, oldImages := imageVersions(profile.Spec.MachineImages), imageVersions(old.Spec.MachineImages)
	removedCapabilities := users.guarded(capabilities(old.Spec.MachineCapabilities).without(capabilities(profile.Spec.MachineCapabilities)))

	var errs field.ErrorList
	for _, user := range users.profiles {
		name := fmt.Sprintf("NamespacedCloudProfile %s/%s", user.Namespace, user.Name)
		errs = append(errs, keepsKubernetes(name, user, removedKubernetes)...)
		errs = append(errs, keepsImages(name, user, images, oldImages)...)
		errs = append(errs, keepsCapabilities(name, user, removedCapabilities)...)
	}
	for _, shoot := range users.shoots {
		if version := shoot.Spec.Kubernetes.Version; removedKubernetes.Has(version) {
			errs = append(errs, inUse(kubernetesPath, version, shootName(shoot)))
		}
		for i := range shoot.Spec.Provider.Workers {
			image := shoot.Spec.Provider.Workers[i].Machine.Image
			if image != nil && oldImages.has(image.Name, image.Version) && !images.has(image.Name, image.Version) {
				errs = append(errs, inUse(imagesPath, image.Name+"@"+image.Version, shootName(shoot)))
			}
		}
		if !same(profile.Spec.Limits, old.Spec.Limits) {
			errs = append(errs, withinLimits(shoot, profile.Spec.Limits)...)
		}
	}
	return request.Forbidden(a, errs)
}

func inUse(path *field.Path, what, user string) *field.Error {
	return field.Forbidden(path, fmt.Sprintf("%s must stay: %s uses it", what, user))
}

func shootName(shoot *gardencore.Shoot) string {
	return fmt.Sprintf("shoot %s/%s", shoot.Namespace, shoot.Name)
}

func (m *manager) profileUsers(ctx context.Context, profile string) (*profileUsers, error) {
	profiles, err := plugin.List[*gardencore.NamespacedCloudProfile](
		ctx, m.deps.Reader, gardencore.Resource("namespacedcloudprofiles"), "", nil)
	if err != nil {
		return nil, fmt.Errorf("listing the namespaced cloud profiles of cloud profile %q: %v", profile, err)
	}
	users, names := &profileUsers{}, sets.New[types.NamespacedName]()
	for _, user := range profiles {
		if parent := user.Spec.Parent; user.DeletionTimestamp == nil &&
			parent.Kind == v1beta1constants.CloudProfileReferenceKindCloudProfile && parent.Name == profile {
			users.profiles = append(users.profiles, user)
			names.Insert(types.NamespacedName{Namespace: user.Namespace, Name: user.Name})
		}
	}
	shoots, err := plugin.List[*gardencore.Shoot](ctx, m.deps.Reader, gardencore.Resource("shoots"), "", nil)
	if err != nil {
		return nil, fmt.Errorf("listing the shoots of cloud profile %q: %v", profile, err)
	}
	for _, shoot := range shoots {
		ref, _ := cloudprofile.Reference(shoot)
		if ref == nil || shoot.DeletionTimestamp != nil {
			continue
		}
		if ref.Kind == v1beta1constants.CloudProfileReferenceKindCloudProfile && ref.Name == profile ||
			ref.Kind == v1beta1constants.CloudProfileReferenceKindNamespacedCloudProfile &&
				names.Has(types.NamespacedName{Namespace: shoot.Namespace, Name: ref.Name}) {
			users.shoots = append(users.shoots, shoot)
		}
	}
	return users, nil
}

func keepsKubernetes(name string, user *gardencore.NamespacedCloudProfile, removed sets.Set[string]) (errs field.ErrorList) {
	if user.Spec.Kubernetes == nil {
		return nil
	}
	for _, version := range user.Spec.Kubernetes.Versions {
		if removed.Has(version.Version) {
			errs = append(errs, inUse(kubernetesPath, version.Version, name))
		}
	}
	return errs
}

// keepsImages refuses to remove images and versions that a NamespacedCloudProfile refers to, and to add images that it
// defines itself.
func keepsImages(name string, user *gardencore.NamespacedCloudProfile, images, old imageSet) (errs field.ErrorList) {
	for _, image := range user.Spec.MachineImages {
		_, is := images[image.Name]
		_, was := old[image.Name]
		switch {
		case was && !is:
			errs = append(errs, inUse(imagesPath, image.Name, name))
		case is && !was:
			errs = append(errs, field.Forbidden(imagesPath, fmt.Sprintf("%s cannot be added: %s defines it already", image.Name, name)))
		}
		for _, version := range image.Versions {
			if was && is && old.has(image.Name, version.Version) && !images.has(image.Name, version.Version) {
				errs = append(errs, inUse(imagesPath, image.Name+"@"+version.Version, name))
			}
		}
	}
	return errs
}

// withinLimits checks that the limit allows the sum of the minimums of a Shoot's worker pools.
func withinLimits(shoot *gardencore.Shoot, limits *gardencore.Limits) field.ErrorList {
	if limits == nil || limits.MaxNodesTotal == nil {
		return nil
	}
	minimum := shootcommon.MinimumNodes(shoot)
	if minimum <= int64(*limits.MaxNodesTotal) {
		return nil
	}
	return field.ErrorList{field.Forbidden(limitsPath, fmt.Sprintf("must be %d at least: %s has so many nodes", minimum, shootName(shoot)))}
}

func versions(list []gardencore.ExpirableVersion) sets.Set[string] {
	found := sets.New[string]()
	for _, version := range list {
		found.Insert(version.Version)
	}
	return found
}

// imageSet has the versions of each machine image.
type imageSet map[string]sets.Set[string]

func imageVersions(images []gardencore.MachineImage) imageSet {
	found := imageSet{}
	for _, image := range images {
		found[image.Name] = sets.New[string]()
		for _, version := range image.Versions {
			found[image.Name].Insert(version.Version)
		}
	}
	return found
}

func (s imageSet) has(name, version string) bool { return s[name].Has(version) }
