package shootvalidator

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// landscape has the objects that a Shoot can refer to; tests change them.
type landscape struct {
	profile             gardencore.CloudProfile
	namespaced          gardencore.NamespacedCloudProfile
	project             gardencore.Project
	seed, seed2         gardencore.Seed
	secretBinding       gardencore.SecretBinding
	credentials, others security.CredentialsBinding
	neighbour           gardencore.Shoot
	kube                []runtime.Object
}

func version(v string, expires time.Duration) gardencore.ExpirableVersion {
	if expires == 0 {
		return gardencore.ExpirableVersion{Version: v}
	}
	return gardencore.ExpirableVersion{Version: v, ExpirationDate: &metav1.Time{Time: now.Add(expires)}}
}

func newLandscape() *landscape {
	l := &landscape{}
	image := func(v gardencore.ExpirableVersion) gardencore.MachineImageVersion {
		return gardencore.MachineImageVersion{ExpirableVersion: v, Architectures: []string{"amd64"}, CRI: []gardencore.CRI{{Name: "containerd"}}}
	}
	machine := func(name, architecture string, usable bool) gardencore.MachineType {
		return gardencore.MachineType{Name: name, CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi"),
			Architecture: &architecture, Usable: &usable}
	}
	inPlace, newKubelet := image(version("2.0.0", 0)), image(version("3.0.0", 0))
	inPlace.InPlaceUpdates = &gardencore.InPlaceUpdates{Supported: true, MinVersionForUpdate: new("1.1.0")}
	newKubelet.KubeletVersionConstraint = new(">= 1.34")
	l.profile = gardencore.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "profile"}, Spec: gardencore.CloudProfileSpec{
		Type: "local",
		Kubernetes: gardencore.KubernetesSettings{
			Versions: []gardencore.ExpirableVersion{version("1.33.1", 0), version("1.33.2", -time.Hour)}},
		MachineImages: []gardencore.MachineImage{{Name: "linux",
			Versions: []gardencore.MachineImageVersion{image(version("1.0.0", 0)), image(version("1.1.0", -time.Hour)), inPlace, newKubelet}}},
		MachineTypes: []gardencore.MachineType{machine("small", "amd64", true), machine("arm", "arm64", true),
			machine("old", "amd64", false), machine("rare", "amd64", true)},
		VolumeTypes: []gardencore.VolumeType{{Name: "ssd", Usable: new(true), MinSize: new(resource.MustParse("20Gi"))}},
		Regions: []gardencore.Region{{Name: "europe", Zones: []gardencore.AvailabilityZone{{Name: "a"},
			{Name: "b", UnavailableMachineTypes: []string{"rare"}}}, AccessRestrictions: []gardencore.AccessRestriction{{Name: "eu-only"}}},
			{Name: "moon"}},
	}}
	l.namespaced = gardencore.NamespacedCloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "garden-p"}}
	l.namespaced.Spec.Parent.Name = "profile"
	l.namespaced.Status.CloudProfileSpec = *l.profile.Spec.DeepCopy()
	l.project = gardencore.Project{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: gardencore.ProjectSpec{Namespace: new("garden-p")}}
	l.seed = gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed", Labels: map[string]string{"env": "dev"}}, Spec: gardencore.SeedSpec{
		Backup: &gardencore.Backup{}, Provider: gardencore.SeedProvider{Type: "local", Region: "r1", Zones: []string{"1"}},
		DNS:      gardencore.SeedDNS{Defaults: []gardencore.SeedDNSProviderConfig{{Domain: "example.com"}}},
		Networks: gardencore.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
	}}
	l.seed.Status.Gardener = &gardencore.Gardener{Version: "v1"}
	l.seed2 = *l.seed.DeepCopy()
	l.seed2.Name = "seed2"
	l.secretBinding = gardencore.SecretBinding{ObjectMeta: metav1.ObjectMeta{Name: "secrets", Namespace: "garden-p"},
		Provider: &gardencore.SecretBindingProvider{Type: "x,local"}, SecretRef: corev1.SecretReference{Namespace: "garden-p", Name: "cloud"}}
	binding := func(name, secret string) security.CredentialsBinding {
		return security.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "garden-p"},
			Provider:       security.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden-p", Name: secret}}
	}
	l.credentials, l.others = binding("credentials", "cloud"), binding("others", "foreign")
	l.neighbour = gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "neighbour", Namespace: "garden-q"},
		Spec: gardencore.ShootSpec{SeedName: new("seed"), DNS: &gardencore.DNS{Domain: new("taken.org")}}}
	return l
}

