package landscape

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/seed/extensions"
)

// The Secrets that a Seed refers to, in the namespace garden: manifests/landscape has them.
const (
	backupSecret = "seed-backup"
	dnsSecret    = "seed-dns"
)

// seedTemplate is what the gardenlet of a seed registers.
func seedTemplate(name string) *gardencorev1beta1.SeedTemplate {
	secret := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: constants.GardenNamespace, Name: name}
	}
	return &gardencorev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: extensions.DefaultProvider, Region: "local", Zones: []string{"local-a", "local-b", "local-c"}},
			Networks: gardencorev1beta1.SeedNetworks{
				Nodes: ptr.To("10.240.0.0/16"), Pods: "10.241.0.0/16", Services: "10.242.0.0/16",
			},
			Backup: &gardencorev1beta1.Backup{Provider: extensions.DefaultProvider, CredentialsRef: ptr.To(secret(backupSecret))},
			DNS: gardencorev1beta1.SeedDNS{
				Provider: &gardencorev1beta1.SeedDNSProvider{Type: extensions.DefaultProvider, CredentialsRef: ptr.To(secret(dnsSecret))},
				Internal: &gardencorev1beta1.SeedDNSProviderConfig{
					Type: extensions.DefaultProvider, Domain: "internal." + name + ".gardenlite.local", CredentialsRef: secret(dnsSecret),
				},
			},
			Ingress: &gardencorev1beta1.Ingress{
				Domain: "ingress." + name + ".gardenlite.local", Controller: gardencorev1beta1.IngressController{Kind: "nginx"},
			},
			Settings: &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: true}},
		},
	}
}
