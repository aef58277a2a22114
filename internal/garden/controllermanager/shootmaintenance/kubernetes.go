package shootmaintenance

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
)

// controlPlaneVersion updates the Kubernetes version of the control plane.
func (m *maintenance) controlPlaneVersion() {
	kubernetes := &m.shoot.Spec.Kubernetes
	if to := m.kubernetesVersion("", kubernetes.Version); to != "" {
		kubernetes.Version = to
	}
}

// workerVersions updates the Kubernetes versions of the pools that have their own, but not beyond the version of the
// control plane.
func (m *maintenance) workerVersions() {
	for i := range m.shoot.Spec.Provider.Workers {
		worker := &m.shoot.Spec.Provider.Workers[i]
		if worker.Kubernetes == nil || worker.Kubernetes.Version == nil {
			continue
		}
		if to := m.kubernetesVersion(worker.Name, *worker.Kubernetes.Version); to != "" {
			worker.Kubernetes.Version = &to
		}
	}
}

// kubernetesVersion returns the version to update to, empty if the current version stays. It adds an update or a
// failure to the results.
func (m *maintenance) kubernetesVersion(pool, current string) string {
	reason, expired := m.whyKubernetes(current)
	if reason == "" {
		return ""
	}
	update := result{pool: pool, subject: "Kubernetes version", event: corev1beta1.ShootEventK8sVersionMaintenance, reason: reason}
	all, err := offered(m.profile.Kubernetes.Versions, m.now)
	var to string
	if err == nil {
		to, err = kubernetesStrategy.choose(current, all, expired)
	}
	if err == nil && to != "" && pool != "" {
		to = notAbove(to, m.shoot.Spec.Kubernetes.Version)
	}
	switch {
	case err != nil:
		update.failure = err.Error()
	case to == "" || to == current:
		return ""
	default:
		update.done = fmt.Sprintf("from %q to %q", current, to)
	}
	m.results = append(m.results, update)
	return to
}

// notAbove returns the lower one of the two versions.
func notAbove(v, limit string) string {
	a, errA := semver.NewVersion(v)
	b, errB := semver.NewVersion(limit)
	if errA == nil && errB == nil && a.GreaterThan(b) {
		return limit
	}
	return v
}

// whyKubernetes returns why a version should be replaced, empty if it stays, and whether it has to be replaced because
// it has expired or is missing in the cloud profile.
func (m *maintenance) whyKubernetes(current string) (reason string, expired bool) {
	var found *gardencore.ExpirableVersion
	for i, v := range m.profile.Kubernetes.Versions {
		if v.Version == current {
			found = &m.profile.Kubernetes.Versions[i]
		}
	}
	switch {
	case found == nil:
		return "the cloud profile does not have the version", true
	case cloudprofile.Expired(*found, m.now):
		return "the version has expired", true
	case m.autoUpdate().KubernetesVersion:
		return "automatic update of the Kubernetes version is configured", false
	}
	return "", false
}

// autoUpdate returns which versions are updated before they have to be: both, if the Shoot does not specify it.
func (m *maintenance) autoUpdate() corev1beta1.MaintenanceAutoUpdate {
	auto := corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true}
	if maintenance := m.shoot.Spec.Maintenance; maintenance != nil && maintenance.AutoUpdate != nil {
		auto = *maintenance.AutoUpdate
	}
	auto.MachineImageVersion = ptr.To(ptr.Deref(auto.MachineImageVersion, true))
	return auto
}
