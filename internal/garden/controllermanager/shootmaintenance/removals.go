package shootmaintenance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// removal removes fields that a Shoot must not have any more from a minor version of Kubernetes on.
type removal struct {
	since uint64
	// remove sets the fields to nil, and returns the paths of those that were set.
	remove func(*corev1beta1.ShootSpec) []string
}

// removals are the same as in Gardener. Users who update a Shoot have to remove these fields themselves. In a forced
// update, the maintenance removes them.
var removals = []removal{
	{33, func(s *corev1beta1.ShootSpec) []string {
		return drop(s.Kubernetes.KubeControllerManager,
			func(c *corev1beta1.KubeControllerManagerConfig) bool { return take(&c.PodEvictionTimeout) },
			"spec.kubernetes.kubeControllerManager.podEvictionTimeout")
	}},
	{33, func(s *corev1beta1.ShootSpec) []string {
		return drop(s.Kubernetes.ClusterAutoscaler, func(c *corev1beta1.ClusterAutoscaler) bool { return take(&c.MaxEmptyBulkDelete) },
			"spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete")
	}},
	{35, func(s *corev1beta1.ShootSpec) []string {
		return drop(s.Kubernetes.KubeAPIServer, func(c *corev1beta1.KubeAPIServerConfig) bool { return take(&c.EnableAnonymousAuthentication) },
			"spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication")
	}},
	{35, func(s *corev1beta1.ShootSpec) []string {
		return drop(s.Kubernetes.KubeAPIServer, func(c *corev1beta1.KubeAPIServerConfig) bool {
			return c.WatchCacheSizes != nil && take(&c.WatchCacheSizes.Default)
		}, "spec.kubernetes.kubeAPIServer.watchCacheSizes.default")
	}},
	{35, func(s *corev1beta1.ShootSpec) []string {
		return drop(s.Kubernetes.KubeScheduler, func(c *corev1beta1.KubeSchedulerConfig) bool { return take(&c.KubeMaxPDVols) },
			"spec.kubernetes.kubeScheduler.kubeMaxPDVols")
	}},
	{35, func(s *corev1beta1.ShootSpec) []string {
		return drop(s, func(s *corev1beta1.ShootSpec) bool { return take(&s.Addons) }, "spec.addons")
	}},
	{35, func(s *corev1beta1.ShootSpec) (removed []string) {
		if s.DNS == nil {
			return nil
		}
		for i := range s.DNS.Providers {
			if take(&s.DNS.Providers[i].SecretName) {
				removed = append(removed, fmt.Sprintf("spec.dns.providers[%d].secretName", i))
			}
		}
		return removed
	}},
}

// drop sets a field to nil with take, if the struct that contains it is not nil. It returns the path of the field if it
// was set.
func drop[T any](in *T, take func(*T) bool, path string) []string {
	if in != nil && take(in) {
		return []string{path}
	}
	return nil
}

// take sets a field to nil, and reports whether it was set.
func take[T any](field **T) bool {
	was := *field != nil
	*field = nil
	return was
}

// crosses reports whether the maintenance updates the control plane from a version below a minor version to that
// version or a later one.
func (m *maintenance) crosses(minor uint64) bool {
	before, errBefore := semver.NewVersion(m.before.Spec.Kubernetes.Version)
	after, errAfter := semver.NewVersion(m.shoot.Spec.Kubernetes.Version)
	return errBefore == nil && errAfter == nil && before.Major() == 1 && before.Minor() < minor && after.Minor() >= minor
}

// removeFields removes the fields that Shoots of the new Kubernetes version must not have.
func (m *maintenance) removeFields() {
	for _, r := range removals {
		if !m.crosses(r.since) {
			continue
		}
		for _, path := range r.remove(&m.shoot.Spec) {
			m.note("%s was removed: Shoots of Kubernetes 1.%d and later do not have it", path, r.since)
		}
	}
}

// removeFeatures removes feature gates and admission plugins that the Kubernetes version does not support.
func (m *maintenance) removeFeatures() {
	spec := &m.shoot.Spec.Kubernetes
	if c := spec.KubeAPIServer; c != nil {
		m.featureGates(&c.KubernetesConfig, spec.Version, "spec.kubernetes.kubeAPIServer")
		m.admissionPlugins(c, spec.Version)
	}
	if c := spec.KubeControllerManager; c != nil {
		m.featureGates(&c.KubernetesConfig, spec.Version, "spec.kubernetes.kubeControllerManager")
	}
	if c := spec.KubeScheduler; c != nil {
		m.featureGates(&c.KubernetesConfig, spec.Version, "spec.kubernetes.kubeScheduler")
	}
	if c := spec.KubeProxy; c != nil {
		m.featureGates(&c.KubernetesConfig, spec.Version, "spec.kubernetes.kubeProxy")
	}
	if c := spec.Kubelet; c != nil {
		m.featureGates(&c.KubernetesConfig, spec.Version, "spec.kubernetes.kubelet")
	}
	for i := range m.shoot.Spec.Provider.Workers {
		if c := m.shoot.Spec.Provider.Workers[i].Kubernetes; c != nil && c.Kubelet != nil {
			m.featureGates(&c.Kubelet.KubernetesConfig, ptr.Deref(c.Version, spec.Version),
				fmt.Sprintf("spec.provider.workers[%d].kubernetes.kubelet", i))
		}
	}
}

func (m *maintenance) featureGates(config *corev1beta1.KubernetesConfig, version, path string) {
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(config.FeatureGates)) {
		if !validation.SupportsFeatureGate(name, version) {
			delete(config.FeatureGates, name)
			removed = append(removed, name)
		}
	}
	if len(removed) > 0 {
		m.note("Removed from %s.featureGates what Kubernetes %s does not have: %s", path, version, strings.Join(removed, ", "))
	}
}

func (m *maintenance) admissionPlugins(config *corev1beta1.KubeAPIServerConfig, version string) {
	var removed []string
	config.AdmissionPlugins = slices.DeleteFunc(config.AdmissionPlugins, func(plugin corev1beta1.AdmissionPlugin) bool {
		if validation.SupportsAdmissionPlugin(plugin.Name, version) {
			return false
		}
		removed = append(removed, plugin.Name)
		return true
	})
	if len(removed) > 0 {
		slices.Sort(removed)
		m.note("Removed from spec.kubernetes.kubeAPIServer.admissionPlugins what Kubernetes %s does not have: %s", version,
			strings.Join(removed, ", "))
	}
}
