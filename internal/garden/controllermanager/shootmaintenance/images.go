package shootmaintenance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
)

// machineImages updates the version of each pool's machine image.
func (m *maintenance) machineImages() {
	for i := range m.shoot.Spec.Provider.Workers {
		worker := &m.shoot.Spec.Provider.Workers[i]
		if image := worker.Machine.Image; image == nil || image.Version == nil {
			continue
		}
		if to := m.imageVersion(worker); to != "" {
			worker.Machine.Image.Version = &to
		}
	}
}

// imageVersion returns the version to update a pool to, empty if the current version stays. It adds an update or a
// failure to the results.
func (m *maintenance) imageVersion(worker *corev1beta1.Worker) string {
	current := worker.Machine.Image
	update := result{pool: worker.Name, subject: fmt.Sprintf("version of the machine image %q", current.Name),
		event: corev1beta1.ShootEventImageVersionMaintenance}
	index := slices.IndexFunc(m.profile.MachineImages, func(image gardencore.MachineImage) bool { return image.Name == current.Name })
	if index < 0 {
		update.reason, update.failure = "the cloud profile does not have the machine image", "choose another machine image for the pool"
		m.results = append(m.results, update)
		return ""
	}
	image := &m.profile.MachineImages[index]
	fitting := m.fitting(worker, image)
	reason, expired := m.why(*current.Version, fitting, *m.autoUpdate().MachineImageVersion, "machine image", " for this pool")
	if reason == "" {
		return ""
	}
	name := ptr.Deref(image.UpdateStrategy, gardencore.UpdateStrategyMajor)
	update.reason = fmt.Sprintf("%s (image update strategy: %s)", reason, name)
	return m.update(update, *current.Version, fitting, imageStrategies[name], expired, "")
}

// fitting returns the versions of an image that the machines of a pool can have.
func (m *maintenance) fitting(worker *corev1beta1.Worker, image *gardencore.MachineImage) (fitting []gardencore.ExpirableVersion) {
	kubelet := m.shoot.Spec.Kubernetes.Version
	if worker.Kubernetes != nil {
		kubelet = ptr.Deref(worker.Kubernetes.Version, kubelet)
	}
	definitions := m.profile.MachineCapabilities
	machineType := cloudprofile.MachineType(m.profile.MachineTypes, worker.Machine.Type)
	for i := range image.Versions {
		version := &image.Versions[i]
		if cloudprofile.SupportsArchitecture(version,
			ptr.Deref(worker.Machine.Architecture, cloudprofile.DefaultArchitecture(m.profile, worker.Machine.Type)), definitions) &&
			(machineType == nil || cloudprofile.Supports(version, machineType.Capabilities, definitions)) &&
			hasRuntimes(version, worker.CRI) && runsKubelet(version, kubelet) && reachable(version, worker) {
			fitting = append(fitting, version.ExpirableVersion)
		}
	}
	return fitting
}

// hasRuntimes reports whether an image has the container runtimes of a pool.
func hasRuntimes(version *gardencore.MachineImageVersion, wanted *corev1beta1.CRI) bool {
	wanted = cmp.Or(wanted, &corev1beta1.CRI{Name: corev1beta1.CRINameContainerD})
	index := slices.IndexFunc(version.CRI, func(cri gardencore.CRI) bool { return string(cri.Name) == string(wanted.Name) })
	return index >= 0 && !slices.ContainsFunc(wanted.ContainerRuntimes, func(runtime corev1beta1.ContainerRuntime) bool {
		return !slices.ContainsFunc(version.CRI[index].ContainerRuntimes,
			func(r gardencore.ContainerRuntime) bool { return r.Type == runtime.Type })
	})
}

func runsKubelet(version *gardencore.MachineImageVersion, kubelet string) bool {
	if version.KubeletVersionConstraint == nil {
		return true
	}
	constraint, errConstraint := semver.NewConstraint(*version.KubeletVersionConstraint)
	parsed, errVersion := semver.NewVersion(kubelet)
	return errConstraint == nil && errVersion == nil && constraint.Check(parsed)
}

// reachable reports whether nodes can be updated to this version. Nodes with in-place updates cannot be updated from
// every version.
func reachable(version *gardencore.MachineImageVersion, worker *corev1beta1.Worker) bool {
	how := ptr.Deref(worker.UpdateStrategy, corev1beta1.AutoRollingUpdate)
	if how != corev1beta1.AutoInPlaceUpdate && how != corev1beta1.ManualInPlaceUpdate {
		return true
	}
	if !cloudprofile.UpdatableInPlace(version) {
		return false
	}
	from, current := version.InPlaceUpdates.MinVersionForUpdate, *worker.Machine.Image.Version
	return version.Version == current || from != nil && cloudprofile.Compare(*from, "<=", current)
}
