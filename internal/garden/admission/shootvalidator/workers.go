package shootvalidator

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateProvider checks that the CloudProfile and the bindings are for the Shoot's provider, and that the
// CloudProfile offers what the worker pools use.
func (r *request) validateProvider() field.ErrorList {
	path := specPath.Child("provider")
	if err := r.validateProviderType(path.Child("type")); err != nil {
		return field.ErrorList{err}
	}
	version, err := semver.NewVersion(r.shoot.Spec.Kubernetes.Version)
	if err != nil {
		return field.ErrorList{
			field.Invalid(specPath.Child("kubernetes", "version"), r.shoot.Spec.Kubernetes.Version, "must be a semantic version")}
	}
	var errs field.ErrorList
	kubelet := r.shoot.Spec.Kubernetes.Kubelet
	for i := range r.shoot.Spec.Provider.Workers {
		p := r.pool(i, path.Child("workers").Index(i))
		machineErr := p.validateMachine()
		if machineErr != nil {
			errs = append(errs, machineErr)
		} else {
			errs = append(errs, p.validateCRI()...)
			kubeletVersion := version
			if k := p.worker.Kubernetes; k != nil && k.Version != nil {
				if kubeletVersion, err = semver.NewVersion(*k.Version); err != nil {
					return append(errs, field.Invalid(p.path.Child("kubernetes", "version"), *k.Version, "must be a semantic version"))
				}
			}
			errs = append(errs, p.validateKubeletVersion(kubeletVersion)...)
		}
		errs = append(errs, p.validateVolume()...)
		if k := p.worker.Kubernetes; k != nil {
			// As in Gardener, the kubelet configuration of a pool is also used for the following pools that have none.
			if k.Kubelet != nil {
				kubelet = k.Kubelet
			}
			errs = append(errs, p.validateReserved(kubelet)...)
			errs = append(errs, p.validateKubernetesVersion()...)
		}
		errs = append(errs, p.validateZones()...)
	}
	return errs
}

func (r *request) validateProviderType(path *field.Path) *field.Error {
	want := r.shoot.Spec.Provider.Type
	if r.profile.Type != want {
		return field.Invalid(path, want, fmt.Sprintf("the cloud profile is for %q", r.profile.Type))
	}
	if b := r.secretBinding; b != nil && (b.Provider == nil || !slices.Contains(strings.Split(b.Provider.Type, ","), want)) {
		return field.Invalid(path, want,
			fmt.Sprintf("the SecretBinding %q is for %q", b.Name, ptr.Deref(b.Provider, gardencore.SecretBindingProvider{}).Type))
	}
	if b := r.credentialsBinding; b != nil && b.Provider.Type != want {
		return field.Invalid(path, want, fmt.Sprintf("the CredentialsBinding %q is for %q", b.Name, b.Provider.Type))
	}
	return nil
}

// pool is a worker pool of the request's Shoot.
type pool struct {
	*request
	path   *field.Path
	worker *gardencore.Worker
	// old is the stored pool; for a new pool, it is a pool with an empty image.
	old   *gardencore.Worker
	isNew bool
}

func (r *request) pool(i int, path *field.Path) pool {
	worker := &r.shoot.Spec.Provider.Workers[i]
	if old := validation.WorkerNamed(r.old.Spec.Provider.Workers, worker.Name); old != nil {
		return pool{r, path, worker, old, false}
	}
	return pool{r, path, worker, &gardencore.Worker{Machine: gardencore.Machine{Image: &gardencore.ShootMachineImage{}}}, true}
}

func (p pool) validateKubernetesVersion() field.ErrorList {
	if p.worker.Kubernetes.Version == nil {
		return nil
	}
	old := p.request.old.Spec.Kubernetes.Version
	if k := p.old.Kubernetes; k != nil && k.Version != nil {
		old = *k.Version
	}
	return p.validateVersionOffered(*p.worker.Kubernetes.Version, old, p.isNew, p.path.Child("kubernetes", "version"))
}

// validateZones checks that the region has the zones of a pool, if the zones or the region have changed.
func (p pool) validateZones() field.ErrorList {
	if p.shoot.Spec.Region == p.request.old.Spec.Region && reflect.DeepEqual(p.worker.Zones, p.old.Zones) {
		return nil
	}
	var offered []string
	if region := cloudprofile.Region(p.profile.Regions, p.shoot.Spec.Region); region != nil {
		offered = names(region.Zones, func(z gardencore.AvailabilityZone) string { return z.Name })
	}
	var errs field.ErrorList
	for i, zone := range p.worker.Zones {
		path := p.path.Child("zones").Index(i)
		if len(offered) == 0 {
			errs = append(errs, field.Invalid(path, zone, fmt.Sprintf("the region %q has no zones", p.shoot.Spec.Region)))
		} else if !slices.Contains(offered, zone) {
			errs = append(errs, field.NotSupported(path, zone, offered))
		}
		if slices.Contains(p.worker.Zones[:i], zone) {
			errs = append(errs, field.Duplicate(path, zone))
		}
	}
	return errs
}

// unavailable returns the reasons for which the pool cannot use a type of machines or volumes: the CloudProfile does
// not offer it any more, or one of the pool's zones does not have it.
func (p pool) unavailable(name string, usable *bool, missingTypes func(gardencore.AvailabilityZone) []string) []string {
	var reasons []string
	if !ptr.Deref(usable, false) {
		reasons = append(reasons, "is not offered any more")
	}
	region := cloudprofile.Region(p.profile.Regions, p.shoot.Spec.Region)
	if region != nil && slices.ContainsFunc(region.Zones, func(zone gardencore.AvailabilityZone) bool {
		return slices.Contains(p.worker.Zones, zone.Name) && slices.Contains(missingTypes(zone), name)
	}) {
		reasons = append(reasons, "is missing in one of the zones")
	}
	return reasons
}

