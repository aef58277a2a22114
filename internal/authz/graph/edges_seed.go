package graph

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

const seedNamespacePrefix = "seed-"

func seedEdges(seed *gardencorev1beta1.Seed) *edgeBuilder {
	b := edgesFor(KindSeed, "", seed.Name)
	b.from(KindNamespace, "", seedNamespacePrefix+seed.Name)
	b.from(KindConfigMap, metav1.NamespaceSystem, v1beta1constants.ClusterIdentity)
	b.from(KindLease, gardencorev1beta1.GardenerSeedLeaseNamespace, seed.Name)
	if seed.Spec.Backup != nil {
		b.fromCredentials(seed.Spec.Backup.CredentialsRef)
	}
	if seed.Spec.DNS.Provider != nil {
		b.fromCredentials(seed.Spec.DNS.Provider.CredentialsRef)
	}
	if seed.Spec.DNS.Internal != nil {
		b.fromCredentials(&seed.Spec.DNS.Internal.CredentialsRef)
	}
	for i := range seed.Spec.DNS.Defaults {
		b.fromCredentials(&seed.Spec.DNS.Defaults[i].CredentialsRef)
	}
	for _, resource := range seed.Spec.Resources {
		b.fromResource(v1beta1constants.GardenNamespace, resource.ResourceRef, KindSecret, KindConfigMap, KindWorkloadIdentity)
	}
	return b
}

// managedSeedEdges adds the edge from the Seed only in the garden namespace, the only one in which a ManagedSeed is
// allowed. A ManagedSeed in another namespace must not give its shoot's seed access to the Seed with its name.
func managedSeedEdges(managedSeed *seedmanagementv1alpha1.ManagedSeed, ctx Objects) *edgeBuilder {
	b := edgesFor(KindManagedSeed, managedSeed.Namespace, managedSeed.Name)
	if managedSeed.Spec.Shoot != nil {
		b.to(KindShoot, managedSeed.Namespace, managedSeed.Spec.Shoot.Name)
	}
	if managedSeed.Namespace != v1beta1constants.GardenNamespace {
		return b
	}
	b.from(KindSeed, "", managedSeed.Name)
	template := templateOf(managedSeed.Spec.Gardenlet.Config)
	b.fromBackup(template)
	b.toSeedOfTemplate(managedSeed.Name, template)
	if managedSeed.Spec.Gardenlet.Bootstrap == nil || bootstrapped(managedSeed, ctx) {
		return b
	}
	switch *managedSeed.Spec.Gardenlet.Bootstrap {
	case seedmanagementv1alpha1.BootstrapToken:
		b.from(KindSecret, metav1.NamespaceSystem, bootstraprules.TokenSecret(managedSeed.Namespace, managedSeed.Name))
	case seedmanagementv1alpha1.BootstrapServiceAccount:
		account := bootstraprules.AccountPrefix + managedSeed.Name
		b.from(KindServiceAccount, managedSeed.Namespace, account)
		b.from(KindClusterRoleBinding, "", bootstraprules.BindingPrefix+managedSeed.Namespace+":"+account)
	}
	return b
}

// gardenletEdges adds edges only in the garden namespace, as for a ManagedSeed.
func gardenletEdges(gardenlet *seedmanagementv1alpha1.Gardenlet, ctx Objects) *edgeBuilder {
	b := edgesFor(KindGardenlet, gardenlet.Namespace, gardenlet.Name)
	if gardenlet.Namespace != v1beta1constants.GardenNamespace {
		return b
	}
	b.to(KindSeed, "", gardenlet.Name)
	b.fromBackup(templateOf(gardenlet.Spec.Config))
	chart := &gardenlet.Spec.Deployment.Helm.OCIRepository
	for _, ref := range []*corev1.LocalObjectReference{chart.PullSecretRef, chart.CABundleSecretRef} {
		if ref != nil {
			b.from(KindSecret, gardenlet.Namespace, ref.Name)
		}
	}
	if !bootstrapped(gardenlet, ctx) {
		b.from(KindSecret, metav1.NamespaceSystem, bootstraprules.TokenSecret(gardenlet.Namespace, gardenlet.Name))
	}
	return b
}

// seedTemplate has what causes edges of the seed in a gardenlet's configuration.
type seedTemplate struct {
	Backup    *gardencorev1beta1.Backup                  `json:"backup"`
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources"`
}

// templateOf returns the seed in a gardenlet's configuration, which is empty if the configuration is invalid.
func templateOf(config runtime.RawExtension) seedTemplate {
	raw := config.Raw
	if len(raw) == 0 && config.Object != nil {
		var err error
		if raw, err = json.Marshal(config.Object); err != nil {
			return seedTemplate{}
		}
	}
	var gardenlet struct {
		SeedConfig struct {
			Spec seedTemplate `json:"spec"`
		} `json:"seedConfig"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &gardenlet) != nil {
		return seedTemplate{}
	}
	return gardenlet.SeedConfig.Spec
}

// fromBackup adds an edge from the backup credentials of the seed.
func (b *edgeBuilder) fromBackup(template seedTemplate) {
	if template.Backup != nil {
		b.fromCredentials(template.Backup.CredentialsRef)
	}
}

// toSeedOfTemplate adds edges from the resources of a ManagedSeed's template to the Seed, which its gardenlet reads before it
// registers the Seed.
func (b *edgeBuilder) toSeedOfTemplate(name string, template seedTemplate) {
	seed := edgesFor(KindSeed, "", name)
	for _, resource := range template.Resources {
		seed.fromResource(v1beta1constants.GardenNamespace, resource.ResourceRef, KindSecret, KindConfigMap, KindWorkloadIdentity)
	}
	b.edges = append(b.edges, seed.edges...)
}

// bootstrapped reports whether the gardenlet of the Seed with the object's name is bootstrapped, true if ctx is nil.
func bootstrapped(obj metav1.Object, ctx Objects) bool {
	return ctx == nil || bootstraprules.IsBootstrapped(obj, ctx.Seed(obj.GetName()), ctx.Now())
}
