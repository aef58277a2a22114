package admission

import (
	"context"
	"regexp"
	"strings"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
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

func domainSecret(name, role, domain, priority string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1beta1constants.GardenNamespace, Name: name, Labels: map[string]string{v1beta1constants.GardenRole: role},
		Annotations: map[string]string{annotationDomain: domain, annotationProvider: "local", annotationPriority: priority},
	}}
}

// newDNSPlugin returns a plugin with the project "it", the seed "own" with a default domain of its own and the seed
// "plain".
func newDNSPlugin(t *testing.T, secrets ...runtime.Object) admission.Interface {
	t.Helper()
	own := &gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	own.Spec.DNS.Defaults = []gardencore.SeedDNSProviderConfig{{Domain: "own.seed"}}
	p := shootDNSPlugin.New(
		plugin.Dependencies{Kube: fake.NewClientset(secrets...), Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
			gardencore.Resource("projects"): {
				&gardencore.Project{ObjectMeta: metav1.ObjectMeta{Name: "it"}, Spec: gardencore.ProjectSpec{Namespace: new("garden-it")}}},
			gardencore.Resource("seeds"): {own, &gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}},
		}}})
	return p
}

func defaultDomainSecrets() []runtime.Object {
	return []runtime.Object{
		domainSecret("one", v1beta1constants.GardenRoleDefaultDomain, "low.test", "x"),
		domainSecret("two", v1beta1constants.GardenRoleDefaultDomain, "high.test", "10"),
		domainSecret("three", "internal-domain", "internal.test", "20"),
	}
}

func shootWithDNS(seed string, dns *gardencore.DNS) *gardencore.Shoot {
	shoot := &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-it", Name: "shoot"},
		Spec: gardencore.ShootSpec{DNS: dns.DeepCopy()}}
	if seed != "" {
		shoot.Spec.SeedName = &seed
	}
	return shoot
}

func attributes(shoot, old *gardencore.Shoot, subresource string) admission.Attributes {
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	return admission.NewAttributesRecord(shoot, before, gardencore.Kind("Shoot").WithVersion("v1beta1"), shoot.Namespace, shoot.Name,
		gardencore.Resource("shoots").WithVersion("v1beta1"), subresource, operation, nil, false, nil)
}

// providers parses providers in the form "type type*", where the star marks the primary one.
func providers(s string) []gardencore.DNSProvider {
	var all []gardencore.DNSProvider
	for _, word := range strings.Fields(s) {
		name, primary := strings.CutSuffix(word, "*")
		provider := gardencore.DNSProvider{Type: &name}
		if primary {
			provider.Primary = new(true)
		}
		all = append(all, provider)
	}
	return all
}

