package managedseedvalidator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/security"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

// garden has one Shoot, "s" on the seed "parent", and a default domain.
type garden struct {
	shoot   *gardencore.Shoot
	parent  *gardencore.Seed
	seed    *seedmanagement.ManagedSeed
	spec    *gardencorev1beta1.SeedSpec // the template in the seed
	others  []runtime.Object            // Shoots and ManagedSeeds
	secrets []runtime.Object
}

func newGarden() *garden {
	config := &gardenletconfigv1alpha1.GardenletConfiguration{SeedConfig: &gardenletconfigv1alpha1.SeedConfig{}}
	config.SeedConfig.Labels = map[string]string{"a": "b"}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "garden", Labels: map[string]string{"gardener.cloud/role": "default-domain"},
			Annotations: map[string]string{"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": "example.org"}}}
	return &garden{
		shoot: &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden"}, Spec: gardencore.ShootSpec{
			SeedName: ptr.To("parent"), Region: "here", DNS: &gardencore.DNS{Domain: ptr.To("s.example.org")},
			Networking: &gardencore.Networking{Nodes: ptr.To("10.2.0.0/16"), Pods: ptr.To("10.0.0.0/16"), Services: ptr.To("10.1.0.0/16")},
			Kubernetes: gardencore.Kubernetes{VerticalPodAutoscaler: &gardencore.VerticalPodAutoscaler{Enabled: true}},
			Provider:   gardencore.Provider{Type: "local", Workers: []gardencore.Worker{{Zones: []string{"b", "a"}}}},
		}},
		parent: &gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "parent"}},
		seed: &seedmanagement.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "garden"}, Spec: seedmanagement.ManagedSeedSpec{
			Shoot: &seedmanagement.Shoot{Name: "s"}, Gardenlet: seedmanagement.GardenletConfig{Config: config}}},
		spec:    &config.SeedConfig.Spec,
		secrets: []runtime.Object{secret},
	}
}

// mutatorAndValidator is what the plugin is.
type mutatorAndValidator interface {
	admission.MutationInterface
	admission.ValidationInterface
}

func (g *garden) plugin(t *testing.T) mutatorAndValidator {
	t.Helper()
	objects := map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("shoots"): {g.shoot}, gardencore.Resource("seeds"): {g.parent},
		gardencore.Resource("secretbindings"): {&gardencore.SecretBinding{ObjectMeta: metav1.ObjectMeta{Name: "sb", Namespace: "garden"},
			SecretRef: corev1.SecretReference{Namespace: "n", Name: "bound"}}},
		security.Resource("credentialsbindings"): {&security.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Name: "cb", Namespace: "garden"},
			CredentialsRef: corev1.ObjectReference{Kind: "WorkloadIdentity", Name: "bound"}}},
	}
	for _, other := range g.others {
		resource := gardencore.Resource("shoots")
		if _, ok := other.(*seedmanagement.ManagedSeed); ok {
			resource = seedmanagement.Resource("managedseeds")
		}
		objects[resource] = append(objects[resource], other)
	}
	p := Factory.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: objects}, Kube: fake.NewClientset(g.secrets...)})
	return p.(mutatorAndValidator)
}

func (g *garden) attributes(old runtime.Object) admission.Attributes {
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	return admission.NewAttributesRecord(g.seed, old, seedmanagement.SchemeGroupVersion.WithKind("ManagedSeed"), g.seed.Namespace, g.seed.Name,
		seedmanagement.SchemeGroupVersion.WithResource("managedseeds"), "", operation, nil, false, nil)
}

func (g *garden) admit(t *testing.T) error {
	return g.plugin(t).Admit(t.Context(), g.attributes(nil), nil)
}

