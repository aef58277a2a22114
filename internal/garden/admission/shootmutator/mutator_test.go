package shootmutator

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

const infrastructure, records = "deployInfrastructure", "deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"

// newPlugin returns a plugin with the CloudProfile "profile" and the seeds "ipv4" and "ipv6", whose default networks
// for Shoots are of that family, and "plain", which has no default networks.
func newPlugin(t *testing.T) admission.MutationInterface {
	t.Helper()
	seed := func(name string, defaults *gardencore.ShootNetworks) *gardencore.Seed {
		seed := &gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
		seed.Spec.Networks.ShootDefaults = defaults
		return seed
	}
	version := func(v string, class gardencore.VersionClassification) gardencore.ExpirableVersion {
		return gardencore.ExpirableVersion{Version: v, Classification: &class}
	}
	profile := &gardencore.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "profile"}, Spec: gardencore.CloudProfileSpec{
		Kubernetes: gardencore.KubernetesSettings{Versions: []gardencore.ExpirableVersion{
			version("1.32.1", gardencore.ClassificationSupported), version("1.33.2", gardencore.ClassificationSupported),
			version("1.34.0", gardencore.ClassificationPreview)}},
		MachineTypes: []gardencore.MachineType{{Name: "intel", Architecture: new("amd64")}, {Name: "arm", Architecture: new("arm64")}},
		MachineImages: []gardencore.MachineImage{
			{Name: "linux", Versions: []gardencore.MachineImageVersion{
				{ExpirableVersion: version("1.0.0", gardencore.ClassificationSupported), Architectures: []string{"amd64"}},
				{ExpirableVersion: version("1.1.0", gardencore.ClassificationSupported), Architectures: []string{"amd64", "arm64"}},
				{ExpirableVersion: version("2.0.0", gardencore.ClassificationPreview), Architectures: []string{"amd64"}},
			}},
		},
	}}
	p := Factory.New(plugin.Dependencies{Clock: testclock.NewFakePassiveClock(time.Now()),
		Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
			gardencore.Resource("cloudprofiles"): {profile},
			gardencore.Resource("seeds"): {
				seed("plain", nil), seed("ipv4", &gardencore.ShootNetworks{Pods: new("10.1.0.0/16"), Services: new("10.2.0.0/16")}),
				seed("ipv6", &gardencore.ShootNetworks{Pods: new("2001:db8:1::/48"), Services: new("2001:db8:2::/108")})},
		}}})
	return p.(admission.MutationInterface)
}

func newShoot(changes ...func(*gardencore.Shoot)) *gardencore.Shoot {
	shoot := &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-it", Name: "shoot"}}
	shoot.Spec.CloudProfile = &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "profile"}
	shoot.Spec.Kubernetes.Version = "1.32.1"
	shoot.Spec.Networking = &gardencore.Networking{IPFamilies: []gardencore.IPFamily{gardencore.IPFamilyIPv4}}
	shoot.Spec.Provider.WorkersSettings = &gardencore.WorkersSettings{SSHAccess: &gardencore.SSHAccess{Enabled: true}}
	shoot.Spec.Provider.Workers = []gardencore.Worker{{Name: "pool", Machine: gardencore.Machine{Type: "intel"}}}
	for _, change := range changes {
		change(shoot)
	}
	return shoot
}

// admit sends a create request for the Shoot, or an update request if old is not nil.
func runAdmit(t *testing.T, shoot, old *gardencore.Shoot) error {
	t.Helper()
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	return newPlugin(t).Admit(context.Background(),
		admission.NewAttributesRecord(shoot, before, gardencore.Kind("Shoot").WithVersion("v1beta1"), shoot.Namespace, shoot.Name,
			gardencore.Resource("shoots").WithVersion("v1beta1"), "", operation, nil, false, &user.DefaultInfo{Name: "joe"}), nil)
}

func TestCreate(t *testing.T) {
	shoot := newShoot()
	if err := runAdmit(t, shoot, nil); err != nil {
		t.Fatal(err)
	}
	worker := shoot.Spec.Provider.Workers[0].Machine
	for what, got := range map[string][2]string{
		"creator": {shoot.Annotations[v1beta1constants.GardenCreatedBy], "joe"},
		"tasks":   {shoot.Annotations[v1beta1constants.ShootTasks], infrastructure + "," + records},
		"rotation": {shoot.Spec.Maintenance.AutoRotation.Credentials.ETCDEncryptionKey.RotationPeriod.Duration.String(),
			v1beta1constants.ETCDEncryptionKeyAutoRotationPeriod.String()},
		"architecture": {ptr.Deref(worker.Architecture, ""), "amd64"},
		"image":        {worker.Image.Name + "@" + worker.Image.Version, "linux@1.1.0"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %q, want %q", what, got[0], got[1])
		}
	}
	own := newShoot(func(s *gardencore.Shoot) {
		s.Spec.Maintenance = &gardencore.Maintenance{AutoRotation: &gardencore.MaintenanceAutoRotation{
			Credentials: &gardencore.MaintenanceCredentialsAutoRotation{ETCDEncryptionKey: &gardencore.MaintenanceRotationConfig{}}}}
	})
	if err := runAdmit(t, own, nil); err != nil || own.Spec.Maintenance.AutoRotation.Credentials.ETCDEncryptionKey.RotationPeriod != nil {
		t.Errorf("error %v; what the user says about rotation has to stay", err)
	}
}

