package corevalidation

import (
	"testing"

	featuregatetesting "k8s.io/component-base/featuregate/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

type lifecycle = []gardencore.LifecycleStage

func cloudProfileSpec() gardencore.CloudProfileSpec {
	imageVersion := gardencore.MachineImageVersion{
		ExpirableVersion: gardencore.ExpirableVersion{Version: "1.2.3", Classification: ptr.To(gardencore.ClassificationSupported)},
		CRI:              []gardencore.CRI{{Name: "containerd", ContainerRuntimes: []gardencore.ContainerRuntime{{Type: "gvisor"}}}},
		Architectures:    []string{"amd64"},
	}
	return gardencore.CloudProfileSpec{
		Type: "local",
		Kubernetes: gardencore.KubernetesSettings{
			Versions: []gardencore.ExpirableVersion{{Version: "1.34.1"}, {Version: "1.33.5", ExpirationDate: inDays(1)}}},
		MachineImages: []gardencore.MachineImage{
			{Name: "linux", UpdateStrategy: ptr.To(gardencore.UpdateStrategyMajor), Versions: []gardencore.MachineImageVersion{imageVersion}}},
		MachineTypes: []gardencore.MachineType{
			{Name: "small", CPU: *quantity("1"), GPU: *quantity("0"), Memory: *quantity("1Gi"), Architecture: ptr.To("amd64"),
				Storage: &gardencore.MachineTypeStorage{Class: "standard", StorageSize: quantity("10Gi")}}},
		VolumeTypes: []gardencore.VolumeType{{Name: "ssd", Class: "premium", MinSize: quantity("1Gi")}},
		Regions: []gardencore.Region{
			{Name: "here", Zones: []gardencore.AvailabilityZone{{Name: "a"}, {Name: "b"}}, Labels: map[string]string{"k": "v"}}},
		Bastion: &gardencore.Bastion{MachineType: &gardencore.BastionMachineType{Name: "small"},
			MachineImage: &gardencore.BastionMachineImage{Name: "linux", Version: ptr.To("1.2.3")}},
		Limits:       &gardencore.Limits{MaxNodesTotal: ptr.To[int32](10)},
		SeedSelector: &gardencore.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"k": "v"}}},
	}
}

func cloudProfile() *gardencore.CloudProfile {
	return &gardencore.CloudProfile{ObjectMeta: objectMeta("local", ""), Spec: cloudProfileSpec()}
}

// withCapabilities moves architectures to machine capabilities.
func withCapabilities(profile *gardencore.CloudProfile, architectures ...string) {
	spec := &profile.Spec
	spec.MachineCapabilities = []gardencore.CapabilityDefinition{{Name: "architecture", Values: architectures},
		{Name: "network", Values: gardencore.CapabilityValues{"fast", "slow"}}}
	spec.MachineTypes[0].Architecture = nil
	spec.MachineTypes[0].Capabilities = gardencore.Capabilities{"architecture": {"amd64"}}
	version := &spec.MachineImages[0].Versions[0]
	version.Architectures = nil
	version.CapabilityFlavors = []gardencore.MachineImageFlavor{
		{Capabilities: gardencore.Capabilities{"architecture": {"amd64"}, "network": {"fast"}}}}
}

