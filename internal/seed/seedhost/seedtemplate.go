package seedhost

import (
	"context"
	"fmt"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/seed/provider"
)

// internalDomain is the same for all seeds: a Shoot is migrated only between seeds with the same one, as its addresses stay.
const internalDomain = "internal.gardenlite.local"

// backupSecret and dnsSecret return the names of the Secrets in the namespace garden that a Seed of the local provider
// refers to. Each seed has its own: SeedRestriction lets no gardenlet refer to those of another seed.
func backupSecret(seedName string) string { return statedir.SeedPrefix + seedName + "-backup" }
func dnsSecret(seedName string) string    { return statedir.SeedPrefix + seedName + "-dns" }

// SeedExists reports whether a Seed is registered in a garden.
func SeedExists(ctx context.Context, config *rest.Config, seedName string) (bool, error) {
	garden, err := newClient(config)
	if err != nil {
		return false, err
	}
	err = garden.Get(ctx, client.ObjectKey{Name: seedName}, &gardencorev1beta1.Seed{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Seed %s: %w", seedName, err)
	}
	return err == nil, nil
}

// PrepareSeed creates the Secrets in a garden that a Seed of the local provider refers to, with the operator's permissions.
// They are empty: the local provider reads no credentials.
func PrepareSeed(ctx context.Context, config *rest.Config, seedName string) error {
	garden, err := newClient(config)
	if err != nil {
		return err
	}
	for _, name := range []string{backupSecret(seedName), dnsSecret(seedName)} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: constants.GardenNamespace, Name: name,
				Labels: map[string]string{
					constants.LabelShootProviderPrefix + provider.Type: "true",
					constants.LabelPrefixSeedName + seedName:           "true", // otherwise the gardenlet may not refer to it
				},
			},
			Type: corev1.SecretTypeOpaque,
		}
		if err := garden.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating Secret %s/%s, which Seed %s refers to: %w", secret.Namespace, name, seedName, err)
		}
	}
	return nil
}

// ownSeedSecrets makes the Seed the owner of the Secrets of PrepareSeed, so that they are deleted with it.
func ownSeedSecrets(ctx context.Context, garden client.Client, seed *gardencorev1beta1.Seed) error {
	for _, name := range []string{backupSecret(seed.Name), dnsSecret(seed.Name)} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}
		patch := client.MergeFrom(secret.DeepCopy())
		secret.OwnerReferences = []metav1.OwnerReference{seedOwner(seed)}
		if err := garden.Patch(ctx, secret, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("making Seed %s the owner of Secret %s/%s: %w", seed.Name, constants.GardenNamespace, name, err)
		}
	}
	return nil
}

func seedOwner(seed *gardencorev1beta1.Seed) metav1.OwnerReference {
	return *metav1.NewControllerRef(seed, gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))
}

// gardenletConfiguration returns the configuration of the gardenlet of a seed of the landscape.
func gardenletConfiguration(name string) *gardenletconfigv1alpha1.GardenletConfiguration {
	return &gardenletconfigv1alpha1.GardenletConfiguration{
		SeedConfig: &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: *seedTemplate(name)},
	}
}

// Region and Zones are those of the landscape's own seeds.
const Region = "local"

var Zones = []string{"local-a", "local-b", "local-c"}

// seedTemplate returns the template of the Seed that a gardenlet registers.
func seedTemplate(name string) *gardencorev1beta1.SeedTemplate {
	secret := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: constants.GardenNamespace, Name: name}
	}
	return &gardencorev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: provider.Type, Region: Region, Zones: Zones},
			Networks: gardencorev1beta1.SeedNetworks{
				Nodes: ptr.To("10.240.0.0/16"), Pods: "10.241.0.0/16", Services: "10.242.0.0/16",
			},
			Backup: &gardencorev1beta1.Backup{Provider: provider.Type, CredentialsRef: ptr.To(secret(backupSecret(name)))},
			DNS: gardencorev1beta1.SeedDNS{
				Provider: &gardencorev1beta1.SeedDNSProvider{Type: provider.Type, CredentialsRef: ptr.To(secret(dnsSecret(name)))},
				Internal: &gardencorev1beta1.SeedDNSProviderConfig{
					Type: provider.Type, Domain: internalDomain, CredentialsRef: secret(dnsSecret(name)),
				},
			},
			Ingress: &gardencorev1beta1.Ingress{
				Domain: "ingress." + name + ".gardenlite.local", Controller: gardencorev1beta1.IngressController{Kind: "nginx"},
			},
			Settings: &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: true}},
		},
	}
}