func TestTasks(t *testing.T) {
	annotate := func(key, value string) func(*gardencore.Shoot) {
		return func(s *gardencore.Shoot) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) }
	}
	asleep := func(s *gardencore.Shoot) { s.Spec.Hibernation = &gardencore.Hibernation{Enabled: new(true)} }
	for name, test := range map[string]struct {
		before, after func(*gardencore.Shoot)
		want          string
	}{
		"nothing":       {},
		"wakes up":      {before: asleep, want: infrastructure + "," + records},
		"goes to sleep": {after: asleep},
		"infrastructure": {after: func(s *gardencore.Shoot) { s.Spec.Provider.InfrastructureConfig = &runtime.RawExtension{} },
			want: infrastructure},
		"another family": {after: func(s *gardencore.Shoot) {
			s.Spec.Networking.IPFamilies = append(s.Spec.Networking.IPFamilies, gardencore.IPFamilyIPv6)
		}, want: infrastructure},
		"SSH off":         {after: func(s *gardencore.Shoot) { s.Spec.Provider.WorkersSettings.SSHAccess.Enabled = false }, want: infrastructure},
		"SSH left out":    {after: func(s *gardencore.Shoot) { s.Spec.Provider.WorkersSettings = nil }, want: infrastructure},
		"DNS":             {after: func(s *gardencore.Shoot) { s.Spec.DNS = &gardencore.DNS{} }, want: records},
		"new SSH keys":    {after: annotate(v1beta1constants.GardenerOperation, "reconcile; rotate-ssh-keypair"), want: infrastructure},
		"all credentials": {after: annotate(v1beta1constants.GardenerOperation, "rotate-credentials-start"), want: infrastructure},
		"has some": {after: func(s *gardencore.Shoot) {
			annotate(v1beta1constants.ShootTasks, "x,deployDNSRecordExternal")(s)
			s.Spec.DNS = &gardencore.DNS{}
		}, want: "x,deployDNSRecordExternal,deployDNSRecordInternal,deployDNSRecordIngress"},
	} {
		t.Run(name, func(t *testing.T) {
			nothing := func(*gardencore.Shoot) {}
			if test.before == nil {
				test.before = nothing
			}
			if test.after == nil {
				test.after = nothing
			}
			shoot := newShoot(test.after)
			if err := runAdmit(t, shoot, newShoot(test.before)); err != nil {
				t.Fatal(err)
			}
			if got := shoot.Annotations[v1beta1constants.ShootTasks]; got != test.want {
				t.Errorf("tasks %q, want %q", got, test.want)
			}
			if _, ok := shoot.Annotations[v1beta1constants.GardenCreatedBy]; ok || shoot.Spec.Maintenance != nil {
				t.Error("what new Shoots get is not for others")
			}
		})
	}
}

func TestRetry(t *testing.T) {
	for name, test := range map[string]struct {
		state    gardencore.LastOperationState
		confined bool
		region   string
		want     string
	}{
		"failed and changed": {gardencore.LastOperationStateFailed, true, "r", "true"},
		"unchanged":          {gardencore.LastOperationStateFailed, true, "", ""},
		"not failed":         {gardencore.LastOperationStateError, true, "r", ""},
		"rolls out at once":  {gardencore.LastOperationStateFailed, false, "r", ""},
	} {
		base := func(s *gardencore.Shoot) {
			s.Status.LastOperation = &gardencore.LastOperation{State: test.state}
			s.Spec.Maintenance = &gardencore.Maintenance{ConfineSpecUpdateRollout: &test.confined}
		}
		shoot := newShoot(base, func(s *gardencore.Shoot) { s.Spec.Region = test.region })
		err := runAdmit(t, shoot, newShoot(base))
		if err != nil || shoot.Annotations[v1beta1constants.FailedShootNeedsRetryOperation] != test.want {
			t.Errorf("%s: error %v, annotations %v", name, err, shoot.Annotations)
		}
	}
}

