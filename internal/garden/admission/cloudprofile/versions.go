package cloudprofile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/validation/field"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// Active says that a version may be used by something new: it is available already and has not expired.
func Active(version gardencore.ExpirableVersion, now time.Time) bool {
	classification := validation.ClassificationAt(version, now)
	return classification != gardencore.ClassificationExpired && classification != gardencore.ClassificationUnavailable
}

// Expired says that a version's time is over.
func Expired(version gardencore.ExpirableVersion, now time.Time) bool {
	return validation.ClassificationAt(version, now) == gardencore.ClassificationExpired
}

// CompleteKubernetesVersion is the version that a user means who wrote one with parts left out: the latest supported
// version that agrees with what is there. A version of three parts is taken as it is, whether it is offered or not.
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

// versionPrefix is the start of a version; a nil part may be anything.
type versionPrefix struct{ major, minor *uint64 }

func (p *versionPrefix) matches(v *semver.Version) bool {
	return (p.major == nil || v.Major() == *p.major) && (p.minor == nil || v.Minor() == *p.minor)
}

type versionPartError struct{ part string }

// parsePrefix reads an incomplete version; the result is nil for one of three parts. Of more parts only the first counts.
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

// Compare says whether "a operator b" holds, for operators of version constraints as < and <=. Pre-releases and build
// metadata do not count. What cannot be read compares with nothing.
func Compare(a, operator, b string) bool {
	version, err := semver.NewVersion(release(a))
	if err != nil {
		return false
	}
	constraint, err := semver.NewConstraint(fmt.Sprintf("%s %s", operator, release(b)))
	return err == nil && constraint.Check(version)
}

func release(version string) string {
	version = strings.ReplaceAll(version, "v", "")
	if i := strings.IndexAny(version, "-+~"); i >= 0 {
		version = version[:i]
	}
	return version
}
