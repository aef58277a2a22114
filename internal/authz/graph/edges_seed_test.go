package graph

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const ofEverySeed = `
	Namespace seed-x → Seed x
	ConfigMap kube-system/cluster-identity → Seed x
	Lease gardener-system-seed-lease/x → Seed x
`

func TestEdgesOfSeed(t *testing.T) {
	type spec = gardencorev1beta1.SeedSpec
	dns := func(text string) gardencorev1beta1.SeedDNSProviderConfig {
		return gardencorev1beta1.SeedDNSProviderConfig{CredentialsRef: ref(text)}
	}
	var cases []edgeCase
	add := func(name string, s spec, edges string) {
		cases = append(cases, edgeCase{name, &gardencorev1beta1.Seed{ObjectMeta: meta("", "x"), Spec: s}, nil, "Seed x", ofEverySeed + edges})
	}
	add("plain", spec{}, "")
	add("backup", spec{Backup: &gardencorev1beta1.Backup{CredentialsRef: to(ref("v1 Secret garden/backup"))}}, `Secret garden/backup → Seed x`)
	add("backup without credentials", spec{Backup: &gardencorev1beta1.Backup{}}, "")
	add("backup by workload identity",
		spec{Backup: &gardencorev1beta1.Backup{CredentialsRef: to(ref("security.gardener.cloud/v1alpha1 WorkloadIdentity garden/backup"))}},
		`WorkloadIdentity garden/backup → Seed x`)
	add("backup by something else", spec{Backup: &gardencorev1beta1.Backup{CredentialsRef: to(ref("v1 ConfigMap garden/backup"))}}, "")
	add("DNS", spec{DNS: gardencorev1beta1.SeedDNS{
		Provider: &gardencorev1beta1.SeedDNSProvider{CredentialsRef: to(ref("v1 Secret garden/dns"))},
		Internal: to(dns("v1 Secret garden/internal")),
		Defaults: []gardencorev1beta1.SeedDNSProviderConfig{
			dns("v1 Secret garden/default"), dns("security.gardener.cloud/v1alpha1 WorkloadIdentity garden/default")},
	}}, `
		Secret garden/dns → Seed x
		Secret garden/internal → Seed x
		Secret garden/default → Seed x
		WorkloadIdentity garden/default → Seed x`)
	add("resources", spec{Resources: []gardencorev1beta1.NamedResourceReference{
		resource("v1 Secret s"), resource("v1 ConfigMap c"), resource("security.gardener.cloud/v1alpha1 WorkloadIdentity w"),
		resource("apps/v1 Deployment no"),
	}}, `
		Secret garden/s → Seed x
		ConfigMap garden/c → Seed x
		WorkloadIdentity garden/w → Seed x`)
	runEdgeCases(t, cases)
}

const (
	withBackup = `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","seedConfig":
		{"spec":{"backup":{"provider":"local","credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"backup"}}}}}`
	withResources = `{"seedConfig":{"spec":{"resources":[
		{"name":"s","resourceRef":{"apiVersion":"v1","kind":"Secret","name":"s"}},
		{"name":"w","resourceRef":{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","name":"w"}}]}}}`
	renew = "gardener.cloud/operation"
	// the first 6 hex digits of the SHA-256 of "garden--x"
	tokenOfX = "bootstrap-token-f43453"
)

func managedSeedOf(namespace string, bootstrap *seedmanagementv1alpha1.Bootstrap, config string,
	operation string) *seedmanagementv1alpha1.ManagedSeed {
	m := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: meta(namespace, "x")}
	m.Annotations = map[string]string{renew: operation}
	m.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "shoot"}
	m.Spec.Gardenlet = seedmanagementv1alpha1.GardenletConfig{Bootstrap: bootstrap, Config: runtime.RawExtension{Raw: []byte(config)}}
	return m
}