func showDNS(dns *gardencore.DNS) string {
	if dns == nil {
		return "none"
	}
	words := []string{ptr.Deref(dns.Domain, "-")}
	for _, provider := range dns.Providers {
		word := *provider.Type
		if ptr.Deref(provider.Primary, false) {
			word += "*"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestAdmitShootDNS(t *testing.T) {
	for name, test := range map[string]struct {
		seed        string
		dns, old    *gardencore.DNS
		subresource string
		without     bool // no default domains
		want        string
	}{
		"highest priority":   {seed: "plain", want: "shoot.it.high.test"},
		"scheduled just now": {seed: "plain", subresource: "binding", want: "shoot.it.high.test"},
		"status":             {seed: "plain", subresource: "status", want: "none"},
		"of the seed":        {seed: "own", want: "shoot.it.own.seed"},
		"not scheduled yet":  {want: "none"},
		"no default domains": {seed: "plain", without: true, want: "-"},
		"own domain": {seed: "plain", dns: &gardencore.DNS{Domain: new("my.org"), Providers: providers("aws gcp")},
			want: "my.org aws* gcp"},
		"own primary": {seed: "plain", dns: &gardencore.DNS{Domain: new("my.org"), Providers: providers("aws gcp*")},
			want: "my.org aws gcp*"},
		"default needs no primary": {seed: "plain", dns: &gardencore.DNS{Providers: providers("aws")}, want: "shoot.it.high.test aws"},
		"unmanaged":                {seed: "plain", dns: &gardencore.DNS{Providers: providers("unmanaged")}, want: "- unmanaged*"},
		"keeps its primary": {dns: &gardencore.DNS{Providers: providers("aws gcp")},
			old: &gardencore.DNS{Providers: providers("gcp*")}, want: "- aws gcp*"},
		"the primary is gone": {dns: &gardencore.DNS{Providers: providers("aws")},
			old: &gardencore.DNS{Providers: providers("gcp*")}, want: "- aws"},
	} {
		t.Run(name, func(t *testing.T) {
			secrets := defaultDomainSecrets()
			if test.without {
				secrets = nil
			}
			shoot, old := shootWithDNS(test.seed, test.dns), (*gardencore.Shoot)(nil)
			if test.old != nil {
				old = shootWithDNS(test.seed, test.old)
			}
			if err := newDNSPlugin(t, secrets...).(admission.MutationInterface).Admit(
				context.Background(), attributes(shoot, old, test.subresource), nil); err != nil {
				t.Fatal(err)
			}
			if got := showDNS(shoot.Spec.DNS); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("generated name", func(t *testing.T) {
		shoot := shootWithDNS("plain", nil)
		shoot.Name, shoot.GenerateName = "", "gen-"
		if err := newDNSPlugin(t, defaultDomainSecrets()...).(admission.MutationInterface).Admit(
			context.Background(), attributes(shoot, nil, ""), nil); err != nil {
			t.Fatal(err)
		}
		if got := showDNS(shoot.Spec.DNS); !regexp.MustCompile(`^[0-9a-z]{9}\.it\.high\.test$`).MatchString(got) {
			t.Errorf("got %q", got)
		}
	})
}

func TestAdmitRefuses(t *testing.T) {
	broken := domainSecret("four", v1beta1constants.GardenRoleDefaultDomain, "", "")
	elsewhere := shootWithDNS("plain", nil)
	elsewhere.Namespace = "default"
	for field, test := range map[string]struct {
		shoot   *gardencore.Shoot
		secrets []runtime.Object
	}{
		"spec.seedName":      {shootWithDNS("gone", nil), defaultDomainSecrets()},
		"spec.dns.domain":    {shootWithDNS("", nil), append(defaultDomainSecrets(), broken)},
		"metadata.namespace": {elsewhere, defaultDomainSecrets()},
	} {
		err := newDNSPlugin(t, test.secrets...).(admission.MutationInterface).Admit(context.Background(), attributes(test.shoot, nil, ""), nil)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestValidateShootDNS(t *testing.T) {
	dns := func(domain, all string) *gardencore.DNS {
		return &gardencore.DNS{Domain: &domain, Providers: providers(all)}
	}
	generated := shootWithDNS("plain", dns("any.it.high.test", ""))
	generated.GenerateName, generated.Name = "gen-", ""
	stolen := shootWithDNS("plain", dns("any.other.high.test", ""))
	stolen.GenerateName, stolen.Name = "gen-", "gen-x"
	for name, test := range map[string]struct {
		shoot, old *gardencore.Shoot
		field      string // in the 422 response
	}{
		"none":                      {shoot: shootWithDNS("plain", nil)},
		"as it should be":           {shoot: shootWithDNS("plain", dns("shoot.it.high.test", ""))},
		"of another project":        {shoot: shootWithDNS("plain", dns("shoot.other.high.test", "")), field: "spec.dns.domain"},
		"of another shoot":          {shoot: shootWithDNS("plain", dns("other.it.low.test", "")), field: "spec.dns.domain"},
		"unmanaged":                 {shoot: shootWithDNS("plain", dns("other.it.low.test", "unmanaged"))},
		"no default domain":         {shoot: shootWithDNS("plain", dns("shoot.internal.test", "aws*"))},
		"not a default of the seed": {shoot: shootWithDNS("own", dns("other.it.low.test", "aws*"))},
		"default domain and primary": {shoot: shootWithDNS("plain", dns("shoot.it.low.test", "aws gcp*")),
			field: "spec.dns.providers[1].primary"},
		"generated":                     {shoot: generated},
		"generated, of another project": {shoot: stolen, field: "spec.dns.domain"},
		"scheduled with it stays":       {shoot: shootWithDNS("plain", dns("x.low.test", "")), old: shootWithDNS("plain", dns("x.low.test", ""))},
		"scheduled now": {shoot: shootWithDNS("plain", dns("x.low.test", "")),
			old: shootWithDNS("", dns("x.low.test", "")), field: "spec.dns.domain"},
		"set after it has been scheduled": {shoot: shootWithDNS("plain", dns("x.low.test", "")), old: shootWithDNS("plain", nil),
			field: "spec.dns.domain"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newDNSPlugin(t, defaultDomainSecrets()...).(admission.ValidationInterface).Validate(
				context.Background(), attributes(test.shoot, test.old, ""), nil)
			if (err == nil) != (test.field == "") || err != nil &&
				(!apierrors.IsInvalid(err) || err.(apierrors.APIStatus).Status().Details.Causes[0].Field != test.field) {
				t.Errorf("error %v, want one about %q", err, test.field)
			}
		})
	}
}