func TestValidateCloudProfile(t *testing.T) {
	type p = gardencore.CloudProfile
	image := func(p *p) *gardencore.MachineImage { return &p.Spec.MachineImages[0] }
	version := func(p *p) *gardencore.MachineImageVersion { return &p.Spec.MachineImages[0].Versions[0] }
	machine := func(p *p) *gardencore.MachineType { return &p.Spec.MachineTypes[0] }
	runMutations(t, cloudProfile, ValidateCloudProfile, []mutation[p]{
		{"empty spec", func(p *p) { p.Spec = gardencore.CloudProfileSpec{} },
			[]string{"Required spec.type", "Required spec.kubernetes.versions", "Invalid spec.kubernetes.versions",
				"Required spec.machineImages", "Required spec.machineTypes", "Required spec.regions"}},
		{"name", func(p *p) { p.Name = "A" }, []string{"Invalid metadata.name"}},
		{"CA bundle", func(p *p) { p.Spec.CABundle = ptr.To("no") }, []string{"Invalid spec.caBundle"}},
		{"seed selector", func(p *p) { p.Spec.SeedSelector.MatchLabels["?"] = "" }, []string{"Invalid spec.seedSelector.matchLabels"}},
		{"limits", func(p *p) { p.Spec.Limits.MaxNodesTotal = ptr.To[int32](0) }, []string{"Invalid spec.limits.maxNodesTotal"}},

		{"latest version expires", func(p *p) { p.Spec.Kubernetes.Versions[0].ExpirationDate = inDays(1) },
			[]string{"Invalid spec.kubernetes.versions[].expirationDate"}},
		{"malformed version", func(p *p) { p.Spec.Kubernetes.Versions[1].Version = "1.33" }, []string{"Invalid spec.kubernetes.versions[1]"}},
		{"no version at all", func(p *p) { p.Spec.Kubernetes.Versions[1].Version = "x" },
			[]string{"Invalid spec.kubernetes.versions", "Invalid spec.kubernetes.versions[1]"}},
		{"repeated version", func(p *p) { p.Spec.Kubernetes.Versions[1].Version = "1.34.1" },
			[]string{"Duplicate spec.kubernetes.versions[1].version"}},
		{"unknown classification", func(p *p) {
			p.Spec.Kubernetes.Versions[0].Classification = ptr.To[gardencore.VersionClassification]("new")
		}, []string{"NotSupported spec.kubernetes.versions[0].classification"}},
		{"expired classification", func(p *p) { p.Spec.Kubernetes.Versions[1].Classification = ptr.To(gardencore.ClassificationExpired) },
			[]string{"Forbidden spec.kubernetes.versions[1].classification"}},
		{"two supported patches", func(p *p) {
			supported := ptr.To(gardencore.ClassificationSupported)
			p.Spec.Kubernetes.Versions = []gardencore.ExpirableVersion{{Version: "1.34.1", Classification: supported},
				{Version: "1.34.2", Classification: supported}, {Version: "1.33.1", Classification: supported}, {Version: "1.34.3"}}
		}, []string{"Forbidden spec.kubernetes.versions[0]", "Forbidden spec.kubernetes.versions[1]"}},
		{"lifecycle without its gate", func(p *p) {
			p.Spec.Kubernetes.Versions[0].Lifecycle = lifecycle{{Classification: "wrong"}}
		}, []string{"Forbidden spec.kubernetes.versions[0].lifecycle"}},

		{"image name", func(p *p) { image(p).Name = "" },
			[]string{"Required spec.machineImages[0].name", "Invalid spec.bastion.machineImage.name"}},
		{"image name with a prefix", func(p *p) { image(p).Name = "a/b"; p.Spec.Bastion = nil }, []string{"Invalid spec.machineImages[0].name"}},
		{"image without versions", func(p *p) { image(p).Versions = nil; p.Spec.Bastion = nil },
			[]string{"Required spec.machineImages[0].versions"}},
		{"image update strategy", func(p *p) { image(p).UpdateStrategy = nil }, []string{"Required spec.machineImages[0].updateStrategy"}},
		{"unknown image update strategy", func(p *p) { *image(p).UpdateStrategy = "x" },
			[]string{"NotSupported spec.machineImages[0].updateStrategy"}},
		{"repeated image", func(p *p) { p.Spec.MachineImages = append(p.Spec.MachineImages, p.Spec.MachineImages[0]) },
			[]string{"Duplicate spec.machineImages[1]", "Duplicate spec.machineImages[1].versions[0]"}},
		{"image version", func(p *p) { version(p).Version = ""; p.Spec.Bastion = nil }, []string{"Invalid spec.machineImages",
			"Required spec.machineImages[0].versions[0].version", "Invalid spec.machineImages[0].versions[0].version"}},
		{"image CRI", func(p *p) { version(p).CRI = nil }, []string{"Required spec.machineImages[0].versions[0].cri"}},
		{"unknown and repeated image CRI", func(p *p) { version(p).CRI = []gardencore.CRI{{Name: "docker"}, {Name: "docker"}} },
			[]string{"NotSupported spec.machineImages[0].versions[0].cri[0].name",
				"NotSupported spec.machineImages[0].versions[0].cri[1].name", "Duplicate spec.machineImages[0].versions[0].cri[1]"}},
		{"image container runtimes", func(p *p) {
			version(p).CRI[0].ContainerRuntimes = []gardencore.ContainerRuntime{{Type: "a"}, {Type: "a"}, {}}
		}, []string{
			"Duplicate spec.machineImages[0].versions[0].cri[0].containerRuntimes[1].type",
			"Invalid spec.machineImages[0].versions[0].cri[0].containerRuntimes[2].type"}},
		{"image architectures", func(p *p) { version(p).Architectures = nil; p.Spec.Bastion = nil },
			[]string{"Required spec.machineImages[0].versions[0].architectures"}},
		{"unknown image architecture", func(p *p) { version(p).Architectures = []string{"amd64", "x"} },
			[]string{"NotSupported spec.machineImages[0].versions[0].architectures[1]"}},
		{"image kubelet constraint", func(p *p) { version(p).KubeletVersionConstraint = ptr.To("?") },
			[]string{"Invalid spec.machineImages[0].versions[0].kubeletVersionConstraint"}},
		{"image in-place updates", func(p *p) { version(p).InPlaceUpdates = &gardencore.InPlaceUpdates{MinVersionForUpdate: ptr.To("?")} },
			[]string{"Invalid spec.machineImages[0].versions[0].minVersionForInPlaceUpdate"}},
		{"image capabilities", func(p *p) { version(p).CapabilityFlavors = []gardencore.MachineImageFlavor{{}} },
			[]string{"Forbidden spec.machineImages[0].versions[0].capabilityFlavors"}},

		{"machine name", func(p *p) { machine(p).Name = ""; p.Spec.Bastion = nil }, []string{"Required spec.machineTypes[0].name"}},
		{"repeated machine", func(p *p) { p.Spec.MachineTypes = append(p.Spec.MachineTypes, *machine(p)) },
			[]string{"Duplicate spec.machineTypes[1].name"}},
		{"machine quantities", func(p *p) {
			machine(p).CPU, machine(p).GPU, machine(p).Memory = *quantity("-1"), *quantity("-1"), *quantity("-1")
		}, []string{
			"Invalid spec.machineTypes[0].cpu", "Invalid spec.machineTypes[0].gpu", "Invalid spec.machineTypes[0].memory"}},
		{"machine architecture", func(p *p) { machine(p).Architecture = nil; p.Spec.Bastion = nil },
			[]string{"Required spec.machineTypes[0].architecture"}},
		{"unknown machine architecture", func(p *p) { machine(p).Architecture = ptr.To("x"); p.Spec.Bastion = nil },
			[]string{"NotSupported spec.machineTypes[0].architecture"}},
		{"machine capabilities", func(p *p) { machine(p).Capabilities = gardencore.Capabilities{"a": nil} },
			[]string{"Forbidden spec.machineTypes[0].capabilities"}},
		{"no machine storage size", func(p *p) { machine(p).Storage.StorageSize = nil }, []string{"Invalid spec.machineTypes[0].storage"}},
		{"two machine storage sizes", func(p *p) { machine(p).Storage.MinSize = quantity("1Gi") },
			[]string{"Invalid spec.machineTypes[0].storage"}},
		{"machine storage size", func(p *p) { machine(p).Storage.StorageSize = quantity("-1") },
			[]string{"Invalid spec.machineTypes[0].storage.size"}},
		{"machine storage minimum", func(p *p) { *machine(p).Storage = gardencore.MachineTypeStorage{MinSize: quantity("-1")} },
			[]string{"Invalid spec.machineTypes[0].storage.minSize"}},

		{"volume", func(p *p) { p.Spec.VolumeTypes[0] = gardencore.VolumeType{Class: "a/b", MinSize: quantity("-1")} },
			[]string{"Required spec.volumeTypes[0].name", "Invalid spec.volumeTypes[0].class", "Invalid spec.volumeTypes[0].minSize"}},
		{"repeated volume", func(p *p) {
			p.Spec.VolumeTypes = append(p.Spec.VolumeTypes, gardencore.VolumeType{Name: "ssd"}, gardencore.VolumeType{})
		}, []string{"Duplicate spec.volumeTypes[1].name"}},

		{"region", func(p *p) {
			p.Spec.Regions[0] = gardencore.Region{Zones: []gardencore.AvailabilityZone{{}, {Name: "a"}, {Name: "a"}},
				Labels: map[string]string{"?": ""}}
		}, []string{"Required spec.regions[0].name", "Required spec.regions[0].zones[0].name",
			"Duplicate spec.regions[0].zones[2].name", "Invalid spec.regions[0].labels"}},
		{"repeated region", func(p *p) { p.Spec.Regions = append(p.Spec.Regions, p.Spec.Regions[0]) },
			[]string{"Duplicate spec.regions[1].name"}},

		{"empty bastion", func(p *p) { p.Spec.Bastion = &gardencore.Bastion{} }, []string{"Invalid spec.bastion"}},
		{"bastion machine", func(p *p) { p.Spec.Bastion.MachineType.Name = "x" }, []string{"Invalid spec.bastion.machineType.name"}},
		{"bastion image", func(p *p) { p.Spec.Bastion.MachineImage.Name = "x" }, []string{"Invalid spec.bastion.machineImage.name"}},
		{"bastion image version", func(p *p) { p.Spec.Bastion.MachineImage.Version = ptr.To("x") },
			[]string{"Invalid spec.bastion.machineImage.version"}},
		{"bastion image not supported", func(p *p) { version(p).Classification = nil }, []string{"Invalid spec.bastion.machineImage.version"}},
		{"bastion image of another architecture",
			func(p *p) { p.Spec.Bastion.MachineImage.Version = nil; version(p).Architectures = []string{"arm64"} },
			[]string{"Invalid spec.bastion.machineImage.name"}},
	})
}

