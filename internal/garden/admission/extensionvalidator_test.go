package admission

import (
	"context"
	"slices"
	"strings"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

var buckets = []runtime.Object{&gardencore.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"},
	Spec: gardencore.BackupBucketSpec{Provider: gardencore.BackupBucketProvider{Type: "p"}}}}

func fullShoot() *gardencore.Shoot {
	return &gardencore.Shoot{Spec: gardencore.ShootSpec{
		Provider: gardencore.Provider{Type: "p", Workers: []gardencore.Worker{{
			CRI:     &gardencore.CRI{ContainerRuntimes: []gardencore.ContainerRuntime{{Type: "c"}}},
			Machine: gardencore.Machine{Image: &gardencore.ShootMachineImage{Name: "o"}},
			ControlPlane: &gardencore.WorkerControlPlane{
				Exposure: &gardencore.Exposure{Extension: &gardencore.ExtensionExposure{Type: ptr.To("x")}}},
		}, {}}},
		Networking: &gardencore.Networking{Type: ptr.To("n")},
		DNS: &gardencore.DNS{Providers: []gardencore.DNSProvider{{Type: ptr.To("d"), Primary: ptr.To(true)},
			{Type: ptr.To("secondary")}, {Type: ptr.To("unmanaged"), Primary: ptr.To(true)}}},
		Extensions: []gardencore.Extension{{Type: "e"}},
	}}
}

func fullSeed() *gardencore.Seed {
	return &gardencore.Seed{Spec: gardencore.SeedSpec{Provider: gardencore.SeedProvider{Type: "p"},
		Backup: &gardencore.Backup{Provider: "p"}, Ingress: &gardencore.Ingress{},
		DNS: gardencore.SeedDNS{Provider: &gardencore.SeedDNSProvider{Type: "d"}}, Extensions: []gardencore.Extension{{Type: "e"}}}}
}

// TestNeeds checks that an object is accepted if all extensions that it needs are registered, and refused with the
// right field if any one is missing.
func TestNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  string
		obj   runtime.Object
		needs map[string]string // "kind/type" -> field
	}{
		"BackupBucket": {"BackupBucket", &gardencore.BackupBucket{Spec: gardencore.BackupBucketSpec{
			Provider: gardencore.BackupBucketProvider{Type: "p"}}}, map[string]string{"BackupBucket/p": "spec.provider.type"}},
		"BackupEntry": {"BackupEntry", &gardencore.BackupEntry{Spec: gardencore.BackupEntrySpec{BucketName: "bucket"}},
			map[string]string{"BackupEntry/p": "spec.bucketName"}},
		"Seed": {"Seed", fullSeed(), map[string]string{"ControlPlane/p": "spec.provider.type",
			"BackupBucket/p": "spec.backup.provider", "BackupEntry/p": "spec.backup.provider",
			"DNSRecord/d": "spec.dns.provider.type", "Extension/e": "spec.extensions[0].type"}},
		"Shoot": {"Shoot", fullShoot(),
			map[string]string{"ControlPlane/p": "spec.provider.type", "Infrastructure/p": "spec.provider.type", "Worker/p": "spec.provider.type",
				"Network/n": "spec.networking.type", "DNSRecord/d": "spec.dns.providers[0].type", "Extension/e": "spec.extensions[0].type",
				"ContainerRuntime/c":        "spec.provider.workers[0].cri.containerRuntimes[0].type",
				"OperatingSystemConfig/o":   "spec.provider.workers[0].machine.image.name",
				"SelfHostedShootExposure/x": "spec.provider.workers[0].controlPlane.exposure.type"}},
		"Quota": {"Quota", &gardencore.Quota{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			registered := func(without string) []gardencore.ControllerResource {
				var resources []gardencore.ControllerResource
				for need := range tc.needs {
					kind, extensionType, _ := strings.Cut(need, "/")
					resource := gardencore.ControllerResource{Kind: kind, Type: extensionType}
					if need == without {
						resource.Primary = ptr.To(false)
					}
					resources = append(resources, resource)
				}
				return resources
			}
			if err := runValidateExtension(admission.Create, tc.kind, tc.obj, nil, registered("")); err != nil {
				t.Fatal(err)
			}
			for need, field := range tc.needs {
				err := runValidateExtension(admission.Create, tc.kind, tc.obj, nil, registered(need))
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), field+":") {
					t.Errorf("without %s: got %v, want %s", need, err, field)
				}
			}
			if err := runValidateExtension(admission.Update, tc.kind, tc.obj, tc.obj, nil); err != nil {
				t.Errorf("unchanged: %v", err)
			}
		})
	}
}