func TestNetworks(t *testing.T) {
	for name, test := range map[string]struct {
		seed           string
		families       []gardencore.IPFamily
		services       *string
		workerless     bool
		pods, expected string // expected is for the services
	}{
		"of the seed": {seed: "ipv4", families: []gardencore.IPFamily{"IPv4"}, pods: "^10.1.0.0/16$", expected: "^10.2.0.0/16$"},
		"own": {seed: "ipv4", families: []gardencore.IPFamily{"IPv4"}, services: new("10.9.0.0/16"),
			pods: "^10.1.0.0/16$", expected: "^10.9.0.0/16$"},
		"another family": {seed: "ipv6", families: []gardencore.IPFamily{"IPv4"}, pods: "^$", expected: "^$"},
		"both families": {seed: "ipv6", families: []gardencore.IPFamily{"IPv4", "IPv6"}, pods: "^2001:db8:1::/48$",
			expected: "^2001:db8:2::/108$"},
		"nothing said": {seed: "plain", families: []gardencore.IPFamily{"IPv6"}, pods: "^$", expected: "^$"},
		"workerless":   {seed: "ipv4", families: []gardencore.IPFamily{"IPv4"}, workerless: true, pods: "^$", expected: "^10.2.0.0/16$"},
		"workerless with IPv6": {seed: "ipv4", families: []gardencore.IPFamily{"IPv6"}, workerless: true, pods: "^$",
			expected: "^fd[0-9a-f]{2}:[0-9a-f]{4}:[0-9a-f]{4}::/112$"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := newShoot(func(s *gardencore.Shoot) {
				s.Spec.SeedName, s.Spec.Networking = &test.seed, &gardencore.Networking{IPFamilies: test.families, Services: test.services}
				if test.workerless {
					s.Spec.Provider.Workers = nil
				}
			})
			if err := runAdmit(t, shoot, nil); err != nil {
				t.Fatal(err)
			}
			pods, services := ptr.Deref(shoot.Spec.Networking.Pods, ""), ptr.Deref(shoot.Spec.Networking.Services, "")
			if !regexp.MustCompile(test.pods).MatchString(pods) || !regexp.MustCompile(test.expected).MatchString(services) {
				t.Errorf("pods %q, services %q, want %s and %s", pods, services, test.pods, test.expected)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	image := func(name, version string) *gardencore.ShootMachineImage {
		return &gardencore.ShootMachineImage{Name: name, Version: version}
	}
	for name, test := range map[string]struct {
		version, worker string
		machine         gardencore.Machine
		oldImage        *gardencore.ShootMachineImage
		want            string // the Kubernetes versions of the Shoot and the pool, and the image
		refused         []string
	}{
		"complete": {version: "1.32.1", worker: "1.31.0",
			machine: gardencore.Machine{Type: "intel", Image: image("linux", "1.0.0")}, want: "1.32.1 1.31.0 linux@1.0.0"},
		"incomplete": {version: "1.32", worker: "1", machine: gardencore.Machine{Type: "intel", Image: image("linux", "1.0")},
			want: "1.32.1 1.33.2 linux@1.0.0"},
		"latest": {machine: gardencore.Machine{Type: "intel"}, want: "1.33.2  linux@1.1.0"},
		"keeps its image": {version: "1.33", machine: gardencore.Machine{Type: "intel"}, oldImage: image("linux", "1.0.0"),
			want: "1.33.2  linux@1.0.0"},
		"not in preview": {version: "1.34", worker: "1.34", machine: gardencore.Machine{Type: "intel", Image: image("linux", "2")},
			refused: []string{"spec.kubernetes.version", "spec.provider.workers[0].kubernetes.version", "spec.provider.workers[0]:"}},
		"no such image": {version: "1.32.1", machine: gardencore.Machine{Type: "intel", Image: image("odd", "")},
			refused: []string{"spec.provider.workers[0]:"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, old := newShoot(), (*gardencore.Shoot)(nil)
			shoot.Spec.Kubernetes.Version = test.version
			worker := &shoot.Spec.Provider.Workers[0]
			worker.Machine = test.machine
			if test.worker != "" {
				worker.Kubernetes = &gardencore.WorkerKubernetes{Version: &test.worker}
			}
			if test.oldImage != nil {
				old = newShoot(func(s *gardencore.Shoot) { s.Spec.Provider.Workers[0].Machine.Image = test.oldImage })
			}
			err := runAdmit(t, shoot, old)
			if (err == nil) != (test.refused == nil) || err != nil && !apierrors.IsForbidden(err) {
				t.Fatalf("error %v, want one about %v", err, test.refused)
			}
			for _, field := range test.refused {
				if !strings.Contains(err.Error(), field) {
					t.Errorf("error %v does not mention %s", err, field)
				}
			}
			if err != nil {
				return
			}
			ofWorker := ""
			if worker.Kubernetes != nil {
				ofWorker = *worker.Kubernetes.Version
			}
			if got := strings.Join([]string{shoot.Spec.Kubernetes.Version, ofWorker,
				worker.Machine.Image.Name + "@" + worker.Machine.Image.Version}, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	for field, change := range map[string]func(*gardencore.Shoot){
		"spec.cloudProfileName":  func(s *gardencore.Shoot) { s.Spec.CloudProfileName = new("profile") },
		"spec.cloudProfile.name": func(s *gardencore.Shoot) { s.Spec.CloudProfile.Name = "gone" },
		"spec.cloudProfile.kind": func(s *gardencore.Shoot) { s.Spec.CloudProfile.Kind = "Odd" },
		"spec.seedName":          func(s *gardencore.Shoot) { s.Spec.SeedName = new("gone") },
	} {
		if err := runAdmit(t, newShoot(change), nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if err := runAdmit(t, newShoot(func(s *gardencore.Shoot) { s.Spec.CloudProfile = nil }), nil); err != nil {
		t.Errorf("a missing reference is for validation, got %v", err)
	}
}
