package cloudprofile

import (
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func version(v string, class gardencore.VersionClassification) gardencore.ExpirableVersion {
	if class == gardencore.ClassificationExpired {
		return gardencore.ExpirableVersion{Version: v, ExpirationDate: &metav1.Time{Time: now.Add(-time.Hour)}}
	}
	return gardencore.ExpirableVersion{Version: v, Classification: &class}
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		a, operator, b string
		want           bool
	}{
		{"1.2.3", "<", "1.2.4", true},
		{"1.2.3", "<", "1.2.3", false},
		{"v1.2.3-rc.1", "<=", "1.2.3+build", true},
		{"1.2.3~a", "=", "1.2.3", true},
		{"1.2.3", "<", "", false},
		{"junk", "<=", "junk", false},
	} {
		if got := Compare(test.a, test.operator, test.b); got != test.want {
			t.Errorf("Compare(%q, %q, %q) = %v", test.a, test.operator, test.b, got)
		}
	}
}

func TestCompleteKubernetesVersion(t *testing.T) {
	versions := []gardencore.ExpirableVersion{version("1.32.1", gardencore.ClassificationSupported),
		version("1.33.1", gardencore.ClassificationSupported),
		version("1.33.2", gardencore.ClassificationDeprecated), version("1.33.3", gardencore.ClassificationExpired),
		version("1.34.0", gardencore.ClassificationPreview)}
	for wanted, want := range map[string]string{"": "1.33.1", "1": "1.33.1", "1.32": "1.32.1", "1.33.9": "1.33.9",
		"1.34": "", "1.x": "", "2": ""} {
		got, err := CompleteKubernetesVersion(versions, wanted, now, field.NewPath("v"))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q was completed to %q, %v; want %q", wanted, got, err, want)
		}
	}
}

func TestCompleteImage(t *testing.T) {
	images := func(names ...string) []gardencore.MachineImage {
		var all []gardencore.MachineImage
		for _, name := range names {
			all = append(all, gardencore.MachineImage{Name: name, Versions: []gardencore.MachineImageVersion{
				{ExpirableVersion: version("1.0.0", gardencore.ClassificationSupported), Architectures: []string{"amd64"}},
				{ExpirableVersion: version("1.1.0", gardencore.ClassificationSupported), Architectures: []string{"arm64"}},
				{ExpirableVersion: version("1.2.0", gardencore.ClassificationDeprecated), Architectures: []string{"amd64"}},
				{ExpirableVersion: version("2.0.0", gardencore.ClassificationPreview), Architectures: []string{"amd64"}},
			}})
		}
		return all
	}
	profile := &gardencore.CloudProfileSpec{MachineImages: images("linux", "other")}
	type image = gardencore.ShootMachineImage
	for name, test := range map[string]struct {
		has, had     *image
		architecture string
		want         image // empty if an error is expected
	}{
		"nothing":                 {nil, nil, "amd64", image{Name: "linux", Version: "1.0.0"}},
		"another architecture":    {nil, nil, "arm64", image{Name: "linux", Version: "1.1.0"}},
		"unknown architecture":    {nil, nil, "x", image{}},
		"a name":                  {&image{Name: "other"}, nil, "amd64", image{Name: "other", Version: "1.0.0"}},
		"an unknown name":         {&image{Name: "x"}, nil, "amd64", image{}},
		"a version that is there": {&image{Name: "linux", Version: "2.0.0"}, nil, "amd64", image{Name: "linux", Version: "2.0.0"}},
		"a version that is not":   {&image{Name: "linux", Version: "9.0.0"}, nil, "amd64", image{Name: "linux", Version: "9.0.0"}},
		"what it had":             {nil, &image{Name: "gone", Version: "0.1.0"}, "amd64", image{Name: "gone", Version: "0.1.0"}},
		"the name that it had":    {&image{Name: "gone"}, &image{Name: "gone", Version: "0.1.0"}, "amd64", image{Name: "gone", Version: "0.1.0"}},
	} {
		worker := &gardencore.Worker{Machine: gardencore.Machine{Image: test.has, Architecture: &test.architecture}}
		got, err := CompleteImage(profile, worker, &gardencore.Worker{Machine: gardencore.Machine{Image: test.had}}, now, field.NewPath("w"))
		if got == nil {
			got = &image{}
		}
		if *got != test.want || (err == nil) != (test.want != image{}) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, test.want)
		}
	}
}

func TestSupports(t *testing.T) {
	definitions := []gardencore.CapabilityDefinition{{Name: "architecture", Values: []string{"amd64", "arm64"}},
		{Name: "boot", Values: []string{"bios", "uefi"}}}
	flavored := func(c gardencore.Capabilities) *gardencore.MachineImageVersion {
		return &gardencore.MachineImageVersion{CapabilityFlavors: []gardencore.MachineImageFlavor{{Capabilities: c}}}
	}
	machine := gardencore.Capabilities{"architecture": {"amd64"}, "boot": {"bios"}}
	for name, test := range map[string]struct {
		image      *gardencore.MachineImageVersion
		fits, arms bool
	}{
		"no flavor":    {&gardencore.MachineImageVersion{}, true, true},
		"any boot":     {flavored(gardencore.Capabilities{"architecture": {"amd64"}}), true, false},
		"another boot": {flavored(gardencore.Capabilities{"architecture": {"amd64"}, "boot": {"uefi"}}), false, false},
		"arm":          {flavored(gardencore.Capabilities{"architecture": {"arm64"}}), false, true},
	} {
		if got := Supports(test.image, machine, definitions); got != test.fits {
			t.Errorf("%s: supports the machine: %v", name, got)
		}
		if got := SupportsArchitecture(test.image, "arm64", definitions); got != test.arms {
			t.Errorf("%s: runs on arm64: %v", name, got)
		}
	}
}
