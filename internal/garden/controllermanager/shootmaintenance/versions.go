package shootmaintenance

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// version is a version that a cloud profile offers. Preview versions and versions that are not available yet are not
// offered.
type version struct {
	*semver.Version
	text                string
	expired, deprecated bool
}

// offered returns the versions to which a Shoot may be updated, in ascending order.
func offered(versions []gardencore.ExpirableVersion, now time.Time) ([]version, error) {
	var all []version
	for _, v := range versions {
		parsed, err := semver.NewVersion(v.Version)
		if err != nil {
			return nil, fmt.Errorf("reading the version %q of the cloud profile: %w", v.Version, err)
		}
		switch class := validation.ClassificationAt(v, now); class {
		case gardencore.ClassificationPreview, gardencore.ClassificationUnavailable:
		default:
			all = append(all, version{parsed, v.Version, class == gardencore.ClassificationExpired, class == gardencore.ClassificationDeprecated})
		}
	}
	slices.SortFunc(all, func(a, b version) int { return a.Compare(b.Version) })
	return all, nil
}

// strategy describes how a version is updated. The steps of within apply at any time: each leads to the latest version
// for which it returns true, and the first step that finds one counts. The step force applies only if the current
// version has expired.
type strategy struct {
	within []func(current, v *semver.Version) bool
	force  func(current *semver.Version, all []version) (*version, error)
}

// choose returns the version to update the current one to; empty if it stays.
func (s strategy) choose(current string, all []version, expired bool) (string, error) {
	from, err := semver.NewVersion(current)
	if err != nil {
		return "", fmt.Errorf("reading the version %q: %w", current, err)
	}
	for _, within := range s.within {
		v := latest(all, func(v version) bool { return !v.expired && v.GreaterThan(from) && within(from, v.Version) },
			func(v version) bool { return !v.deprecated })
		if v != nil {
			return v.text, nil
		}
	}
	if !expired {
		return "", nil
	}
	v, err := s.force(from, all)
	switch {
	case err != nil:
		return "", err
	case v == nil:
		return "", fmt.Errorf("version %s has expired, and the cloud profile has no version to follow it", current)
	}
	return v.text, nil
}

// latest returns the greatest version that fits and is preferred; if there is none, the greatest one that fits.
func latest(all []version, fits, preferred func(version) bool) *version {
	var found *version
	for _, v := range slices.Backward(all) {
		switch {
		case fits(v) && preferred(v):
			return &v
		case fits(v) && found == nil:
			found = &v
		}
	}
	return found
}

// next returns the latest version that fits, in a forced update. It prefers versions that have not expired. An expired
// one may still be a step on the way: the next maintenance continues from it.
func next(all []version, fits func(version) bool) *version {
	return latest(all, fits, func(v version) bool { return !v.expired })
}

func sameMajor(current, v *semver.Version) bool { return v.Major() == current.Major() }

func sameMinor(current, v *semver.Version) bool {
	return sameMajor(current, v) && v.Minor() == current.Minor()
}

func anyVersion(_, _ *semver.Version) bool { return true }

// kubernetesStrategy updates to the latest patch release, and by force to the next minor release. It never skips a
// minor release.
var kubernetesStrategy = strategy{
	within: []func(_, _ *semver.Version) bool{sameMinor},
	force: func(current *semver.Version, all []version) (*version, error) {
		return next(all, func(v version) bool { return sameMajor(current, v.Version) && v.Minor() == current.Minor()+1 }), nil
	},
}

// imageStrategies are the update strategies of machine images. By force, patch updates to the next minor release that
// is offered, and minor to the next major release.
var imageStrategies = map[gardencore.MachineImageUpdateStrategy]strategy{
	gardencore.UpdateStrategyPatch: {
		within: []func(_, _ *semver.Version) bool{sameMinor},
		force: func(current *semver.Version, all []version) (*version, error) {
			for _, v := range all {
				if sameMajor(current, v.Version) && v.Minor() > current.Minor() {
					return next(all, func(w version) bool { return sameMinor(v.Version, w.Version) }), nil
				}
			}
			return nil, nil
		},
	},
	gardencore.UpdateStrategyMinor: {
		within: []func(_, _ *semver.Version) bool{sameMinor, sameMajor},
		force: func(current *semver.Version, all []version) (*version, error) {
			for _, v := range all {
				if v.Major() > current.Major() {
					return next(all, func(w version) bool { return sameMajor(v.Version, w.Version) }), nil
				}
			}
			return nil, nil
		},
	},
	gardencore.UpdateStrategyMajor: {
		within: []func(_, _ *semver.Version) bool{sameMinor, anyVersion},
		force: func(*semver.Version, []version) (*version, error) {
			return nil, errors.New("it has expired and there is no later version: choose another machine image, or have the " +
				"cloud profile offer a version that has not expired")
		},
	},
}

// why returns why a version should be replaced, empty if it stays, and whether it has to be replaced because it has
// expired or is missing in the cloud profile.
func (m *maintenance) why(current string, versions []gardencore.ExpirableVersion, automatic bool, what, missing string) (
	reason string, expired bool) {
	index := slices.IndexFunc(versions, func(v gardencore.ExpirableVersion) bool { return v.Version == current })
	switch {
	case index < 0:
		return "the cloud profile does not have the version" + missing, true
	case cloudprofile.Expired(versions[index], m.now):
		return "the version has expired", true
	case automatic:
		return "automatic update of the " + what + " version is configured", false
	}
	return "", false
}

// update returns the version to update the current one to, but not above the limit if there is one; empty if it stays.
// It adds an update or a failure to the results.
func (m *maintenance) update(r result, current string, versions []gardencore.ExpirableVersion, s strategy, expired bool,
	limit string) string {
	all, err := offered(versions, m.now)
	var to string
	if err == nil {
		to, err = s.choose(current, all, expired)
	}
	if limit != "" && cloudprofile.Compare(to, ">", limit) {
		to = limit
	}
	switch {
	case err != nil:
		r.failure = err.Error()
	case to == "" || to == current:
		return ""
	default:
		r.done = fmt.Sprintf("from %q to %q", current, to)
	}
	m.results = append(m.results, r)
	return to
}

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