func TestValidateCloudProfileCapabilities(t *testing.T) {
	type p = gardencore.CloudProfile
	valid := func() *p {
		profile := cloudProfile()
		withCapabilities(profile, "amd64", "arm64")
		return profile
	}
	flavors := func(p *p) *[]gardencore.MachineImageFlavor {
		return &p.Spec.MachineImages[0].Versions[0].CapabilityFlavors
	}
	const versionPath = "spec.machineImages[0].versions[0]"
	runMutations(t, valid, ValidateCloudProfile, []mutation[p]{
		{"definitions", func(p *p) {
			p.Spec.MachineCapabilities = append(p.Spec.MachineCapabilities, gardencore.CapabilityDefinition{},
				gardencore.CapabilityDefinition{Name: "a/b", Values: gardencore.CapabilityValues{"", "a/b"}})
		}, []string{"Required spec.machineCapabilities", "Required spec.machineCapabilities[]", "Invalid spec.machineCapabilities",
			"Required spec.machineCapabilities.a/b[0]", "Invalid spec.machineCapabilities.a/b[1]"}},
		{"reserved definition", func(p *p) {
			p.Spec.MachineCapabilities = append(p.Spec.MachineCapabilities,
				gardencore.CapabilityDefinition{Name: "gardener-x", Values: gardencore.CapabilityValues{"a"}})
		}, []string{"Forbidden spec.machineCapabilities[2].name"}},
		{"repeated definition", func(p *p) {
			p.Spec.MachineCapabilities = append(p.Spec.MachineCapabilities, p.Spec.MachineCapabilities[1])
		}, []string{"Duplicate spec.machineCapabilities[2].name"}},
		{"unknown architecture", func(p *p) { p.Spec.MachineCapabilities[0].Values = append(p.Spec.MachineCapabilities[0].Values, "x") },
			[]string{"Invalid spec.machineCapabilities.architecture"}},
		{"no flavor", func(p *p) { *flavors(p) = nil }, []string{"Required " + versionPath + ".capabilityFlavors"}},
		{"no architecture in flavor", func(p *p) { delete((*flavors(p))[0].Capabilities, "architecture"); p.Spec.Bastion = nil },
			[]string{"Required " + versionPath + ".capabilityFlavors[0].architecture"}},
		{"two architectures in flavor", func(p *p) {
			(*flavors(p))[0].Capabilities["architecture"] = gardencore.CapabilityValues{"amd64", "arm64"}
		}, []string{"Invalid " + versionPath + ".capabilityFlavors[0].architecture"}},
		{"undefined in flavor", func(p *p) {
			(*flavors(p))[0].Capabilities["x"] = nil
			(*flavors(p))[0].Capabilities["network"] = gardencore.CapabilityValues{"fast", "x"}
		}, []string{
			"NotSupported " + versionPath + ".capabilityFlavors[0]", "NotSupported " + versionPath + ".capabilityFlavors[0].network[1]"}},
		{"architectures contradict the flavors", func(p *p) { p.Spec.MachineImages[0].Versions[0].Architectures = []string{"arm64"} },
			[]string{"Invalid " + versionPath + ".architectures"}},
		{"undefined in machine", func(p *p) {
			p.Spec.MachineTypes[0].Capabilities["x"] = nil
			p.Spec.MachineTypes[0].Capabilities["network"] = gardencore.CapabilityValues{"x"}
		}, []string{
			"NotSupported spec.machineTypes[0].capabilities", "NotSupported spec.machineTypes[0].capabilities.network[0]"}},
		{"machine architectures", func(p *p) {
			p.Spec.MachineTypes[0].Capabilities["architecture"] = gardencore.CapabilityValues{"amd64", "arm64"}
			p.Spec.Bastion = nil
		}, []string{"Invalid spec.machineTypes[0].capabilities.architecture"}},
		{"contradicting machine architecture", func(p *p) { p.Spec.MachineTypes[0].Architecture = ptr.To("arm64") },
			[]string{"Invalid spec.machineTypes[0].architecture"}},
	})
	t.Run("one architecture needs no flavors", func(t *testing.T) {
		profile := cloudProfile()
		withCapabilities(profile, "amd64")
		*flavors(profile) = nil
		wantErrors(t, ValidateCloudProfile(profile))
	})
	t.Run("gate", func(t *testing.T) {
		featuregatetesting.SetFeatureGateDuringTest(t, FeatureGate, CloudProfileCapabilities, false)
		wantErrors(t, ValidateCloudProfile(valid()), "Forbidden spec.machineCapabilities")
	})
}

