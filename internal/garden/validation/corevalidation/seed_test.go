package corevalidation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

func validSeed() *gardencore.Seed {
	dns := gardencore.SeedDNSProviderConfig{Type: "local", Domain: "internal.example.org", CredentialsRef: *secretRef("dns", "garden")}
	external := dns
	external.Domain = "example.org"
	return &gardencore.Seed{ObjectMeta: objectMeta("seed", ""), Spec: gardencore.SeedSpec{
		Provider: gardencore.SeedProvider{Type: "local", Region: "here", Zones: []string{"a", "b"}},
		Networks: gardencore.SeedNetworks{Nodes: ptr.To("10.0.0.0/16"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16",
			ShootDefaults: &gardencore.ShootNetworks{Pods: ptr.To("10.1.0.0/16"), Services: ptr.To("10.2.0.0/16")}},
		Ingress: &gardencore.Ingress{Domain: "ingress.example.org", Controller: gardencore.IngressController{Kind: "nginx"}},
		DNS: gardencore.SeedDNS{Provider: &gardencore.SeedDNSProvider{Type: "local", CredentialsRef: secretRef("dns", "garden")},
			Internal: &dns, Defaults: []gardencore.SeedDNSProviderConfig{external}},
		Backup: &gardencore.Backup{Provider: "local", CredentialsRef: secretRef("backup", "garden")},
		Taints: []gardencore.SeedTaint{{Key: "a"}, {Key: "a", Value: ptr.To("b")}},
		Volume: &gardencore.SeedVolume{
			MinimumSize: quantity("1Gi"), Providers: []gardencore.SeedVolumeProvider{{Purpose: "etcd", Name: "flexible"}}},
		Settings: &gardencore.SeedSettings{
			ExcessCapacityReservation: &gardencore.SeedSettingExcessCapacityReservation{
				Configs: []gardencore.SeedSettingExcessCapacityReservationConfig{
					{Resources: corev1.ResourceList{"cpu": *quantity("1")}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}},
			LoadBalancerServices: &gardencore.SeedSettingLoadBalancerServices{
				Annotations: map[string]string{"a": "b"}, Class: ptr.To("x/y"), ExternalTrafficPolicy: ptr.To(corev1.ServiceExternalTrafficPolicyLocal),
				Zones: []gardencore.SeedSettingLoadBalancerServicesZones{{Name: "a"}}},
			VerticalPodAutoscaler: &gardencore.SeedSettingVerticalPodAutoscaler{
				FeatureGates: map[string]bool{"PerVPAConfig": true}, MaxAllowed: corev1.ResourceList{"cpu": *quantity("8")}},
			TopologyAwareRouting: &gardencore.SeedSettingTopologyAwareRouting{Enabled: true},
			ZoneSelection:        &gardencore.SeedSettingZoneSelection{Mode: gardencore.ZoneSelectionModePrefer},
		},
	}}
}

func TestValidateSeed(t *testing.T) {
	type s = gardencore.Seed
	runMutations(t, validSeed, ValidateSeed, []mutation[s]{
		{"empty spec", func(s *s) { s.Spec = gardencore.SeedSpec{} },
			[]string{"Required spec.provider.type", "Required spec.provider.region", "Invalid spec.networks.pods", "Invalid spec.networks.services",
				"Required spec.ingress", "Required spec.dns.internal"}},
		{"name", func(s *s) { s.Name = "a.b" }, []string{"Invalid metadata.name"}},
		{"operation", func(s *s) { s.Annotations = map[string]string{constants.GardenerOperation: "reconcile"} }, nil},
		{"unknown operation", func(s *s) { s.Annotations = map[string]string{constants.GardenerOperation: "x"} },
			[]string{"NotSupported metadata.annotations[gardener.cloud/operation]"}},
		{"repeated zone", func(s *s) { s.Spec.Provider.Zones = []string{"a", "a", "a"} }, []string{"Duplicate spec.provider.zones[1]"}},
		{"taints", func(s *s) { s.Spec.Taints = []gardencore.SeedTaint{{Key: "a"}, {Key: "a"}, {}} },
			[]string{"Duplicate spec.taints[1]", "Required spec.taints[2].key"}},
		{"volume", func(s *s) {
			s.Spec.Volume.MinimumSize = quantity("-1")
			s.Spec.Volume.Providers = append(s.Spec.Volume.Providers, gardencore.SeedVolumeProvider{},
				gardencore.SeedVolumeProvider{Purpose: "etcd", Name: "a"})
		}, []string{
			"Invalid spec.volume.minimumSize", "Required spec.volume.providers[1].purpose", "Required spec.volume.providers[1].name",
			"Duplicate spec.volume.providers[2].purpose"}},
		{"backup", func(s *s) { s.Spec.Backup = &gardencore.Backup{} },
			[]string{"Required spec.backup.provider", "Invalid spec.backup.region", "Required spec.backup.credentialsRef"}},
		{"backup with another provider", func(s *s) { s.Spec.Backup.Provider = "other"; s.Spec.Backup.Region = ptr.To("there") }, nil},
		{"ingress", func(s *s) { s.Spec.Ingress = &gardencore.Ingress{} },
			[]string{"Required spec.ingress.domain", "NotSupported spec.ingress.controller.kind"}},
		{"ingress domain", func(s *s) { s.Spec.Ingress.Domain = "_" }, []string{"Invalid spec.ingress.domain"}},
		{"no DNS provider", func(s *s) { s.Spec.DNS.Provider = nil }, []string{"Required spec.dns.provider"}},
		{"DNS provider", func(s *s) { *s.Spec.DNS.Provider = gardencore.SeedDNSProvider{} },
			[]string{"Required spec.dns.provider.type", "Required spec.dns.provider.credentialsRef"}},
		{"internal DNS", func(s *s) {
			s.Spec.DNS.Internal.Type, s.Spec.DNS.Internal.Domain, s.Spec.DNS.Internal.CredentialsRef.Kind = "", "_", "ConfigMap"
		}, []string{
			"Required spec.dns.internal.type", "Invalid spec.dns.internal.domain", "NotSupported spec.dns.internal.credentialsRef"}},
		{"default DNS", func(s *s) { s.Spec.DNS.Defaults = append(s.Spec.DNS.Defaults, s.Spec.DNS.Defaults[0]) },
			[]string{"Duplicate spec.dns.defaults[1].domain"}},
		{"extensions", func(s *s) { s.Spec.Extensions = []gardencore.Extension{{}} }, []string{"Required spec.extensions[0].type"}},
		{"resources", func(s *s) { s.Spec.Resources = []gardencore.NamedResourceReference{{}} },
			[]string{"Required spec.resources[0].name", "Required spec.resources[0].resourceRef.apiVersion",
				"Required spec.resources[0].resourceRef.kind", "Required spec.resources[0].resourceRef.name",
				"NotSupported spec.resources[0].resourceRef"}},
	})
}

func TestValidateSeedNetworks(t *testing.T) {
	type s = gardencore.Seed
	runMutations(t, validSeed, ValidateSeed, []mutation[s]{
		{"families", func(s *s) {
			s.Spec.Networks.IPFamilies = []gardencore.IPFamily{"IPv4", "IPv4", "IPv5"}
			s.Spec.Networks.Pods = ""
		}, []string{"Duplicate spec.networks.ipFamilies[1]", "NotSupported spec.networks.ipFamilies[2]"}},
		{"other family", func(s *s) { s.Spec.Networks.IPFamilies = []gardencore.IPFamily{"IPv6"} },
			[]string{"Invalid spec.networks.nodes", "Invalid spec.networks.pods", "Invalid spec.networks.services",
				"Invalid spec.networks.shootDefaults.pods", "Invalid spec.networks.shootDefaults.services"}},
		{"both families", func(s *s) {
			s.Spec.Networks.IPFamilies = []gardencore.IPFamily{"IPv4", "IPv6"}
			s.Spec.Networks.Nodes, s.Spec.Networks.ShootDefaults.Pods = ptr.To("2001:db8::/64"), ptr.To("2001:db8:1::/64")
		}, nil},
		{"IPv6 defaults as in the seed", func(s *s) {
			s.Spec.Networks.IPFamilies = []gardencore.IPFamily{"IPv4", "IPv6"}
			s.Spec.Networks.Nodes, s.Spec.Networks.ShootDefaults.Pods = ptr.To("2001:db8::/64"), ptr.To("2001:db8::/64")
		}, []string{"Invalid spec.networks.shootDefaults.pods"}},
		{"overlap", func(s *s) { s.Spec.Networks.Services = s.Spec.Networks.Pods }, []string{"Invalid spec.networks.services"}},
		{"overlapping defaults", func(s *s) { s.Spec.Networks.ShootDefaults.Services = s.Spec.Networks.ShootDefaults.Pods },
			[]string{"Invalid spec.networks.shootDefaults.services"}},
		{"malformed", func(s *s) { s.Spec.Networks.Pods = "10.1.0.0"; s.Spec.Networks.Services = "10.0.0.0/16" },
			[]string{"Invalid spec.networks.pods"}},
		{"too large services", func(s *s) { s.Spec.Networks.Services = "12.0.0.0/7" }, []string{"Invalid spec.networks.services"}},
		{"reserved", func(s *s) {
			s.Spec.Networks.Pods, s.Spec.Networks.ShootDefaults.Pods = "241.0.0.0/16", ptr.To("244.0.0.0/16")
		}, []string{"Invalid spec.networks.pods", "Invalid spec.networks.shootDefaults.pods"}},
	})
}

func TestValidateSeedSettings(t *testing.T) {
	type s = gardencore.Seed
	const lbPath, vpaPath = "spec.settings.loadBalancerServices", "spec.settings.verticalPodAutoscaler"
	runMutations(t, validSeed, ValidateSeed, []mutation[s]{
		{"none", func(s *s) { s.Spec.Settings = nil }, nil},
		{"capacity", func(s *s) {
			s.Spec.Settings.ExcessCapacityReservation.Configs = []gardencore.SeedSettingExcessCapacityReservationConfig{
				{}, {Resources: corev1.ResourceList{"cpu": *quantity("-1")},
					Tolerations: []corev1.Toleration{{}, {Key: "?", Value: "?"}, {Key: "a", Operator: "x", Effect: "x"},
						{Operator: "Exists", Value: "a", TolerationSeconds: ptr.To[int64](1)}}}}
		}, []string{"Required spec.settings.excessCapacityReservation.configs[0].resources",
			"Invalid spec.settings.excessCapacityReservation.configs[1].resources.cpu",
			"Invalid spec.settings.excessCapacityReservation.configs[1].tolerations[0].operator",
			"Invalid spec.settings.excessCapacityReservation.configs[1].tolerations[1].key",
			"Invalid spec.settings.excessCapacityReservation.configs[1].tolerations[1].operator",
			"NotSupported spec.settings.excessCapacityReservation.configs[1].tolerations[2].operator",
			"NotSupported spec.settings.excessCapacityReservation.configs[1].tolerations[2].effect",
			"Invalid spec.settings.excessCapacityReservation.configs[1].tolerations[3].effect",
			"Invalid spec.settings.excessCapacityReservation.configs[1].tolerations[3].operator"}},
		{"load balancers", func(s *s) {
			*s.Spec.Settings.LoadBalancerServices = gardencore.SeedSettingLoadBalancerServices{
				Annotations: map[string]string{"?": ""}, Class: ptr.To("?"), ExternalTrafficPolicy: ptr.To[corev1.ServiceExternalTrafficPolicy]("x"),
				Zones: []gardencore.SeedSettingLoadBalancerServicesZones{{Name: "a"}, {Name: "a"},
					{Name: "c", Annotations: map[string]string{"?": ""}, ExternalTrafficPolicy: ptr.To[corev1.ServiceExternalTrafficPolicy]("x")}}}
		}, []string{"Invalid " + lbPath + ".annotations", "Invalid " + lbPath + ".class",
			"NotSupported " + lbPath + ".externalTrafficPolicy", "Duplicate " + lbPath + ".zones[1].name",
			"NotFound " + lbPath + ".zones[2].name", "Invalid " + lbPath + ".zones[2].annotations",
			"NotSupported " + lbPath + ".zones[2].externalTrafficPolicy"}},
		{"one zone", func(s *s) { s.Spec.Provider.Zones = []string{"a"} },
			[]string{"Forbidden " + lbPath + ".zones", "Forbidden spec.settings.topologyAwareRouting.enabled"}},
		{"no zone", func(s *s) {
			s.Spec.Provider.Zones = nil
			s.Spec.Settings = &gardencore.SeedSettings{ZoneSelection: &gardencore.SeedSettingZoneSelection{}}
		}, []string{
			"Forbidden spec.settings.zoneSelection", "NotSupported spec.settings.zoneSelection.mode"}},
		{"autoscaler", func(s *s) {
			s.Spec.Settings.VerticalPodAutoscaler.FeatureGates = map[string]bool{"Foo": true}
			s.Spec.Settings.VerticalPodAutoscaler.MaxAllowed = corev1.ResourceList{"storage": *quantity("1"), "memory": *quantity("-1")}
		}, []string{"Invalid " + vpaPath + ".featureGates.Foo", "NotSupported " + vpaPath + ".maxAllowed.storage",
			"Invalid " + vpaPath + ".maxAllowed.memory"}},
	})
}

func TestValidateSeedUpdate(t *testing.T) {
	type s = gardencore.Seed
	runMutations(t, validSeed, after(validSeed, ValidateSeedUpdate), []mutation[s]{
		{"networks", func(s *s) {
			s.Spec.Networks = gardencore.SeedNetworks{Pods: "11.0.0.0/16", Services: "11.1.0.0/16", IPFamilies: []gardencore.IPFamily{"IPv4"}}
		}, []string{
			"Invalid spec.networks.pods", "Invalid spec.networks.services", "Invalid spec.networks.nodes", "Invalid spec.networks.ipFamilies"}},
		{"shoot defaults", func(s *s) { s.Spec.Networks.ShootDefaults = nil }, nil},
		{"ingress domain", func(s *s) { s.Spec.Ingress.Domain = "other.org" }, []string{"Invalid spec.ingress.domain"}},
		{"backup", func(s *s) { s.Spec.Backup.Provider, s.Spec.Backup.Region = "other", ptr.To("there") },
			[]string{"Invalid spec.backup.provider", "Invalid spec.backup.region"}},
		{"no backup", func(s *s) { s.Spec.Backup = nil }, []string{"Invalid spec.backup"}},
		{"no default domains", func(s *s) { s.Spec.DNS.Defaults = nil }, []string{"Forbidden spec.dns.defaults"}},
	})
	withOperation := func(operation string) *gardencore.Seed {
		seed := validSeed()
		seed.Annotations = map[string]string{constants.GardenerOperation: operation}
		return seed
	}
	wantErrors(t, ValidateSeedUpdate(withOperation("reconcile"), withOperation("renew-kubeconfig")),
		"Forbidden metadata.annotations[gardener.cloud/operation]")
	wantErrors(t, ValidateSeedUpdate(withOperation("reconcile"), withOperation("reconcile")))
	wantErrors(t, ValidateSeedUpdate(withOperation("reconcile"), validSeed()))

	identified := validSeed()
	identified.Status.ClusterIdentity = ptr.To("id")
	wantErrors(t, ValidateSeedStatusUpdate(identified, validSeed()))
	wantErrors(t, ValidateSeedStatusUpdate(validSeed(), identified), "Invalid status.clusterIdentity")
}

func TestValidateSeedTemplate(t *testing.T) {
	template := func(change func(*gardencore.SeedSpec)) *gardencore.SeedTemplate {
		seed := validSeed()
		change(&seed.Spec)
		return &gardencore.SeedTemplate{Spec: seed.Spec}
	}
	minimal := template(func(s *gardencore.SeedSpec) {
		*s = gardencore.SeedSpec{DNS: gardencore.SeedDNS{Internal: s.DNS.Internal}}
	})
	wantErrors(t, ValidateSeedTemplate(minimal, testPath))
	minimal.Labels, minimal.Annotations = map[string]string{"?": ""}, map[string]string{"?": ""}
	wantErrors(t, ValidateSeedTemplate(minimal, testPath), "Invalid p.metadata.labels", "Invalid p.metadata.annotations")

	old := template(func(*gardencore.SeedSpec) {})
	changed := template(func(s *gardencore.SeedSpec) { s.Networks.Pods = "11.0.0.0/16" })
	wantErrors(t, ValidateSeedTemplateUpdate(changed, old, testPath), "Invalid p.spec.networks.pods")
}
