package resourcereferencemanager

import (
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

func expirable(version string) gardencore.ExpirableVersion {
	return gardencore.ExpirableVersion{Version: version}
}

func image(name string, versions ...string) gardencore.MachineImage {
	image := gardencore.MachineImage{Name: name}
	for _, version := range versions {
		image.Versions = append(image.Versions, gardencore.MachineImageVersion{ExpirableVersion: expirable(version)})
	}
	return image
}

// userOf returns a Shoot of the profile, with Kubernetes 1.30.0 and two nodes, one of them with the image linux 1.0.
func userOf(kind, name string) *gardencore.Shoot {
	return &gardencore.Shoot{ObjectMeta: named(ns, "shoot"), Spec: gardencore.ShootSpec{
		CloudProfile: &gardencore.CloudProfileReference{Kind: kind, Name: name},
		Kubernetes:   gardencore.Kubernetes{Version: "1.30.0"},
		Provider: gardencore.Provider{Workers: []gardencore.Worker{{Minimum: 1}, {Minimum: 1,
			Machine: gardencore.Machine{Image: &gardencore.ShootMachineImage{Name: "linux", Version: "1.0"}}}}},
	}}
}

func TestCloudProfile(t *testing.T) {
	type spec = gardencore.CloudProfileSpec
	type own = gardencore.NamespacedCloudProfileSpec
	profileOf := func(change func(*spec)) *gardencore.CloudProfile {
		p := &gardencore.CloudProfile{ObjectMeta: named("", "profile"), Spec: spec{
			Kubernetes:    gardencore.KubernetesSettings{Versions: []gardencore.ExpirableVersion{expirable("1.30.0"), expirable("1.31.0")}},
			MachineImages: []gardencore.MachineImage{image("linux", "1.0", "2.0"), image("spare", "1.0")},
			MachineCapabilities: []gardencore.CapabilityDefinition{{Name: "architecture", Values: []string{"amd64", "arm64"}},
				{Name: "boot", Values: []string{"uefi", "bios"}}},
		}}
		change(&p.Spec)
		return p
	}
	namespaced := func(spec own) *gardencore.NamespacedCloudProfile {
		spec.Parent = gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "profile"}
		return &gardencore.NamespacedCloudProfile{ObjectMeta: named(ns, "own"), Spec: spec}
	}
	deleted := func(obj *gardencore.Shoot) *gardencore.Shoot {
		obj.DeletionTimestamp = &metav1.Time{}
		return obj
	}
	dropKubernetes := func(s *spec) { s.Kubernetes.Versions = s.Kubernetes.Versions[1:] }
	dropVersion := func(s *spec) { s.MachineImages[0] = image("linux", "2.0") }
	dropImage := func(s *spec) { s.MachineImages = s.MachineImages[1:] }
	dropCapabilities := func(s *spec) { s.MachineCapabilities = nil }
	machine := func(capabilities gardencore.Capabilities) own {
		return own{MachineTypes: []gardencore.MachineType{{Capabilities: capabilities}}}
	}
	shoot := userOf("CloudProfile", "profile")
	for name, tc := range map[string]struct {
		change func(*spec)
		users  []runtime.Object
		field  string
	}{
		"unchanged":                             {func(*spec) {}, []runtime.Object{shoot}, ""},
		"Kubernetes version of a shoot":         {dropKubernetes, []runtime.Object{shoot}, "spec.kubernetes.versions"},
		"Kubernetes version of a deleted shoot": {dropKubernetes, []runtime.Object{deleted(userOf("CloudProfile", "profile"))}, ""},
		"Kubernetes version of others": {
			dropKubernetes, []runtime.Object{userOf("CloudProfile", "other"), userOf("NamespacedCloudProfile", "profile2")}, ""},
		"Kubernetes version of a shoot below": {dropKubernetes,
			[]runtime.Object{userOf("NamespacedCloudProfile", "own"), namespaced(own{})}, "spec.kubernetes.versions"},
		"Kubernetes version of a profile": {dropKubernetes, []runtime.Object{namespaced(own{Kubernetes: &gardencore.KubernetesSettings{
			Versions: []gardencore.ExpirableVersion{expirable("1.30.0")}}})}, "spec.kubernetes.versions"},
		"unused Kubernetes version": {func(s *spec) { s.Kubernetes.Versions = s.Kubernetes.Versions[:1] },
			[]runtime.Object{shoot}, ""},
		"image version of a shoot": {dropVersion, []runtime.Object{shoot}, "spec.machineImages"},
		"image of a shoot":         {dropImage, []runtime.Object{shoot}, "spec.machineImages"},
		"unused image":             {func(s *spec) { s.MachineImages = s.MachineImages[:1] }, []runtime.Object{shoot}, ""},
		"image version of a profile": {dropVersion,
			[]runtime.Object{namespaced(own{MachineImages: []gardencore.MachineImage{image("linux", "1.0")}})}, "spec.machineImages"},
		"image of a profile with other versions": {dropImage,
			[]runtime.Object{namespaced(own{MachineImages: []gardencore.MachineImage{image("linux", "9.0")}})}, "spec.machineImages"},
		"new image that a profile defines": {func(s *spec) { s.MachineImages = append(s.MachineImages, image("custom", "1.0")) },
			[]runtime.Object{namespaced(own{MachineImages: []gardencore.MachineImage{image("custom", "2.0")}})}, "spec.machineImages"},
		"fewer nodes than a shoot has": {func(s *spec) { s.Limits = &gardencore.Limits{MaxNodesTotal: ptr.To[int32](1)} },
			[]runtime.Object{shoot}, "spec.limits.maxNodesTotal"},
		"as many nodes as a shoot has": {
			func(s *spec) { s.Limits = &gardencore.Limits{MaxNodesTotal: ptr.To[int32](2)} }, []runtime.Object{shoot}, ""},
		"capability of a machine": {dropCapabilities,
			[]runtime.Object{namespaced(machine(gardencore.Capabilities{"boot": {"bios"}}))}, "spec.machineCapabilities"},
		"value that no machine has": {func(s *spec) { s.MachineCapabilities[1].Values = []string{"uefi"} },
			[]runtime.Object{namespaced(machine(gardencore.Capabilities{"boot": {"uefi"}}))}, ""},
		"capabilities, only architecture is used": {
			dropCapabilities, []runtime.Object{namespaced(machine(gardencore.Capabilities{"architecture": {"arm64"}}))}, ""},
		"capability of an image": {dropCapabilities,
			[]runtime.Object{namespaced(own{MachineImages: []gardencore.MachineImage{{Name: "linux", Versions: []gardencore.MachineImageVersion{
				{CapabilityFlavors: []gardencore.MachineImageFlavor{{Capabilities: gardencore.Capabilities{"boot": {"uefi"}}}}}}}}})},
			"spec.machineCapabilities"},
	} {
		t.Run(name, func(t *testing.T) {
			wantField(t, runValidate(t, world(tc.users...), admission.Update, profileOf(tc.change), profileOf(func(*spec) {}), ann), tc.field)
		})
	}
}