func TestLifecycles(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, FeatureGate, VersionClassificationLifecycle, true)
	type p = gardencore.CloudProfile
	const first = "spec.kubernetes.versions[0]"
	with := func(stages lifecycle) func(*p) {
		return func(p *p) { p.Spec.Kubernetes.Versions[0].Lifecycle = stages }
	}
	runMutations(t, cloudProfile, ValidateCloudProfile, []mutation[p]{
		{"in order", with(lifecycle{{Classification: "preview"}, {Classification: "supported", StartTime: inDays(1)},
			{Classification: "deprecated", StartTime: inDays(2)}}), nil},
		{"latest expires", with(lifecycle{{Classification: "expired"}}), []string{"Invalid spec.kubernetes.versions[].lifecycle"}},
		{"with a classification", func(p *p) {
			p.Spec.Kubernetes.Versions[0].Classification = ptr.To(gardencore.ClassificationPreview)
			with(lifecycle{{Classification: "preview"}})(p)
		}, []string{"Forbidden " + first}},
		{"unknown and repeated stages", with(lifecycle{{Classification: "x"}, {Classification: "x", StartTime: inDays(1)}}), []string{
			"NotSupported " + first + ".lifecycle[0].classification", "NotSupported " + first + ".lifecycle[1].classification",
			"Duplicate " + first + ".lifecycle[1].classification"}},
		{"out of order", with(lifecycle{{Classification: "deprecated"}, {Classification: "supported", StartTime: inDays(1)}}),
			[]string{"Invalid " + first + ".lifecycle[1].classification"}},
		{"no start", with(lifecycle{{Classification: "preview"}, {Classification: "supported"}}),
			[]string{"Required " + first + ".lifecycle[1]"}},
		{"starts out of order", with(lifecycle{{Classification: "preview", StartTime: inDays(2)},
			{Classification: "supported", StartTime: inDays(1)}}), []string{"Invalid " + first + ".lifecycle[1]"}},
		{"supported together with a lifecycle", func(p *p) {
			p.Spec.Kubernetes.Versions = []gardencore.ExpirableVersion{
				{Version: "1.34.1", Classification: ptr.To(gardencore.ClassificationSupported)},
				{Version: "1.34.2", Lifecycle: lifecycle{{Classification: "preview"}, {Classification: "supported", StartTime: inDays(1)}}}}
		}, []string{"Forbidden spec.kubernetes.versions[0]"}},
	})
	t.Run("unavailable again", func(t *testing.T) {
		old, changed := cloudProfile(), cloudProfile()
		changed.Spec.Kubernetes.Versions[0].Lifecycle = lifecycle{{Classification: "preview", StartTime: inDays(1)}}
		wantErrors(t, ValidateCloudProfileUpdate(changed, old), "Forbidden spec.kubernetes.versions[0]")
	})
}

