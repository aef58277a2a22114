package namespacedcloudprofilevalidator

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

var (
	now    = time.Now()
	past   = &metav1.Time{Time: now.Add(-time.Hour)}
	future = &metav1.Time{Time: now.Add(time.Hour)}
)

func version(name string, expires *metav1.Time, change func(*gardencore.MachineImageVersion)) gardencore.MachineImageVersion {
	v := gardencore.MachineImageVersion{ExpirableVersion: gardencore.ExpirableVersion{Version: name, ExpirationDate: expires}}
	if change != nil {
		change(&v)
	}
	return v
}

func full(v *gardencore.MachineImageVersion) {
	v.CRI = []gardencore.CRI{{Name: "containerd"}}
	v.Architectures = []string{"amd64"}
}

func image(name string, versions ...gardencore.MachineImageVersion) gardencore.MachineImage {
	return gardencore.MachineImage{Name: name, Versions: versions, UpdateStrategy: new(gardencore.UpdateStrategyMajor)}
}

func images(images ...gardencore.MachineImage) gardencore.NamespacedCloudProfileSpec {
	return gardencore.NamespacedCloudProfileSpec{MachineImages: images}
}

func kubernetes(versions ...gardencore.ExpirableVersion) gardencore.NamespacedCloudProfileSpec {
	return gardencore.NamespacedCloudProfileSpec{Kubernetes: &gardencore.KubernetesSettings{Versions: versions}}
}

func parent(definitions ...gardencore.CapabilityDefinition) *gardencore.CloudProfile {
	p := &gardencore.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "parent"}, Spec: gardencore.CloudProfileSpec{
		Kubernetes:          gardencore.KubernetesSettings{Versions: []gardencore.ExpirableVersion{{Version: "1.33.0"}, {Version: "1.32.0"}}},
		MachineImages:       []gardencore.MachineImage{image("linux", version("1.0.0", nil, full))},
		MachineTypes:        []gardencore.MachineType{machineType("small", new("amd64"))},
		MachineCapabilities: definitions,
	}}
	return p
}

func machineType(name string, architecture *string) gardencore.MachineType {
	return gardencore.MachineType{Name: name, Architecture: architecture, CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi")}
}

func fields(err error) []string {
	var status apierrors.APIStatus
	var found []string
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			found = append(found, cause.Field)
		}
	}
	slices.Sort(found)
	return found
}