// said returns the types and fields of an Invalid error, sorted, and the message of any other error.
func said(err error) string {
	if err == nil {
		return ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return err.Error()
	}
	var list []string
	for _, cause := range status.Status().Details.Causes {
		field := strings.Replace(cause.Field, "spec.gardenlet.config.seedConfig.spec.", "seed.", 1)
		list = append(list, strings.TrimPrefix(string(cause.Type), "FieldValue")+" "+field)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func TestDefaults(t *testing.T) {
	g := newGarden()
	g.spec.Backup = &gardencorev1beta1.Backup{}
	if err := g.admit(t); err != nil {
		t.Fatal(err)
	}
	spec := g.spec
	if spec.Backup.Provider != "local" || spec.Ingress.Domain != "ingress.s.example.org" ||
		spec.Ingress.Controller.Kind != "nginx" || spec.DNS.Provider.CredentialsRef.Name != "default" {
		t.Errorf("backup %+v, ingress %+v, DNS %+v", spec.Backup, spec.Ingress, spec.DNS.Provider)
	}
	if *spec.Networks.Nodes != "10.2.0.0/16" || spec.Networks.Pods != "10.0.0.0/16" || spec.Networks.Services != "10.1.0.0/16" {
		t.Errorf("networks %+v", spec.Networks)
	}
	if spec.Provider.Type != "local" || spec.Provider.Region != "here" ||
		!slices.Equal(spec.Provider.Zones, []string{"a", "b"}) || spec.Settings.VerticalPodAutoscaler.Enabled {
		t.Errorf("provider %+v, settings %+v", spec.Provider, spec.Settings)
	}
	if g.seed.Labels["name.seed.gardener.cloud/parent"] != "true" ||
		g.seed.Spec.Gardenlet.Config.(*gardenletconfigv1alpha1.GardenletConfiguration).SeedConfig.Labels["a"] != "b" {
		t.Errorf("labels %v", g.seed.Labels)
	}
	if err := g.plugin(t).Validate(t.Context(), g.attributes(nil), nil); err != nil {
		t.Errorf("what was filled in: %v", err)
	}
	before := spec.DeepCopy()
	g.shoot.Spec.Region, g.shoot.Spec.DNS.Domain = "there", ptr.To("t.example.org")
	if err := g.admit(t); err != nil || g.spec.Provider.Region != before.Provider.Region || g.spec.Ingress.Domain != before.Ingress.Domain {
		t.Errorf("what was there already: %v, %+v", err, g.spec)
	}
}

func TestDNSProvider(t *testing.T) {
	provider := func(typ *string, own *autoscalingv1.CrossVersionObjectReference) func(*garden) {
		return func(g *garden) {
			g.shoot.Spec.DNS.Providers = []gardencore.DNSProvider{
				{Type: ptr.To("secondary")}, {Primary: ptr.To(true), Type: typ, CredentialsRef: own}}
		}
	}
	for name, test := range map[string]struct {
		change           []func(*garden)
		typ, credentials string // if typ is empty, the request must be refused
	}{
		"default domain": {nil, "local", "default"},
		"no domain":      {[]func(*garden){func(g *garden) { g.secrets = nil }}, "", ""},
		"seed's": {[]func(*garden){func(g *garden) {
			g.parent.Spec.DNS.Defaults = []gardencore.SeedDNSProviderConfig{{Domain: "x"}, {Type: "own", Domain: "example.org"}}
		}}, "own", ""},
		"seed's, another": {
			[]func(*garden){func(g *garden) { g.parent.Spec.DNS.Defaults = []gardencore.SeedDNSProviderConfig{{Domain: "x"}} }}, "", ""},
		"unmanaged":      {[]func(*garden){provider(ptr.To("unmanaged"), nil)}, "local", "default"},
		"no type":        {[]func(*garden){provider(nil, nil)}, "", ""},
		"no credentials": {[]func(*garden){provider(ptr.To("p"), nil)}, "", ""},
		"own":            {[]func(*garden){provider(ptr.To("p"), &autoscalingv1.CrossVersionObjectReference{Name: "own"})}, "p", "own"},
		"secret": {[]func(*garden){provider(ptr.To("p"), nil), func(g *garden) { g.shoot.Spec.SecretBindingName = ptr.To("sb") }},
			"p", "bound"},
		"no secret": {
			[]func(*garden){provider(ptr.To("p"), nil), func(g *garden) { g.shoot.Spec.SecretBindingName = ptr.To("x") }}, "", ""},
		"credentials": {[]func(*garden){provider(ptr.To("p"), nil), func(g *garden) { g.shoot.Spec.CredentialsBindingName = ptr.To("cb") }},
			"p", "bound"},
	} {
		g := newGarden()
		for _, change := range test.change {
			change(g)
		}
		got := said(g.admit(t))
		switch dns := g.spec.DNS.Provider; {
		case test.typ == "":
			if got != "Invalid seed.ingress" {
				t.Errorf("%s: %s", name, got)
			}
		case got != "" || dns.Type != test.typ || dns.CredentialsRef.Name != test.credentials:
			t.Errorf("%s: %s, %+v", name, got, dns)
		}
	}
}

func TestValidate(t *testing.T) {
	const shootName = "Invalid spec.shoot.name"
	for name, test := range map[string]struct {
		change  func(*garden)
		created string
	}{
		"fit":           {func(*garden) {}, ""},
		"elsewhere":     {func(g *garden) { g.seed.Namespace = "garden-dev" }, "Invalid metadata.namespace"},
		"no shoot":      {func(g *garden) { g.seed.Spec.Shoot = nil }, ""}, // left to the API validation
		"missing shoot": {func(g *garden) { g.seed.Spec.Shoot.Name = "t" }, shootName},
		"no template": {func(g *garden) { g.seed.Spec.Gardenlet.Config = &gardenletconfigv1alpha1.GardenletConfiguration{} },
			"Required spec.gardenlet.config.seedConfig"},
		"no domain":   {func(g *garden) { g.shoot.Spec.DNS = nil }, shootName},
		"no networks": {func(g *garden) { g.shoot.Spec.Networking = nil }, shootName},
		"no VPA":      {func(g *garden) { g.shoot.Spec.Kubernetes.VerticalPodAutoscaler.Enabled = false }, shootName},
		"ingress": {func(g *garden) {
			g.shoot.Spec.Addons = &gardencore.Addons{NginxIngress: &gardencore.NginxIngress{Addon: gardencore.Addon{Enabled: true}}}
		}, shootName},
		"workerless":   {func(g *garden) { g.shoot.Spec.Provider.Workers, g.spec.Provider.Zones = nil, nil }, shootName},
		"seed already": {func(g *garden) { other := g.seed.DeepCopy(); other.Name = "o"; g.others = append(g.others, other) }, shootName},
		"other networks": {func(g *garden) { g.spec.Networks = gardencorev1beta1.SeedNetworks{} },
			"Invalid seed.networks.nodes, Invalid seed.networks.pods, Invalid seed.networks.services"},
		"other provider": {func(g *garden) { g.spec.Provider.Type, g.spec.Provider.Region = "", "" },
			"Invalid seed.provider.region, Invalid seed.provider.type"},
		"other domain": {func(g *garden) { g.spec.Ingress.Domain = "" }, "Invalid seed.ingress.domain"},
		"other zones":  {func(g *garden) { g.spec.Provider.Zones = []string{"a", "c"} }, "Invalid seed.provider.zones"},
		"settings": {func(g *garden) {
			g.spec.Settings.VerticalPodAutoscaler.Enabled = true
			g.spec.Settings.TopologyAwareRouting = &gardencorev1beta1.SeedSettingTopologyAwareRouting{Enabled: true}
			g.shoot.Spec.Kubernetes.KubeProxy = &gardencore.KubeProxyConfig{
				KubernetesConfig: gardencore.KubernetesConfig{FeatureGates: map[string]bool{"TopologyAwareHints": false}}}
		}, "Invalid seed.settings.topologyAwareRouting.enabled, Invalid seed.settings.verticalPodAutoscaler.enabled"},
	} {
		g := newGarden()
		if err := g.admit(t); err != nil {
			t.Fatal(err)
		}
		test.change(g)
		if got := said(g.plugin(t).Validate(t.Context(), g.attributes(nil), nil)); got != test.created {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestZones checks that a zone that the seed already has is accepted even if the Shoot has no such zone, and that it
// cannot be removed while Shoots are on the seed.
func TestZones(t *testing.T) {
	for _, test := range []struct {
		before, after []string
		used          bool
		want          string
	}{
		{[]string{"x"}, []string{"x", "a"}, true, ""},
		{[]string{"x"}, []string{"x", "y"}, false, "Invalid seed.provider.zones"},
		{[]string{"x", "a"}, []string{"a"}, false, ""},
		{[]string{"x", "a"}, []string{"a"}, true, "Forbidden seed.provider.zones"},
	} {
		g := newGarden()
		if err := g.admit(t); err != nil {
			t.Fatal(err)
		}
		if test.used {
			g.others = []runtime.Object{&gardencore.Shoot{Spec: gardencore.ShootSpec{SeedName: ptr.To("m")}}}
		}
		g.spec.Provider.Zones = test.before
		old := g.seed.DeepCopy()
		g.spec.Provider.Zones = test.after
		if got := said(g.plugin(t).Validate(t.Context(), g.attributes(old), nil)); got != test.want {
			t.Errorf("%v: %s", test, got)
		}
	}
}