func TestValidateCloudProfileUpdate(t *testing.T) {
	type p = gardencore.CloudProfile
	runMutations(t, cloudProfile, after(cloudProfile, ValidateCloudProfileUpdate), []mutation[p]{
		{"raise limit", func(p *p) { *p.Spec.Limits.MaxNodesTotal++ }, nil},
		{"remove limit", func(p *p) { p.Spec.Limits = nil }, nil},
		{"lower limit", func(p *p) { *p.Spec.Limits.MaxNodesTotal-- }, []string{"Invalid spec.limits.maxNodesTotal"}},
	})
}

func TestValidateNamespacedCloudProfile(t *testing.T) {
	type p = gardencore.NamespacedCloudProfile
	valid := func() *p {
		return &p{ObjectMeta: objectMeta("mine", "garden-dev"), Spec: gardencore.NamespacedCloudProfileSpec{
			Parent:        gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			Kubernetes:    &gardencore.KubernetesSettings{Versions: []gardencore.ExpirableVersion{{Version: "1.33.5", ExpirationDate: inDays(9)}}},
			MachineImages: []gardencore.MachineImage{{Name: "linux"}},
			MachineTypes:  []gardencore.MachineType{{Name: "big", Capabilities: gardencore.Capabilities{"a": {"b"}}}},
		}}
	}
	runMutations(t, valid, ValidateNamespacedCloudProfile, []mutation[p]{
		{"parent", func(p *p) { p.Spec.Parent = gardencore.CloudProfileReference{} },
			[]string{"NotSupported spec.parent.kind", "Required spec.parent.name"}},
		{"classification", func(p *p) { p.Spec.Kubernetes.Versions[0].Classification = ptr.To(gardencore.ClassificationPreview) },
			[]string{"Forbidden spec.kubernetes.versions[0].classification"}},
		{"version", func(p *p) { p.Spec.Kubernetes.Versions[0].Version = "x" }, []string{"Invalid spec.kubernetes.versions[0]"}},
		{"image", func(p *p) { p.Spec.MachineImages[0].Versions = []gardencore.MachineImageVersion{{}} }, []string{"Invalid spec.machineImages",
			"Required spec.machineImages[0].versions[0].version", "Invalid spec.machineImages[0].versions[0].version"}},
		{"machine", func(p *p) { p.Spec.MachineTypes[0].Name = "" }, []string{"Required spec.machineTypes[0].name"}},
		{"volume", func(p *p) { p.Spec.VolumeTypes = []gardencore.VolumeType{{Name: "a"}} }, []string{"Required spec.volumeTypes[0].class"}},
		{"limits", func(p *p) { p.Spec.Limits = &gardencore.Limits{MaxNodesTotal: ptr.To[int32](-1)} },
			[]string{"Invalid spec.limits.maxNodesTotal"}},
		{"CA bundle", func(p *p) { p.Spec.CABundle = ptr.To("") }, []string{"Invalid spec.caBundle"}},
	})
	runMutations(t, valid, after(valid, ValidateNamespacedCloudProfileUpdate), []mutation[p]{
		{"parent", func(p *p) { p.Spec.Parent.Name = "other" }, []string{"Invalid spec.parent"}},
	})
	t.Run("status", func(t *testing.T) {
		spec := cloudProfileSpec()
		wantErrors(t, ValidateNamespacedCloudProfileStatus(&spec, testPath))
		spec.MachineImages[0].UpdateStrategy, spec.MachineTypes[0].Architecture, spec.VolumeTypes[0].Class = nil, nil, ""
		wantErrors(t, ValidateNamespacedCloudProfileStatus(&spec, testPath), "Required p.machineImages[0].updateStrategy",
			"Required p.machineTypes[0].architecture", "Required p.volumeTypes[0].class")
		wantErrors(t, ValidateNamespacedCloudProfileStatus(&gardencore.CloudProfileSpec{}, testPath),
			"Required p.kubernetes.versions", "Invalid p.kubernetes.versions")
	})
}