func TestValidate(t *testing.T) {
	const first = "spec.machineImages[0].versions[0]"
	architectures := gardencore.CapabilityDefinition{Name: "architecture", Values: []string{"amd64", "arm64"}}
	own := func(v *gardencore.MachineImageVersion) { full(v); v.KubeletVersionConstraint = new(">= 1.2") }
	otherStrategy := image("linux")
	otherStrategy.UpdateStrategy = new(gardencore.UpdateStrategyMinor)

	for name, test := range map[string]struct {
		definitions []gardencore.CapabilityDefinition
		spec        gardencore.NamespacedCloudProfileSpec
		old         *gardencore.NamespacedCloudProfileSpec // nil for a create request
		expired     bool                                   // the old profile's status already has the past expiration dates
		want        []string
	}{
		"nothing":                         {},
		"Kubernetes version lives longer": {spec: kubernetes(gardencore.ExpirableVersion{Version: "1.32.0", ExpirationDate: future})},
		"unknown Kubernetes version without a date": {spec: kubernetes(gardencore.ExpirableVersion{Version: "1.0.0"}),
			want: []string{"spec.kubernetes.versions[0].expirationDate", "spec.kubernetes.versions[0].version"}},
		"Kubernetes version expires in the past": {spec: kubernetes(gardencore.ExpirableVersion{Version: "1.32.0", ExpirationDate: past}),
			old: new(kubernetes()), want: []string{"spec.kubernetes.versions[0].expirationDate"}},
		"latest Kubernetes version expires": {spec: kubernetes(gardencore.ExpirableVersion{Version: "1.33.0", ExpirationDate: future}),
			want: []string{"status.cloudProfileSpec.kubernetes.versions[].expirationDate"}},
		"image version lives longer": {spec: images(image("linux", version("1.0.0", future, nil)))},
		"image version says more": {spec: images(image("linux", version("1.0.0", nil, full))),
			want: []string{first + ".architectures", first + ".cri", first + ".expirationDate"}},
		"image version expires in the past": {spec: images(image("linux", version("1.0.0", past, nil))),
			old: new(images()), want: []string{first + ".expirationDate"}},
		"image version has expired": {spec: images(image("linux", version("1.0.0", past, nil)),
			image("b", version("1.0.0", nil, full))), old: new(images(image("linux", version("1.0.0", past, nil)))), expired: true},
		"image version is older than the parent's": {spec: images(image("linux", version("1.0.0", future, own))),
			old: new(images(image("linux", version("1.0.0", nil, own))))},
		"and changes": {spec: images(image("linux", version("1.0.0", future, full))),
			old: new(images(image("linux", version("1.0.0", nil, own)))), want: []string{first}},
		"update strategy changes": {spec: images(otherStrategy), old: new(images(image("linux"))),
			want: []string{"spec.machineImages[0].updateStrategy"}},
		"new image version":              {spec: images(image("linux", version("2.0.0", nil, full)))},
		"new image version is not valid": {spec: images(image("linux", version("x", nil, full))), want: []string{first + ".version"}},
		"new image version is not complete": {spec: images(image("linux", version("2.0.0", nil, nil))),
			want: []string{"status.cloudProfileSpec.machineImages[0].versions[1].cri"}},
		"new image": {spec: images(image("own", version("2.0.0", nil, full)))},
		"new image is not complete": {spec: images(image("own", version("2.0.0", nil, nil))),
			want: []string{first + ".architectures", first + ".cri"}},
		"new image without versions": {spec: images(image("own")), want: []string{"spec.machineImages[0].versions"}},
		"new image with unknown capability": {
			definitions: []gardencore.CapabilityDefinition{{Name: "architecture", Values: []string{"amd64"}}}, spec: images(
				image("own", version("2.0.0", nil, func(v *gardencore.MachineImageVersion) { full(v); v.Architectures = []string{"arm64"} }))),
			want: []string{first + ".architectures[0]", first + ".capabilityFlavors[0].architecture[0]"}},
		"broken parent": {definitions: []gardencore.CapabilityDefinition{architectures},
			want: []string{"status.cloudProfileSpec.machineImages[0].versions[0].capabilityFlavors"}},
	} {
		t.Run(name, func(t *testing.T) {
			cloudProfile := parent(test.definitions...)
			if len(test.definitions) == 1 && len(test.definitions[0].Values) == 1 {
				cloudProfile.Spec.MachineImages[0].Versions[0].CapabilityFlavors = []gardencore.MachineImageFlavor{
					{Capabilities: gardencore.Capabilities{"architecture": {"amd64"}}}}
			}
			op, old := admission.Create, &gardencore.NamespacedCloudProfile{}
			if test.old != nil {
				op = admission.Update
				old.Spec = *test.old
				old.Spec.Parent.Name = "parent"
				if test.expired {
					old.Status.CloudProfileSpec = *Merge(&old.Spec, &cloudProfile.Spec)
				}
			}
			test.spec.Parent.Name = "parent"
			err := runValidate(t, cloudProfile, op, &gardencore.NamespacedCloudProfile{Spec: test.spec}, old)
			if got := fields(err); !slices.Equal(got, test.want) || err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("got %v, want errors about %v", err, test.want)
			}
		})
	}
}

func runValidate(t *testing.T, parent *gardencore.CloudProfile, op admission.Operation, profile,
	old *gardencore.NamespacedCloudProfile) error {
	t.Helper()
	p := Factory.New(plugin.Dependencies{Clock: testclock.NewFakePassiveClock(now),
		Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
			gardencore.Resource("cloudprofiles"): {parent},
		}}})
	before := profile.DeepCopy()
	err := p.(admission.ValidationInterface).Validate(context.Background(),
		admission.NewAttributesRecord(profile, old, gardencore.Kind("NamespacedCloudProfile").WithVersion("v1beta1"), "ns",
			"p", gardencore.Resource("namespacedcloudprofiles").WithVersion("v1beta1"), "", op, nil, false, nil), nil)
	if !reflect.DeepEqual(before, profile) {
		t.Error("the profile was changed")
	}
	return err
}

