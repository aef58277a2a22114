package graph

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// ofEveryShoot has the edges that every Shoot garden-dev/a causes.
const ofEveryShoot = `
	Namespace garden-dev → Shoot garden-dev/a
	Secret garden-dev/a.ca-cluster → Shoot garden-dev/a
	Secret garden-dev/a.ssh-keypair → Shoot garden-dev/a
	Secret garden-dev/a.ssh-keypair.old → Shoot garden-dev/a
	Secret garden-dev/a.monitoring → Shoot garden-dev/a
	InternalSecret garden-dev/a.ca-client → Shoot garden-dev/a
	ConfigMap garden-dev/a.ca-cluster → Shoot garden-dev/a
	ConfigMap garden-dev/a.ca-kubelet → Shoot garden-dev/a
	ShootState garden-dev/a → Shoot garden-dev/a
`

func aShoot(change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: meta("garden-dev", "a")}
	change(shoot)
	return shoot
}

func TestEdgesOfShoot(t *testing.T) {
	type S = *gardencorev1beta1.Shoot
	profile := func(kind, name string) *gardencorev1beta1.CloudProfileReference {
		return &gardencorev1beta1.CloudProfileReference{Kind: kind, Name: name}
	}
	var cases []edgeCase
	add := func(name string, change func(S), edges string) {
		cases = append(cases, edgeCase{name, aShoot(change), nil, "Shoot garden-dev/a", ofEveryShoot + edges})
	}
	add("not scheduled", func(S) {}, "")
	add("scheduled", func(s S) { s.Spec.SeedName = to("x") }, `Shoot garden-dev/a → Seed x`)
	add("migrating", func(s S) { s.Spec.SeedName, s.Status.SeedName = to("y"), to("x") }, `
		Shoot garden-dev/a → Seed x
		Shoot garden-dev/a → Seed y`)
	add("on the seed of spec and status", func(s S) { s.Spec.SeedName, s.Status.SeedName = to("x"), to("x") }, `Shoot garden-dev/a → Seed x`)
	add("cloud profile", func(s S) { s.Spec.CloudProfile = profile("CloudProfile", "local") }, `CloudProfile local → Shoot garden-dev/a`)
	add("cloud profile without kind", func(s S) { s.Spec.CloudProfile = profile("", "local") }, `CloudProfile local → Shoot garden-dev/a`)
	add("cloud profile by name", func(s S) { s.Spec.CloudProfileName = to("local") }, `CloudProfile local → Shoot garden-dev/a`)
	add("the reference goes before the name", func(s S) {
		s.Spec.CloudProfile, s.Spec.CloudProfileName = profile("CloudProfile", "local"), to("other")
	}, `CloudProfile local → Shoot garden-dev/a`)
	add("namespaced cloud profile", func(s S) { s.Spec.CloudProfile = profile("NamespacedCloudProfile", "mine") },
		`NamespacedCloudProfile garden-dev/mine → Shoot garden-dev/a`)
	add("cloud profile of an unknown kind", func(s S) { s.Spec.CloudProfile = profile("Secret", "mine") }, "")
	add("bindings", func(s S) { s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = to("sb"), to("cb") }, `
		SecretBinding garden-dev/sb → Shoot garden-dev/a
		CredentialsBinding garden-dev/cb → Shoot garden-dev/a`)
	add("exposure class", func(s S) { s.Spec.ExposureClassName = to("internet") }, `ExposureClass internet → Shoot garden-dev/a`)
	add("empty names", func(s S) {
		s.Spec.SeedName, s.Spec.SecretBindingName, s.Spec.CloudProfileName = to(""), to(""), to("")
		s.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
			StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{}}
	}, "")
	add("audit policy, authentication, authorization", withKubeAPIServer, `
		ConfigMap garden-dev/audit → Shoot garden-dev/a
		ConfigMap garden-dev/authn → Shoot garden-dev/a
		ConfigMap garden-dev/authz → Shoot garden-dev/a
		Secret garden-dev/kubeconfig-1 → Shoot garden-dev/a
		Secret garden-dev/kubeconfig-2 → Shoot garden-dev/a`)
	add("DNS credentials", func(s S) {
		s.Spec.DNS = &gardencorev1beta1.DNS{Providers: []gardencorev1beta1.DNSProvider{
			{CredentialsRef: crossRef("v1 Secret dns")},
			{CredentialsRef: crossRef("security.gardener.cloud/v1alpha1 WorkloadIdentity dns")},
			{CredentialsRef: crossRef("v1 ConfigMap dns")}, {},
		}}
	}, `
		Secret garden-dev/dns → Shoot garden-dev/a
		WorkloadIdentity garden-dev/dns → Shoot garden-dev/a`)
	add("resources", func(s S) {
		s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{
			resource("v1 Secret s"), resource("v1 ConfigMap c"), resource("security.gardener.cloud/v1alpha1 WorkloadIdentity w"),
			resource("v1 WorkloadIdentity no"), resource("v2 Secret no"), resource("apps/v1 Deployment no"),
			resource("core.gardener.cloud/v1beta1 InternalSecret no"),
		}
	}, `
		Secret garden-dev/s → Shoot garden-dev/a
		ConfigMap garden-dev/c → Shoot garden-dev/a
		WorkloadIdentity garden-dev/w → Shoot garden-dev/a`)
	runEdgeCases(t, cases)
}

func withKubeAPIServer(s *gardencorev1beta1.Shoot) {
	configMap := ref("v1 ConfigMap ignored/audit")
	configMap.Name = "audit" // its namespace is ignored: it is that of the shoot
	s.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
		AuditConfig:              &gardencorev1beta1.AuditConfig{AuditPolicy: &gardencorev1beta1.AuditPolicy{ConfigMapRef: &configMap}},
		StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "authn"},
		StructuredAuthorization: &gardencorev1beta1.StructuredAuthorization{
			ConfigMapName: "authz",
			Kubeconfigs:   []gardencorev1beta1.AuthorizerKubeconfigReference{{SecretName: "kubeconfig-1"}, {SecretName: "kubeconfig-2"}},
		},
	}
}

func TestEdgesOfShootWithManagedIssuer(t *testing.T) {
	var cases []edgeCase
	for name, c := range map[string]struct{ issuer, uid, technicalID, edges string }{
		"managed": {"managed", "1-2", "shoot--dev--a", `Secret gardener-system-shoot-issuer/dev--1-2 → Shoot garden-dev/a`},
		"project not as its namespace": {"managed", "1-2", "shoot--other--a",
			`Secret gardener-system-shoot-issuer/other--1-2 → Shoot garden-dev/a`},
		"no technical ID yet": {"managed", "1-2", "", `Secret gardener-system-shoot-issuer/dev--1-2 → Shoot garden-dev/a`},
		"technical ID of another shoot": {"managed", "1-2", "shoot--other--b",
			`Secret gardener-system-shoot-issuer/dev--1-2 → Shoot garden-dev/a`},
		"no UID":     {"managed", "", "shoot--dev--a", ""},
		"own issuer": {"own", "1-2", "shoot--dev--a", `Secret gardener-system-shoot-issuer/dev--1-2 → Shoot garden-dev/a`},
	} {
		cases = append(cases, edgeCase{name, aShoot(func(s *gardencorev1beta1.Shoot) {
			s.Annotations = map[string]string{"authentication.gardener.cloud/issuer": c.issuer}
			s.UID, s.Status.TechnicalID = "", c.technicalID
			if c.uid != "" {
				s.UID = "1-2"
			}
		}), nil, "Shoot garden-dev/a", ofEveryShoot + c.edges})
	}
	runEdgeCases(t, cases)
}