// validateVolume checks that the CloudProfile offers the type of a pool's volumes, and that they are large enough.
func (p pool) validateVolume() field.ErrorList {
	if p.worker.Volume == nil || p.worker.Volume.Type == nil {
		return nil
	}
	volume, name := p.worker.Volume, *p.worker.Volume.Type
	if old := p.old.Volume; old == nil || old.Type == nil || *old.Type != name {
		if err := p.validateVolumeType(name, p.path.Child("volume", "type")); err != nil {
			return field.ErrorList{err}
		}
	}
	size, err := resource.ParseQuantity(volume.VolumeSize)
	if err != nil {
		return nil // the API validation refuses it
	}
	if minimum := p.minimalVolume(name, size); minimum != nil {
		return field.ErrorList{field.Invalid(p.path.Child("volume", "size"), volume.VolumeSize, "must be at least "+minimum.String())}
	}
	return nil
}

func (p pool) validateVolumeType(name string, path *field.Path) *field.Error {
	reasons := func(t *gardencore.VolumeType) []string {
		return p.unavailable(t.Name, t.Usable, func(zone gardencore.AvailabilityZone) []string { return zone.UnavailableVolumeTypes })
	}
	var offered []string
	for i := range p.profile.VolumeTypes {
		if t := &p.profile.VolumeTypes[i]; len(reasons(t)) == 0 {
			offered = append(offered, t.Name)
		}
	}
	found := cloudprofile.VolumeType(p.profile.VolumeTypes, name)
	if found == nil {
		return field.NotSupported(path, name, offered)
	}
	return invalidOffer(path, name, reasons(found), offered)
}

// minimalVolume returns the minimum size of the machine type or the volume type if size is below it, and nil otherwise.
func (p pool) minimalVolume(volumeType string, size resource.Quantity) *resource.Quantity {
	if m := cloudprofile.MachineType(p.profile.MachineTypes, p.worker.Machine.Type); m != nil {
		if s := m.Storage; s != nil && s.Type == volumeType && s.MinSize != nil && size.Cmp(*s.MinSize) < 0 {
			return s.MinSize
		}
	}
	if v := cloudprofile.VolumeType(p.profile.VolumeTypes, volumeType); v != nil && v.MinSize != nil && size.Cmp(*v.MinSize) < 0 {
		return v.MinSize
	}
	return nil
}

// validateReserved checks that the machines have more resources than the kubelet reserves.
func (p pool) validateReserved(kubelet *gardencore.KubeletConfig) field.ErrorList {
	machine := cloudprofile.MachineType(p.profile.MachineTypes, p.worker.Machine.Type)
	if kubelet == nil || machine == nil {
		return nil
	}
	reserved := ptr.Deref(kubelet.KubeReserved, gardencore.KubeletConfigReserved{})
	var errs field.ErrorList
	for _, part := range []struct {
		name     string
		reserved *resource.Quantity
		capacity resource.Quantity
	}{{"CPU", reserved.CPU, machine.CPU}, {"memory", reserved.Memory, machine.Memory}} {
		if wanted := ptr.Deref(part.reserved, resource.Quantity{}); wanted.Cmp(part.capacity) >= 0 {
			errs = append(errs, field.Invalid(p.path.Child("kubernetes", "kubelet"), wanted.String(),
				fmt.Sprintf("kubeReserved leaves nothing of the machine type's %s, which is %s", part.name, part.capacity.String())))
		}
	}
	return errs
}

// validateCRI checks that the machine image supports the container runtimes of a pool, if the image or the runtimes
// have changed.
func (p pool) validateCRI() field.ErrorList {
	cri, image := p.worker.CRI, p.worker.Machine.Image
	if cri == nil || image == nil || equality.Semantic.DeepEqual(cri, p.old.CRI) && equality.Semantic.DeepEqual(image, p.old.Machine.Image) {
		return nil
	}
	version := cloudprofile.ImageVersion(p.profile.MachineImages, image.Name, image.Version)
	if version == nil {
		return nil
	}
	path := p.path.Child("cri")
	criNames := names(version.CRI, func(c gardencore.CRI) string { return string(c.Name) })
	i := slices.Index(criNames, string(cri.Name))
	if i < 0 {
		return field.ErrorList{field.Invalid(path.Child("name"), cri.Name,
			fmt.Sprintf("machine image %s@%s has only: %s", image.Name, image.Version, strings.Join(criNames, ", ")))}
	}
	runtimes := names(version.CRI[i].ContainerRuntimes, func(c gardencore.ContainerRuntime) string { return c.Type })
	var errs field.ErrorList
	for j, runtime := range cri.ContainerRuntimes {
		if !slices.Contains(runtimes, runtime.Type) {
			errs = append(errs, field.Invalid(path.Child("containerRuntimes").Index(j).Child("type"), runtime.Type,
				fmt.Sprintf("machine image %s@%s has only: %s", image.Name, image.Version, strings.Join(runtimes, ", "))))
		}
	}
	return errs
}

// invalidOffer returns the error for a value that exists but cannot be used, and nil if there is no reason.
func invalidOffer(path *field.Path, value any, reasons, offered []string) *field.Error {
	if len(reasons) == 0 {
		return nil
	}
	return field.Invalid(path, value, fmt.Sprintf("%s; can be: %s", strings.Join(reasons, ", "), strings.Join(offered, ", ")))
}