func TestValidateParent(t *testing.T) {
	profile := &gardencore.NamespacedCloudProfile{Spec: kubernetes(gardencore.ExpirableVersion{Version: "x"})}
	profile.Spec.Parent.Name = "none"
	if err := runValidate(t, parent(), admission.Create, profile, nil); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v, want BadRequest", err)
	}
	if err := runValidate(t, parent(), admission.Update, profile, profile.DeepCopy()); err != nil {
		t.Errorf("got %v for an unchanged profile", err)
	}
	relabelled := profile.DeepCopy()
	relabelled.Labels = map[string]string{"a": "b"}
	if err := runValidate(t, parent(), admission.Update, relabelled, profile); err == nil {
		t.Error("got no error for changed metadata")
	}
	relabelled.DeletionTimestamp = past
	if err := runValidate(t, parent(), admission.Update, relabelled, profile); err != nil {
		t.Errorf("got %v for a profile that is being deleted", err)
	}
}

func TestMerge(t *testing.T) {
	base := parent()
	base.Spec.CABundle, base.Spec.Limits = new("a"), &gardencore.Limits{MaxNodesTotal: new(int32(9))}
	own := images(image("linux", version("1.0.0", future, nil), version("2.0.0", nil, full)), image("own", version("1.0.0", nil, nil)))
	own.Kubernetes = &gardencore.KubernetesSettings{
		Versions: []gardencore.ExpirableVersion{{Version: "1.32.0", ExpirationDate: future}, {Version: "9.9.9"}}}
	own.MachineTypes = []gardencore.MachineType{machineType("big", nil)}
	own.VolumeTypes = []gardencore.VolumeType{{Name: "fast"}}
	own.CABundle, own.Limits = new("b"), &gardencore.Limits{MaxNodesTotal: new(int32(5))}

	want := parent()
	want.Spec.CABundle, want.Spec.Limits = new("ab"), own.Limits
	want.Spec.Kubernetes.Versions[1].ExpirationDate = future
	want.Spec.MachineImages = []gardencore.MachineImage{
		image("linux", version("1.0.0", future, full), version("2.0.0", nil, full)),
		image("own", version("1.0.0", nil, func(v *gardencore.MachineImageVersion) { v.Architectures = []string{"amd64"} })),
	}
	want.Spec.MachineTypes = append(want.Spec.MachineTypes, machineType("big", new("amd64")))
	want.Spec.VolumeTypes = own.VolumeTypes
	if got := Merge(&own, &base.Spec); !reflect.DeepEqual(got, &want.Spec) {
		t.Errorf("got  %+v\nwant %+v", got, want.Spec)
	}
}

func TestInFormatOf(t *testing.T) {
	flavors := func(values ...string) (all []gardencore.MachineImageFlavor) {
		for _, value := range values {
			all = append(all, gardencore.MachineImageFlavor{Capabilities: gardencore.Capabilities{"architecture": {value}}})
		}
		return all
	}
	listed := images(
		image("own", version("1.0.0", nil, func(v *gardencore.MachineImageVersion) { v.Architectures = []string{"amd64", "arm64"} })))
	listed.MachineTypes = []gardencore.MachineType{machineType("m", new("arm64"))}
	capable := images(image("own",
		version("1.0.0", nil, func(v *gardencore.MachineImageVersion) { v.CapabilityFlavors = flavors("arm64", "amd64") })))
	capable.MachineTypes = []gardencore.MachineType{{Name: "m", Capabilities: gardencore.Capabilities{"architecture": {"arm64"}}}}

	got := ConvertToParentFormat(&listed, []gardencore.CapabilityDefinition{{Name: "architecture", Values: []string{"amd64", "arm64"}}})
	if v := got.MachineImages[0].Versions[0]; !reflect.DeepEqual(v.CapabilityFlavors, flavors("amd64", "arm64")) ||
		!reflect.DeepEqual(got.MachineTypes[0].Capabilities, capable.MachineTypes[0].Capabilities) {
		t.Errorf("got %+v for a parent with capabilities", got)
	}
	got = ConvertToParentFormat(&capable, nil)
	if v := got.MachineImages[0].Versions[0]; !slices.Equal(v.Architectures, []string{"amd64", "arm64"}) ||
		v.CapabilityFlavors != nil || *got.MachineTypes[0].Architecture != "arm64" || got.MachineTypes[0].Capabilities != nil {
		t.Errorf("got %+v for a parent without capabilities", got)
	}
}
