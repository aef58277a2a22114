package admission

import (
	"context"
	"maps"
	"slices"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

var reader = plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
	gardencore.Resource("backupbuckets"): {&gardencore.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"},
		Spec: gardencore.BackupBucketSpec{Provider: gardencore.BackupBucketProvider{Type: "s3"}}}},
	gardencore.Resource("cloudprofiles"): {
		&gardencore.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "profile"}, Spec: gardencore.CloudProfileSpec{Type: "local"}}},
	gardencore.Resource("controllerregistrations"): {
		&gardencore.ControllerRegistration{Spec: gardencore.ControllerRegistrationSpec{Resources: []gardencore.ControllerResource{
			{Kind: "Extension", Type: "for-shoots", AutoEnable: []gardencore.ClusterType{"shoot"}},
			{Kind: "Extension", Type: "for-workerless", AutoEnable: []gardencore.ClusterType{"shoot"}, WorkerlessSupported: ptr.To(true)},
			{Kind: "Extension", Type: "for-seeds", AutoEnable: []gardencore.ClusterType{"seed"}},
			{Kind: "Extension", Type: "not-enabled"},
		}}}},
}}

func TestLabels(t *testing.T) {
	pool := gardencore.Worker{CRI: &gardencore.CRI{ContainerRuntimes: []gardencore.ContainerRuntime{{Type: "gvisor"}}},
		Machine: gardencore.Machine{Image: &gardencore.ShootMachineImage{Name: "linux"}},
		ControlPlane: &gardencore.WorkerControlPlane{
			Exposure: &gardencore.Exposure{Extension: &gardencore.ExtensionExposure{Type: ptr.To("vip")}}}}
	shoot := gardencore.ShootSpec{Provider: gardencore.Provider{Type: "local", Workers: []gardencore.Worker{pool,
		{ControlPlane: &gardencore.WorkerControlPlane{Exposure: &gardencore.Exposure{Extension: &gardencore.ExtensionExposure{}}}}}},
		DNS:        &gardencore.DNS{Providers: []gardencore.DNSProvider{{Type: ptr.To("route53")}, {Type: ptr.To("unmanaged")}, {}}},
		Networking: &gardencore.Networking{Type: ptr.To("calico")},
		Extensions: []gardencore.Extension{{Type: "mine"}, {Type: "for-shoots", Disabled: ptr.To(true)}}}
	workerless := gardencore.ShootSpec{Provider: gardencore.Provider{Type: "local"}}
	seed := gardencore.SeedSpec{Provider: gardencore.SeedProvider{Type: "local"}, Backup: &gardencore.Backup{Provider: "s3"},
		DNS: gardencore.SeedDNS{Provider: &gardencore.SeedDNSProvider{Type: "route53"}}}
	const provider = "provider.extensions.gardener.cloud/"
	for name, tc := range map[string]struct {
		kind schema.GroupKind
		obj  runtime.Object
		want []string
	}{
		"BackupBucket": {gardencore.Kind("BackupBucket"), &gardencore.BackupBucket{
			Spec: gardencore.BackupBucketSpec{Provider: gardencore.BackupBucketProvider{Type: "s3"}}}, []string{provider + "s3"}},
		"BackupEntry": {gardencore.Kind("BackupEntry"),
			&gardencore.BackupEntry{Spec: gardencore.BackupEntrySpec{BucketName: "bucket"}}, []string{provider + "s3"}},
		"CloudProfile": {gardencore.Kind("CloudProfile"),
			&gardencore.CloudProfile{Spec: gardencore.CloudProfileSpec{Type: "local"}}, []string{provider + "local"}},
		"NamespacedCloudProfile": {gardencore.Kind("NamespacedCloudProfile"), namespaced("CloudProfile", "profile"),
			[]string{provider + "local"}},
		"SecretBinding": {gardencore.Kind("SecretBinding"),
			&gardencore.SecretBinding{Provider: &gardencore.SecretBindingProvider{Type: "a,b"}}, []string{provider + "a", provider + "b"}},
		"no provider": {gardencore.Kind("SecretBinding"), &gardencore.SecretBinding{}, nil},
		"CredentialsBinding": {security.Kind("CredentialsBinding"),
			&security.CredentialsBinding{Provider: security.CredentialsBindingProvider{Type: "a"}}, []string{provider + "a"}},
		"WorkloadIdentity": {security.Kind("WorkloadIdentity"), &security.WorkloadIdentity{
			Spec: security.WorkloadIdentitySpec{TargetSystem: security.TargetSystem{Type: "a"}}}, []string{provider + "a"}},
		"Seed": {gardencore.Kind("Seed"), &gardencore.Seed{Spec: seed}, []string{
			"dnsrecord.extensions.gardener.cloud/route53", "extensions.extensions.gardener.cloud/for-seeds", provider + "local", provider + "s3"}},
		"Shoot": {gardencore.Kind("Shoot"), &gardencore.Shoot{Spec: shoot}, []string{
			"containerruntime.extensions.gardener.cloud/gvisor", "dnsrecord.extensions.gardener.cloud/route53",
			"extensions.extensions.gardener.cloud/for-workerless", "extensions.extensions.gardener.cloud/mine",
			"networking.extensions.gardener.cloud/calico",
			"operatingsystemconfig.extensions.gardener.cloud/linux", provider + "local", "selfhostedshootexposure.extensions.gardener.cloud/vip"}},
		"workerless": {gardencore.Kind("Shoot"), &gardencore.Shoot{Spec: workerless},
			[]string{"extensions.extensions.gardener.cloud/for-workerless", provider + "local"}},
		"Quota": {gardencore.Kind("Quota"), &gardencore.Quota{}, []string{provider + "stale"}}, // not handled
	} {
		t.Run(name, func(t *testing.T) {
			obj, err := meta.Accessor(tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			obj.SetLabels(map[string]string{"mine": "x", provider + "stale": "true"})
			if err := runAdmit(tc.kind, tc.obj); err != nil {
				t.Fatal(err)
			}
			labels := obj.GetLabels()
			delete(labels, "mine")
			if got := slices.Sorted(maps.Keys(labels)); !slices.Equal(got, tc.want) {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		kind string
		obj  runtime.Object
		is   func(error) bool
	}{
		"bucket":      {"BackupEntry", &gardencore.BackupEntry{Spec: gardencore.BackupEntrySpec{BucketName: "gone"}}, apierrors.IsForbidden},
		"parent":      {"NamespacedCloudProfile", namespaced("CloudProfile", "gone"), apierrors.IsForbidden},
		"parent kind": {"NamespacedCloudProfile", namespaced("NamespacedCloudProfile", "profile"), apierrors.IsBadRequest},
		"object":      {"Shoot", &gardencore.Seed{}, apierrors.IsBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if err := runAdmit(gardencore.Kind(tc.kind), tc.obj); !tc.is(err) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func namespaced(kind, name string) *gardencore.NamespacedCloudProfile {
	return &gardencore.NamespacedCloudProfile{
		Spec: gardencore.NamespacedCloudProfileSpec{Parent: gardencore.CloudProfileReference{Kind: kind, Name: name}}}
}

func runAdmit(kind schema.GroupKind, obj runtime.Object) error {
	p := extensionLabelsPlugin.New(plugin.Dependencies{Reader: reader})
	a := admission.NewAttributesRecord(obj, nil, kind.WithVersion(""), "ns", "name",
		schema.GroupVersionResource{Resource: "things"}, "", admission.Create, nil, false, nil)
	return p.(admission.MutationInterface).Admit(context.Background(), a, nil)
}