func TestNamespacedCloudProfile(t *testing.T) {
	type spec = gardencore.NamespacedCloudProfileSpec
	profileOf := func(change func(*spec)) *gardencore.NamespacedCloudProfile {
		p := &gardencore.NamespacedCloudProfile{ObjectMeta: named(ns, "own"), Spec: spec{
			Parent:        gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "parent"},
			Kubernetes:    &gardencore.KubernetesSettings{Versions: []gardencore.ExpirableVersion{expirable("1.30.0")}},
			MachineImages: []gardencore.MachineImage{image("linux", "1.0")},
		}}
		change(&p.Spec)
		return p
	}
	parentOf := func(expires time.Duration, images ...gardencore.MachineImage) *gardencore.CloudProfile {
		version := gardencore.ExpirableVersion{Version: "1.30.0", ExpirationDate: &metav1.Time{Time: time.Now().Add(expires)}}
		return &gardencore.CloudProfile{ObjectMeta: named("", "parent"), Spec: gardencore.CloudProfileSpec{
			Kubernetes: gardencore.KubernetesSettings{Versions: []gardencore.ExpirableVersion{version}}, MachineImages: images}}
	}
	shoot := userOf("NamespacedCloudProfile", "own")
	dropKubernetes, dropImages := func(s *spec) { s.Kubernetes = nil }, func(s *spec) { s.MachineImages = nil }
	for name, tc := range map[string]struct {
		change func(*spec)
		parent *gardencore.CloudProfile
		shoot  *gardencore.Shoot
		field  string
	}{
		"unchanged":                               {func(*spec) {}, parentOf(-time.Hour), shoot, ""},
		"Kubernetes version, expired in parent":   {dropKubernetes, parentOf(-time.Hour), shoot, "spec.kubernetes.versions"},
		"Kubernetes version, offered by parent":   {dropKubernetes, parentOf(time.Hour), shoot, ""},
		"Kubernetes version, used by others only": {dropKubernetes, parentOf(-time.Hour), userOf("CloudProfile", "own"), ""},
		"image version, not in parent":            {dropImages, parentOf(-time.Hour), shoot, "spec.machineImages"},
		"image version, in parent":                {dropImages, parentOf(-time.Hour, image("linux", "1.0")), shoot, ""},
		"limit below what is there": {func(s *spec) { s.Limits = &gardencore.Limits{MaxNodesTotal: ptr.To[int32](1)} },
			parentOf(time.Hour), shoot, "spec.limits.maxNodesTotal"},
		"no parent": {func(s *spec) { s.Parent.Name = "gone" }, parentOf(time.Hour), shoot, "spec.parent.name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := runValidate(t, world(tc.parent, tc.shoot), admission.Update, profileOf(tc.change), profileOf(func(*spec) {}), ann)
			wantField(t, err, tc.field)
		})
	}
}
