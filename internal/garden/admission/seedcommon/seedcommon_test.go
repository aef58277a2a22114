package seedcommon

import (
	"context"
	"maps"
	"slices"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func shootOn(seed, domain string) *gardencore.Shoot {
	return &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden-dev"},
		Spec: gardencore.ShootSpec{SeedName: &seed, DNS: &gardencore.DNS{Domain: &domain}}}
}

func domainSecret(domain string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "d", Namespace: "garden", Labels: map[string]string{"gardener.cloud/role": "default-domain"},
		Annotations: map[string]string{annotationDNSProvider: "local", annotationDNSDomain: domain}}}
}

func spec(internal string, zones []string, defaults ...string) *gardencore.SeedSpec {
	s := &gardencore.SeedSpec{Provider: gardencore.SeedProvider{Zones: zones}}
	if internal != "" {
		s.DNS.Internal = &gardencore.SeedDNSProviderConfig{Domain: internal}
	}
	for _, domain := range defaults {
		s.DNS.Defaults = append(s.DNS.Defaults, gardencore.SeedDNSProviderConfig{Domain: domain})
	}
	return s
}

func TestValidateChange(t *testing.T) {
	zones := []string{"a", "b"}
	used := shootOn("seed", "x.dev.example.com")
	moving := &gardencore.Shoot{Status: gardencore.ShootStatus{SeedName: new("seed")}}
	for name, test := range map[string]struct {
		shoot    *gardencore.Shoot
		secret   *corev1.Secret
		old, new *gardencore.SeedSpec
		want     []string
	}{
		"unused seed": {shoot: shootOn("other", "x.example.com"), old: spec("i", zones, "example.com"),
			new: spec("j", nil, "c")},
		"nothing that shoots need": {shoot: used, old: spec("i", zones, "a", "example.com"),
			new: spec("i", []string{"b", "a", "c"}, "example.com", "b")},
		"zones and internal domain": {shoot: moving, old: spec("i", zones), new: spec("j", []string{"a"}),
			want: []string{"spec.provider.zones", "spec.dns.internal.domain"}},
		"internal domain is added": {shoot: used, old: spec("", zones), new: spec("j", zones)},
		"default domain with names": {shoot: used, old: spec("i", zones, "example.com"), new: spec("i", zones),
			want: []string{"spec.dns.defaults"}},
		"own domains without used one": {shoot: used, secret: domainSecret("example.com"), old: spec("i", zones),
			new: spec("i", zones, "c"), want: []string{"spec.dns.defaults"}},
		"own domains without unused one": {shoot: used, secret: domainSecret("other.com"), old: spec("i", zones), new: spec("i", zones, "c")},
		"own domains with used one": {shoot: used, secret: domainSecret("example.com"), old: spec("i", zones),
			new: spec("i", zones, "example.com")},
		"name that only ends like domains": {shoot: shootOn("seed", "myexample.com"), old: spec("i", zones, "example.com"),
			new: spec("i", zones)},
	} {
		t.Run(name, func(t *testing.T) {
			reader := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{gardencore.Resource("shoots"): {test.shoot}}}
			kube := fake.NewClientset()
			if test.secret != nil {
				kube = fake.NewClientset(test.secret)
			}
			errs, err := ValidateChange(context.Background(), reader, kube, "seed", test.new, test.old, field.NewPath("spec"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range errs {
				got = append(got, e.Field)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestDefaultDomainSecrets(t *testing.T) {
	got, err := DefaultDomainSecrets(context.Background(), fake.NewClientset(domainSecret("example.com")))
	if err != nil || len(got) != 1 || got[0].Domain != "example.com" || got[0].Provider != "local" || got[0].Ref.Name != "d" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := DefaultDomainSecrets(context.Background(), fake.NewClientset(domainSecret(""))); err == nil {
		t.Errorf("got %v for a secret without domain, want an error", got)
	}
}

func TestSetNameLabels(t *testing.T) {
	obj := &metav1.ObjectMeta{Labels: map[string]string{"x": "y", "name.seed.gardener.cloud/old": "true"}}
	SetNameLabels(obj, "seed", "")
	if want := map[string]string{"x": "y", "name.seed.gardener.cloud/seed": "true"}; !maps.Equal(obj.Labels, want) {
		t.Errorf("got %v, want %v", obj.Labels, want)
	}
}

func TestValidateCredentialsType(t *testing.T) {
	identity := &security.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Name: "wi", Namespace: "garden"},
		Spec: security.WorkloadIdentitySpec{TargetSystem: security.TargetSystem{Type: "aws"}}}
	reader := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{security.Resource("workloadidentities"): {identity}}}
	reference := func(kind, name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: "security.gardener.cloud/v1alpha1", Kind: kind, Namespace: "garden", Name: name}
	}
	for name, test := range map[string]struct {
		ref      *corev1.ObjectReference
		provider string
		want     field.ErrorType
	}{
		"none":           {nil, "aws", ""},
		"something else": {reference("Secret", "none"), "aws", ""},
		"same type":      {reference("WorkloadIdentity", "wi"), "aws", ""},
		"other type":     {reference("WorkloadIdentity", "wi"), "gcp", field.ErrorTypeInvalid},
		"missing":        {reference("WorkloadIdentity", "none"), "aws", field.ErrorTypeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			err := ValidateCredentialsType(context.Background(), reader, test.ref, test.provider, field.NewPath("ref"))
			var got field.ErrorType
			if err != nil {
				got = err.(*field.Error).Type
			}
			if got != test.want {
				t.Errorf("got %v, want type %q", err, test.want)
			}
		})
	}
}