func TestEdgesOfManagedSeed(t *testing.T) {
	token, account, none := to(seedmanagementv1alpha1.BootstrapToken), to(seedmanagementv1alpha1.BootstrapServiceAccount),
		to(seedmanagementv1alpha1.BootstrapNone)
	const always = `
		Seed x → ManagedSeed garden/x
		ManagedSeed garden/x → Shoot garden/shoot
	`
	const byToken = always + `Secret kube-system/` + tokenOfX + ` → ManagedSeed garden/x`
	const byAccount = always + `
		ServiceAccount garden/gardenlet-bootstrap-x → ManagedSeed garden/x
		ClusterRoleBinding gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-x → ManagedSeed garden/x`
	valid, expired := gardenWith("x", noon.Add(time.Hour)), gardenWith("x", noon.Add(-time.Second))

	var cases []edgeCase
	add := func(name string, ctx Objects, m *seedmanagementv1alpha1.ManagedSeed, edges string) {
		cases = append(cases, edgeCase{name, m, ctx, "ManagedSeed garden/x", edges})
	}
	add("no Seed yet, by token", garden{}, managedSeedOf("garden", token, "", ""), byToken)
	add("no Seed yet, by service account", garden{}, managedSeedOf("garden", account, "", ""), byAccount)
	add("no Seed yet, not to be bootstrapped", garden{}, managedSeedOf("garden", none, "", ""), always)
	add("no Seed yet, nothing said", garden{}, managedSeedOf("garden", nil, "", ""), always)
	add("another Seed", gardenWith("y", noon), managedSeedOf("garden", token, "", ""), byToken)
	add("bootstrapped", valid, managedSeedOf("garden", token, "", ""), always)
	add("bootstrapped by service account", valid, managedSeedOf("garden", account, "", ""), always)
	add("Seed without expiry", gardenWith("x", time.Time{}), managedSeedOf("garden", token, "", ""), always)
	add("certificate expires just now", gardenWith("x", noon), managedSeedOf("garden", token, "", ""), always)
	add("certificate expired", expired, managedSeedOf("garden", token, "", ""), byToken)
	add("certificate expired, by service account", expired, managedSeedOf("garden", account, "", ""), byAccount)
	add("kubeconfig to be renewed", valid, managedSeedOf("garden", token, "", "renew-kubeconfig"), byToken)
	add("another operation", valid, managedSeedOf("garden", token, "", "reconcile"), always)
	add("backup of its seed template", valid, managedSeedOf("garden", token, withBackup, ""),
		always+`Secret garden/backup → ManagedSeed garden/x`)
	add("resources of its seed template", garden{}, managedSeedOf("garden", none, withResources, ""), always+`
		Secret garden/s → Seed x
		WorkloadIdentity garden/w → Seed x`)
	add("configuration that is none", valid, managedSeedOf("garden", token, `{"seedConfig":[]}`, ""), always)
	add("field names in another case", valid, managedSeedOf("garden", token,
		`{"SEEDCONFIG":{"spec":{"backup":{"credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"n","name":"s"}}}}}`, ""), always)
	runEdgeCases(t, cases)
	runEdgeCases(t, []edgeCase{
		{"in another namespace it is no seed's", managedSeedOf("garden-dev", token, withBackup, ""), garden{},
			"ManagedSeed garden-dev/x", `ManagedSeed garden-dev/x → Shoot garden-dev/shoot`},
	})
	if _, edges, _ := EdgesOf(managedSeedOf("garden", token, "", ""), nil); len(edges) != 2 {
		t.Errorf("without knowing the Seeds: %v", edges)
	}
}

func TestEdgesOfGardenlet(t *testing.T) {
	gardenlet := func(namespace, config, operation string) *seedmanagementv1alpha1.Gardenlet {
		g := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta(namespace, "x")}
		g.Annotations = map[string]string{renew: operation}
		g.Spec.Config = runtime.RawExtension{Raw: []byte(config)}
		return g
	}
	const always = "Gardenlet garden/x → Seed x\n"
	const token = "Secret kube-system/" + tokenOfX + " → Gardenlet garden/x\n"
	valid := gardenWith("x", noon.Add(time.Hour))
	const owner = "Gardenlet garden/x"
	withChart := func(namespace string) *seedmanagementv1alpha1.Gardenlet {
		g := gardenlet(namespace, "", "")
		g.Spec.Deployment.Helm.OCIRepository.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
		g.Spec.Deployment.Helm.OCIRepository.CABundleSecretRef = &corev1.LocalObjectReference{Name: "ca"}
		return g
	}
	runEdgeCases(t, []edgeCase{
		{"no Seed yet", gardenlet("garden", "", ""), garden{}, owner, always + token},
		{"bootstrapped", gardenlet("garden", "", ""), valid, owner, always},
		{"certificate expired", gardenlet("garden", "", ""), gardenWith("x", noon.Add(-time.Second)), owner, always + token},
		{"kubeconfig to be renewed", gardenlet("garden", "", "renew-kubeconfig"), valid, owner, always + token},
		{"backup of its seed template", gardenlet("garden", withBackup, ""), valid, owner, always + "Secret garden/backup → Gardenlet garden/x"},
		{"chart", withChart("garden"), valid, owner, always + "Secret garden/pull → Gardenlet garden/x\nSecret garden/ca → Gardenlet garden/x"},
		{"chart in another namespace", withChart("garden-dev"), valid, "Gardenlet garden-dev/x", ""},
		{"in another namespace", gardenlet("garden-dev", withBackup, ""), garden{}, "Gardenlet garden-dev/x", ""},
	})
}