func TestExtensions(t *testing.T) {
	shoot := &gardencore.Shoot{Spec: gardencore.ShootSpec{Extensions: []gardencore.Extension{{Type: "e"}}}}
	for name, tc := range map[string]struct {
		kind     string
		obj      runtime.Object
		resource gardencore.ControllerResource
		ok       bool
	}{
		"workerless":         {"Shoot", shoot, gardencore.ControllerResource{WorkerlessSupported: ptr.To(true)}, true},
		"not for workerless": {"Shoot", shoot, gardencore.ControllerResource{}, false},
		"for seeds only": {"Shoot", shoot,
			gardencore.ControllerResource{WorkerlessSupported: ptr.To(true), ClusterCompatibility: []gardencore.ClusterType{"seed"}}, false},
		"for shoots among others": {"Shoot", shoot, gardencore.ControllerResource{WorkerlessSupported: ptr.To(true),
			ClusterCompatibility: []gardencore.ClusterType{"seed", "shoot"}}, true},
		"type of a missing bucket": {"BackupEntry", &gardencore.BackupEntry{Spec: gardencore.BackupEntrySpec{BucketName: "gone"}},
			gardencore.ControllerResource{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.resource.Kind, tc.resource.Type = "Extension", "e"
			if err := runValidateExtension(admission.Create, tc.kind, tc.obj, nil,
				[]gardencore.ControllerResource{tc.resource}); (err == nil) != tc.ok {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func runValidateExtension(operation admission.Operation, kind string, obj, old runtime.Object,
	resources []gardencore.ControllerResource) error {
	registration := &gardencore.ControllerRegistration{Spec: gardencore.ControllerRegistrationSpec{Resources: slices.Clone(resources)}}
	p := extensionPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("backupbuckets"): buckets, gardencore.Resource("controllerregistrations"): {registration},
	}}})
	a := admission.NewAttributesRecord(obj, old, gardencore.Kind(kind).WithVersion(""), "ns", "name",
		gardencore.Resource("things").WithVersion(""), "", operation, nil, false, nil)
	return p.(admission.ValidationInterface).Validate(context.Background(), a, nil)
}

// behind is a reader whose lists have nothing yet, until Fresh is called.
type behind struct{ plugin.Reader }

func (behind) List(context.Context, schema.GroupResource, string, fields.Selector) ([]runtime.Object, error) {
	return nil, nil
}

func (b behind) Fresh() plugin.Reader { return b.Reader }

// TestNewRegistration checks that an extension is known that was registered a moment before.
func TestNewRegistration(t *testing.T) {
	bucket := &gardencore.BackupBucket{Spec: gardencore.BackupBucketSpec{Provider: gardencore.BackupBucketProvider{Type: "p"}}}
	registration := &gardencore.ControllerRegistration{Spec: gardencore.ControllerRegistrationSpec{
		Resources: []gardencore.ControllerResource{{Kind: "BackupBucket", Type: "p"}}}}
	reader := behind{plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("controllerregistrations"): {registration}}}}
	p := extensionPlugin.New(plugin.Dependencies{Reader: reader}).(admission.ValidationInterface)
	err := p.Validate(t.Context(), admission.NewAttributesRecord(bucket, nil, gardencore.SchemeGroupVersion.WithKind("BackupBucket"), "", "b",
		gardencore.Resource("backupbuckets").WithVersion(""), "", admission.Create, nil, false, nil), nil)
	if err != nil {
		t.Error(err)
	}
}
