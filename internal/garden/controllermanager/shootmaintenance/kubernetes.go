package shootmaintenance

import (
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"
)

// controlPlaneVersion updates the Kubernetes version of the control plane.
func (m *maintenance) controlPlaneVersion() {
	kubernetes := &m.shoot.Spec.Kubernetes
	if to := m.kubernetesVersion("", kubernetes.Version, ""); to != "" {
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
		if to := m.kubernetesVersion(worker.Name, *worker.Kubernetes.Version, m.shoot.Spec.Kubernetes.Version); to != "" {
			worker.Kubernetes.Version = &to
		}
	}
}

// kubernetesVersion returns the version to update to, empty if the current version stays. It adds an update or a
// failure to the results.
func (m *maintenance) kubernetesVersion(pool, current, limit string) string {
	versions := m.profile.Kubernetes.Versions
	reason, expired := m.why(current, versions, m.autoUpdate().KubernetesVersion, "Kubernetes", "")
	if reason == "" {
		return ""
	}
	update := result{pool: pool, subject: "Kubernetes version", event: corev1beta1.ShootEventK8sVersionMaintenance, reason: reason}
	return m.update(update, current, versions, kubernetesStrategy, expired, limit)
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
