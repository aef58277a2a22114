package corevalidation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// classifications are the classifications that a user may set, in the order of a version's lifecycle.
var classifications = []gardencore.VersionClassification{
	gardencore.ClassificationPreview,
	gardencore.ClassificationSupported,
	gardencore.ClassificationDeprecated,
	gardencore.ClassificationExpired,
}

// ---- reading versions ----

// LifecycleStages returns the stages of a version. For a version without a lifecycle, the first stage is its
// classification, and the second one its expiration.
func LifecycleStages(version gardencore.ExpirableVersion) []gardencore.LifecycleStage {
	if len(version.Lifecycle) > 0 {
		return version.Lifecycle
	}
	stages := []gardencore.LifecycleStage{{Classification: ptr.Deref(version.Classification, gardencore.ClassificationSupported)}}
	if version.ExpirationDate != nil {
		stages = append(stages, gardencore.LifecycleStage{Classification: gardencore.ClassificationExpired, StartTime: version.ExpirationDate})
	}
	return stages
}

// ClassificationAt returns the classification of the last stage that began before now, or unavailable if there is none.
func ClassificationAt(version gardencore.ExpirableVersion, now time.Time) gardencore.VersionClassification {
	current := gardencore.ClassificationUnavailable
	for _, stage := range LifecycleStages(version) {
		if stage.StartTime == nil || stage.StartTime.Time.Before(now) {
			current = stage.Classification
		}
	}
	return current
}

// Active reports whether new objects may use a version: it is already available and has not expired.
func Active(version gardencore.ExpirableVersion, now time.Time) bool {
	classification := ClassificationAt(version, now)
	return classification != gardencore.ClassificationExpired && classification != gardencore.ClassificationUnavailable
}

func currentClassification(version gardencore.ExpirableVersion) gardencore.VersionClassification {
	return ClassificationAt(version, time.Now())
}

// LatestExpirableVersion returns the greatest of the versions, whatever its classification. It returns an error if
// the list is empty, or contains a version that is not semantic.
func LatestExpirableVersion(versions []gardencore.ExpirableVersion) (gardencore.ExpirableVersion, error) {
	var (
		latest       gardencore.ExpirableVersion
		latestParsed *semver.Version
	)
	for _, version := range versions {
		parsed, err := semver.NewVersion(version.Version)
		if err != nil {
			return gardencore.ExpirableVersion{}, fmt.Errorf("parse version %q: %w", version.Version, err)
		}
		if latestParsed == nil || parsed.GreaterThan(latestParsed) {
			latest, latestParsed = version, parsed
		}
	}
	if latestParsed == nil {
		return latest, errors.New("there is no version")
	}
	return latest, nil
}

func imageExpirableVersions(versions []gardencore.MachineImageVersion) []gardencore.ExpirableVersion {
	expirable := make([]gardencore.ExpirableVersion, 0, len(versions))
	for _, version := range versions {
		expirable = append(expirable, version.ExpirableVersion)
	}
	return expirable
}

// ---- validating versions ----

// kubernetesVersionPattern is stricter than semantic versions: it allows no pre-releases, no build metadata, and no
// leading v.
var kubernetesVersionPattern = regexp.MustCompile(`^([0-9]+\.){2}[0-9]+$`)

// validateKubernetesVersions checks the entries of path.versions one by one.
func validateKubernetesVersions(versions []gardencore.ExpirableVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, version := range versions {
		idxPath := path.Child("versions").Index(i)
		if !kubernetesVersionPattern.MatchString(version.Version) {
			errs = append(errs, field.Invalid(idxPath, version.Version, "must be a Kubernetes version like 1.34.2"))
		} else if !insertNew(seen, version.Version) {
			errs = append(errs, field.Duplicate(idxPath.Child("version"), version.Version))
		}
		errs = append(errs, validateExpirableVersion(version, idxPath)...)
	}
	return errs
}

// validateExpirableVersion checks the classification and the lifecycle of a version. Only one of them may be set.
func validateExpirableVersion(version gardencore.ExpirableVersion, path *field.Path) field.ErrorList {
	lifecyclePath := path.Child("lifecycle")
	if len(version.Lifecycle) > 0 && !FeatureGate.Enabled(VersionClassificationLifecycle) {
		return field.ErrorList{field.Forbidden(lifecyclePath, fmt.Sprintf("requires the feature gate %s", VersionClassificationLifecycle))}
	}
	var errs field.ErrorList
	if version.Classification != nil {
		classificationPath := path.Child("classification")
		errs = append(errs, Supported(classificationPath, *version.Classification, classifications...)...)
		if *version.Classification == gardencore.ClassificationExpired && version.Lifecycle == nil {
			errs = append(errs, field.Forbidden(classificationPath, "must not be expired; set the expirationDate instead"))
		}
	}
	if (version.Classification != nil || version.ExpirationDate != nil) && len(version.Lifecycle) > 0 {
		errs = append(errs, field.Forbidden(path, "must not have a classification or an expirationDate together with a lifecycle"))
	}
	return append(errs, validateLifecycle(version.Lifecycle, lifecyclePath)...)
}