func newShoot() *gardencore.Shoot {
	return &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "shoot", Namespace: "garden-p"}, Spec: gardencore.ShootSpec{
		CloudProfile: &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "profile"}, Region: "europe",
		SecretBindingName: new("secrets"), SeedName: new("seed"),
		DNS: &gardencore.DNS{Domain: new("shoot.p.example.com")}, Kubernetes: gardencore.Kubernetes{Version: "1.33.1"},
		Networking: &gardencore.Networking{Pods: new("100.96.0.0/11"), Services: new("100.64.0.0/13"),
			Nodes: new("10.250.0.0/16"), IPFamilies: []gardencore.IPFamily{gardencore.IPFamilyIPv4}},
		Provider: gardencore.Provider{Type: "local",
			Workers: []gardencore.Worker{{Name: "w", Minimum: 2, Zones: []string{"a"}, CRI: &gardencore.CRI{Name: "containerd"},
				Machine: gardencore.Machine{Type: "small", Architecture: new("amd64"),
					Image: &gardencore.ShootMachineImage{Name: "linux", Version: "1.0.0"}},
				Volume: &gardencore.Volume{Type: new("ssd"), VolumeSize: "20Gi"}}}},
	}}
}

func (l *landscape) newPlugin(t *testing.T) admission.ValidationInterface {
	t.Helper()
	p := Factory.New(plugin.Dependencies{
		Clock: testclock.NewFakePassiveClock(now), Kube: fake.NewClientset(l.kube...),
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() == "admin" || a.GetResource() == "secrets" && a.GetName() == "cloud" {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
		Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
			gardencore.Resource("cloudprofiles"): {
				&l.profile, &gardencore.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: l.profile.Spec}},
			gardencore.Resource("namespacedcloudprofiles"): {&l.namespaced},
			gardencore.Resource("projects"):                {&l.project}, gardencore.Resource("seeds"): {&l.seed, &l.seed2},
			gardencore.Resource("secretbindings"):    {&l.secretBinding},
			security.Resource("credentialsbindings"): {&l.credentials, &l.others},
			gardencore.Resource("shoots"):            {&l.neighbour},
		}}})
	return p.(admission.ValidationInterface)
}

var fieldInError = regexp.MustCompile(
	`((?:spec|metadata|status|name)(?:\.[A-Za-z0-9]+|\[[^\]]*\])*): (?:Invalid|Unsupported|Required|Forbidden|Duplicate|Internal|Not found)`)

// fieldsOf returns the fields in the message of an error, in their order, joined by blanks.
func fieldsOf(err error) string {
	var fields []string
	if err != nil {
		for _, match := range fieldInError.FindAllStringSubmatch(err.Error(), -1) {
			fields = append(fields, match[1])
		}
	}
	return strings.Join(slices.Compact(fields), " ")
}

// check checks that err names exactly these fields, or is nil if there are none.
func check(t *testing.T, err error, fields string) {
	t.Helper()
	if fieldsOf(err) != fields || (err == nil) != (fields == "") {
		t.Fatalf("the answer should be about %q, is: %v", fields, err)
	}
	if err != nil && !apierrors.IsForbidden(err) && fields != "name" {
		t.Fatalf("should be forbidden, is: %v", err)
	}
}

