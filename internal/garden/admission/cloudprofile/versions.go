package cloudprofile

import (
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/validation/field"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// Expired reports whether a version has expired.
func Expired(version gardencore.ExpirableVersion, now time.Time) bool {
	return validation.ClassificationAt(version, now) == gardencore.ClassificationExpired
}

// CompleteKubernetesVersion completes a Kubernetes version of which parts are missing: to the latest supported version
// that matches the given parts. It returns a version of three parts unchanged, whether it is offered or not.
func CompleteKubernetesVersion(versions []gardencore.ExpirableVersion, wanted string, now time.Time,
	path *field.Path) (string, *field.Error) {
	prefix, err := parsePrefix(wanted)
	if err != nil {
		return "", field.Invalid(path, err.part, "must be a semantic version")
	}
	if prefix == nil {
		return wanted, nil
	}
	var latest *semver.Version
	for _, version := range versions {
		if validation.ClassificationAt(version, now) != gardencore.ClassificationSupported {
			continue
		}
		parsed, err := semver.NewVersion(version.Version)
		if err == nil && prefix.matches(parsed) && (latest == nil || parsed.GreaterThan(latest)) {
			latest = parsed
		}
	}
	if latest == nil {
		return "", field.Invalid(path, wanted,
			"the cloud profile has no supported version like this; a version in preview, or a deprecated one, has to be written in full")
	}
	return latest.String(), nil
}

// versionPrefix is the start of a version; a nil part matches every number.
type versionPrefix struct{ major, minor *uint64 }

func (p *versionPrefix) matches(v *semver.Version) bool {
	return (p.major == nil || v.Major() == *p.major) && (p.minor == nil || v.Minor() == *p.minor)
}

type versionPartError struct{ part string }

// parsePrefix parses an incomplete version. It returns nil for a version of three parts. Of a version with more than
// three parts, only the first one counts.
func parsePrefix(version string) (*versionPrefix, *versionPartError) {
	parts := strings.Split(version, ".")
	if len(parts) == 3 {
		return nil, nil
	}
	var prefix versionPrefix
	read := func(part string, into **uint64) *versionPartError {
		if part == "" {
			return nil
		}
		number, err := strconv.ParseUint(part, 10, 0)
		if err != nil {
			return &versionPartError{part}
		}
		*into = &number
		return nil
	}
	if len(parts) == 2 {
		if err := read(parts[1], &prefix.minor); err != nil {
			return nil, err
		}
	}
	if err := read(parts[0], &prefix.major); err != nil {
		return nil, err
	}
	return &prefix, nil
}

// Compare is validation.CompareVersions. It returns false if a version cannot be parsed.
func Compare(a, operator, b string) bool {
	holds, err := validation.CompareVersions(a, operator, b)
	return err == nil && holds
}