// validateLifecycle checks that the stages are known, distinct, and in the order of a version's lifecycle. Only the
// first stage may have no start time, and none may start before the previous one.
func validateLifecycle(stages []gardencore.LifecycleStage, path *field.Path) field.ErrorList {
	var (
		errs     field.ErrorList
		seen     = sets.New[gardencore.VersionClassification]()
		previous time.Time
	)
	for i, stage := range stages {
		idxPath, classificationPath := path.Index(i), path.Index(i).Child("classification")
		errs = append(errs, Supported(classificationPath, stage.Classification, classifications...)...)
		errs = append(errs, Distinct(classificationPath, seen, stage.Classification)...)
		if i > 0 && stages[i-1].Classification.Compare(stage.Classification) > 0 {
			errs = append(errs, field.Invalid(classificationPath, stage.Classification,
				fmt.Sprintf("must come before %s", stages[i-1].Classification)))
		}
		switch {
		case stage.StartTime == nil && i > 0:
			errs = append(errs, field.Required(idxPath, "only the first stage may have no startTime"))
		case stage.StartTime != nil && i > 0 && stage.StartTime.Time.Before(previous):
			errs = append(errs, field.Invalid(idxPath, stage.StartTime.String(), "must not start before the stage ahead of it"))
			fallthrough
		case stage.StartTime != nil:
			previous = stage.StartTime.Time
		}
	}
	return errs
}

// validateSupportedVersionsConfiguration refuses to classify a version as supported if another one of the same minor
// version is supported or, by its lifecycle, will be. Versions without a classification count as supported elsewhere
// but, as in Gardener, not here.
func validateSupportedVersionsConfiguration(version gardencore.ExpirableVersion, all []gardencore.ExpirableVersion,
	path *field.Path) field.ErrorList {
	if version.Classification == nil || currentClassification(version) != gardencore.ClassificationSupported {
		return nil
	}
	parsed, err := semver.NewVersion(version.Version)
	if err != nil {
		return nil // reported where the version itself is checked
	}
	var errs field.ErrorList
	for _, other := range all {
		if !mentionsSupported(other) {
			continue
		}
		otherParsed, err := semver.NewVersion(other.Version)
		if err != nil {
			return nil
		}
		sameMinor := otherParsed.Major() == parsed.Major() && otherParsed.Minor() == parsed.Minor()
		errs = append(errs, ForbiddenIf(sameMinor && !otherParsed.Equal(parsed), path,
			fmt.Sprintf("must not be classified as supported together with version %s of the same minor version", other.Version))...)
	}
	return errs
}

func mentionsSupported(version gardencore.ExpirableVersion) bool {
	return ptr.Deref(version.Classification, "") == gardencore.ClassificationSupported ||
		slices.ContainsFunc(version.Lifecycle, func(stage gardencore.LifecycleStage) bool {
			return stage.Classification == gardencore.ClassificationSupported
		})
}

// validateExpirableVersionsUpdate refuses to make an available version unavailable.
func validateExpirableVersionsUpdate(newVersions, oldVersions []gardencore.ExpirableVersion, path *field.Path) field.ErrorList {
	old := make(map[string]gardencore.ExpirableVersion, len(oldVersions))
	for _, version := range oldVersions {
		old[version.Version] = version
	}
	var errs field.ErrorList
	for i, version := range newVersions {
		before, existed := old[version.Version]
		if existed && currentClassification(before) != gardencore.ClassificationUnavailable &&
			currentClassification(version) == gardencore.ClassificationUnavailable {
			errs = append(errs, field.Forbidden(path.Index(i), "a version that is available already must not become unavailable again"))
		}
	}
	return errs
}

// SupportsFeatureGate reports whether a version of Kubernetes has a feature gate that a Shoot may set.
func SupportsFeatureGate(name, version string) bool {
	gate, known := lookUp(name, gardenerFeatureGates, knownFeatureGates)
	return known && !featureGatesUnknownToGardener.Has(name) && has(gate.versionRange, version)
}

// SupportsAdmissionPlugin reports whether a version of Kubernetes has an admission plugin that a Shoot may configure.
func SupportsAdmissionPlugin(name, version string) bool {
	plugin, known := lookUp(name, gardenerAdmissionPlugins, knownAdmissionPlugins)
	return known && has(plugin, version)
}

func has(r versionRange, version string) bool {
	known, err := r.contains(version)
	return err == nil && known
}