func attributes(shoot, old *gardencore.Shoot, operation admission.Operation, subresource, name string) admission.Attributes {
	var before, after runtime.Object
	if old != nil {
		before = old
	}
	if operation != admission.Delete {
		after = shoot
	}
	return admission.NewAttributesRecord(after, before, gardencore.Kind("Shoot").WithVersion("v1beta1"), shoot.Namespace, shoot.Name,
		gardencore.Resource("shoots").WithVersion("v1beta1"), subresource, operation, nil, false, &user.DefaultInfo{Name: name})
}

const (
	firstPool = "spec.provider.workers[0]"
	live      = v1beta1constants.AnnotationMigrationLiveMigrate
	managed   = v1beta1constants.AnnotationAuthenticationIssuer
)

func TestCreate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *gardencore.Shoot, l *landscape)
		fields string
	}{
		"valid":                {func(*gardencore.Shoot, *landscape) {}, ""},
		"no profile reference": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.CloudProfile = nil; s.Spec.Region = "x" }, ""},
		"unknown profile":      {func(s *gardencore.Shoot, _ *landscape) { s.Spec.CloudProfile.Name = "x" }, "spec.cloudProfile.name"},
		"unknown seed":         {func(s *gardencore.Shoot, _ *landscape) { s.Spec.SeedName = new("x") }, "spec.seedName"},
		"no project":           {func(_ *gardencore.Shoot, l *landscape) { l.project.Spec.Namespace = nil }, "metadata.namespace"},
		"project is deleted": {func(_ *gardencore.Shoot, l *landscape) { l.project.DeletionTimestamp = &metav1.Time{Time: now} },
			"metadata.namespace"},
		"long names":              {func(s *gardencore.Shoot, _ *landscape) { s.Name = strings.Repeat("x", 21) }, "name"},
		"long generated name":     {func(s *gardencore.Shoot, _ *landscape) { s.Name, s.GenerateName = "", strings.Repeat("x", 16) }, "name"},
		"longest generated name":  {func(s *gardencore.Shoot, _ *landscape) { s.Name, s.GenerateName = "", strings.Repeat("x", 15) }, ""},
		"unknown secret binding":  {func(s *gardencore.Shoot, _ *landscape) { s.Spec.SecretBindingName = new("x") }, "spec.secretBindingName"},
		"binding of another type": {func(_ *gardencore.Shoot, l *landscape) { l.secretBinding.Provider = nil }, "spec.provider.type"},
		"profile of another type": {func(_ *gardencore.Shoot, l *landscape) { l.profile.Spec.Type = "x" }, "spec.provider.type"},
		"seed is deleted": {
			func(_ *gardencore.Shoot, l *landscape) { l.seed.DeletionTimestamp = &metav1.Time{Time: now} }, "spec.seedName"},
		"tainted seed": {
			func(_ *gardencore.Shoot, l *landscape) { l.seed.Spec.Taints = []gardencore.SeedTaint{{Key: "t"}} }, "spec.seedName"},
		"full seed": {func(_ *gardencore.Shoot, l *landscape) {
			l.seed.Status.Allocatable = corev1.ResourceList{"shoots": resource.MustParse("1")}
		}, "spec.seedName"},
		"seed is not selected": {func(_ *gardencore.Shoot, l *landscape) {
			l.profile.Spec.SeedSelector = &gardencore.SeedSelector{ProviderTypes: []string{"x"}}
		}, "spec.seedName"},
		"own selector": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.SeedSelector = &gardencore.SeedSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "x"}}, ProviderTypes: []string{"x"}}
		}, "spec.seedSelector spec.seedSelector.providerTypes"},
		"zones for failures": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.ControlPlane = &gardencore.ControlPlane{HighAvailability: &gardencore.HighAvailability{
				FailureTolerance: gardencore.FailureTolerance{Type: gardencore.FailureToleranceTypeZone}}}
		}, "spec.seedName"},
		"issuer is not set up": {func(s *gardencore.Shoot, _ *landscape) { s.Annotations = map[string]string{managed: "managed"} },
			"metadata.annotations[" + managed + "]"},
		"internal configuration": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Provider.InfrastructureConfig = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"x/__internal","kind":"X"}`)}
		}, "spec.provider.infrastructureConfig"},
		"overlapping networks": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Networking.Pods = new("10.250.0.0/17") },
			"spec.networking.pods"},
		"no networks": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Networking = nil }, "spec.networking"},
		"no pods and services": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Networking.Pods, s.Spec.Networking.Services = nil, nil },
			"spec.networking.pods spec.networking.services"},
		"reserved network": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Networking.Nodes = new("240.1.0.0/16") },
			"spec.networking.nodes"},
		"expired Kubernetes":   {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Kubernetes.Version = "1.33.2" }, "spec.kubernetes.version"},
		"unknown region":       {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Region = "x" }, "spec.region " + firstPool + ".zones[0]"},
		"zones where none are": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Region = "moon" }, firstPool + ".zones[0]"},
		"zones twice": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Zones = []string{"a", "a", "x"} },
			firstPool + ".zones[1] " + firstPool + ".zones[2]"},
		"unknown restriction": {func(s *gardencore.Shoot, l *landscape) {
			s.Spec.AccessRestrictions = []gardencore.AccessRestrictionWithOptions{{AccessRestriction: gardencore.AccessRestriction{Name: "x"}}}
			s.Spec.SeedName = nil
		}, "spec.accessRestrictions[0]"},
		"restriction of the seed": {func(s *gardencore.Shoot, l *landscape) {
			s.Spec.AccessRestrictions = []gardencore.AccessRestrictionWithOptions{{AccessRestriction: gardencore.AccessRestriction{Name: "eu-only"}}}
		}, "spec.seedName"},
		"unknown architecture": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Architecture = new("x") },
			firstPool + ".machine.architecture"},
		"unknown machine type": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Type = "x" },
			firstPool + ".machine.type"},
		"machine type of the past": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Type = "old" },
			firstPool + ".machine.type"},
		"machine type not here": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Provider.Workers[0].Machine.Type = "rare"
			s.Spec.Provider.Workers[0].Zones = []string{"a", "b"}
		}, firstPool + ".machine.type"},
		"other architecture": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Type = "arm" },
			firstPool + ".machine.type"},
		"image without version": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Image.Version = "" },
			firstPool + ".machine.image.version"},
		"no image": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Image = nil },
			firstPool + ".machine.image.version"},
		"expired image": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Image.Version = "1.1.0" },
			firstPool + ".machine.image"},
		"image of no updates": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Provider.Workers[0].UpdateStrategy = new(gardencore.AutoInPlaceUpdate)
		}, firstPool + ".machine.image"},
		"image of newer kubelets": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Machine.Image.Version = "3.0.0" },
			firstPool + ".machine.image"},
		"image without flavor": {func(s *gardencore.Shoot, l *landscape) { withCapabilities(l) }, firstPool + ".machine.image.version"},
		"unknown runtime": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Provider.Workers[0].CRI.ContainerRuntimes = []gardencore.ContainerRuntime{{Type: "x"}}
		}, firstPool + ".cri.containerRuntimes[0].type"},
		"unknown CRI": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].CRI.Name = "x" }, firstPool + ".cri.name"},
		"unknown volume type": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Volume.Type = new("x") },
			firstPool + ".volume.type"},
		"small volume": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Provider.Workers[0].Volume.VolumeSize = "19Gi" },
			firstPool + ".volume.size"},
		"all is reserved": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Provider.Workers[0].Kubernetes = &gardencore.WorkerKubernetes{
				Kubelet: &gardencore.KubeletConfig{KubeReserved: &gardencore.KubeletConfigReserved{CPU: new(resource.MustParse("2"))}}}
		}, firstPool + ".kubernetes.kubelet"},
		"expired kubelet": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Provider.Workers[0].Kubernetes = &gardencore.WorkerKubernetes{Version: new("1.33.2")}
		}, firstPool + ".kubernetes.version"},
		"pinned to a zone": {func(s *gardencore.Shoot, l *landscape) { allowPinning(s, l); pinTo(s, "1") }, ""},
		"pinned to a zone that the seed has not": {func(s *gardencore.Shoot, l *landscape) { allowPinning(s, l); pinTo(s, "2") },
			"spec.controlPlane.zones[0]"},
		"pinned to a zone of no seed yet": {func(s *gardencore.Shoot, l *landscape) {
			allowPinning(s, l)
			pinTo(s, "2")
			s.Spec.SeedName = nil
		}, ""},
		"pinned without permission": {func(s *gardencore.Shoot, l *landscape) {
			pinTo(s, "1")
			l.profile.Spec.ControlPlane = &gardencore.CloudProfileControlPlane{}
		}, "spec.controlPlane.zones"},
		"too many nodes": {func(_ *gardencore.Shoot, l *landscape) {
			l.profile.Spec.Limits = &gardencore.Limits{MaxNodesTotal: new(int32(1))}
		}, "spec.provider.workers"},
		"kubeconfig is not listed": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.Kubernetes.KubeAPIServer = withKubeconfig("k") },
			"spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName"},
		"domain is taken":       {func(s *gardencore.Shoot, _ *landscape) { s.Spec.DNS.Domain = new("taken.org") }, "spec.dns.domain"},
		"domain within another": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.DNS.Domain = new("x.taken.org") }, "spec.dns.domain"},
		"domain around another": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.DNS.Domain = new("org") }, "spec.dns.domain"},
		"domain beside another": {func(s *gardencore.Shoot, _ *landscape) { s.Spec.DNS.Domain = new("mistaken.org") }, ""},
		"live migration": {func(s *gardencore.Shoot, _ *landscape) { s.Annotations = map[string]string{live: "true"} },
			"metadata.annotations[" + live + "]"},
		"several things": {func(s *gardencore.Shoot, _ *landscape) {
			s.Spec.Region, s.Spec.Kubernetes.Version, s.Spec.DNS.Domain = "x", "1.1.1", new("taken.org")
		}, "spec.kubernetes.version spec.region " + firstPool + ".zones[0] spec.dns.domain"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, l := newShoot(), newLandscape()
			test.change(shoot, l)
			check(t, l.newPlugin(t).Validate(t.Context(), attributes(shoot, nil, admission.Create, "", "admin"), nil), test.fields)
		})
	}
	check(t, newLandscape().newPlugin(t).Validate(t.Context(), attributes(newShoot(), nil, admission.Create, "", "user"), nil),
		"spec.seedName")
}

func withKubeconfig(secret string) *gardencore.KubeAPIServerConfig {
	return &gardencore.KubeAPIServerConfig{AdmissionPlugins: []gardencore.AdmissionPlugin{{Name: "x", KubeconfigSecretName: &secret}}}
}

// withCapabilities gives all images a capability that no machine type has.
func allowPinning(_ *gardencore.Shoot, l *landscape) {
	l.profile.Spec.ControlPlane = &gardencore.CloudProfileControlPlane{AllowZonePinning: true}
}

func pinTo(s *gardencore.Shoot, zones ...string) {
	s.Spec.ControlPlane = &gardencore.ControlPlane{Zones: zones}
}

func withCapabilities(l *landscape) {
	l.profile.Spec.MachineCapabilities = []gardencore.CapabilityDefinition{
		{Name: "architecture", Values: []string{"amd64"}}, {Name: "boot", Values: []string{"bios", "uefi"}}}
	l.profile.Spec.MachineTypes[0].Capabilities = gardencore.Capabilities{"boot": {"bios"}}
	l.profile.Spec.MachineImages[0].Versions[0].CapabilityFlavors = []gardencore.MachineImageFlavor{
		{Capabilities: gardencore.Capabilities{"architecture": {"amd64"}, "boot": {"uefi"}}}}
}
