package installation

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener/gardener/pkg/apis/core"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// extension returns the name of an extension of this kind and type in a set of needs.
func extension(kind, extensionType string) string { return kind + "/" + extensionType }

// needs returns the extensions that a Seed and its Shoots and backups need.
func (s *state) needs(ctx context.Context, d domains) sets.Set[string] {
	needs := s.needsOfBackups(ctx)
	for i := range s.shoots {
		needs.Insert(s.needsOfShoot(&s.shoots[i], d)...)
	}
	// The extensions for the Seed itself are not needed during its deletion, so that they can be cleaned up.
	if s.seed.DeletionTimestamp == nil {
		needs.Insert(s.needsOfSeed()...)
	}
	return needs
}

func (s *state) needsOfBackups(ctx context.Context) sets.Set[string] {
	needs, providers := sets.New[string](), map[string]string{}
	for _, bucket := range s.buckets {
		providers[bucket.Name] = bucket.Spec.Provider.Type
		if isIn(s.seed, bucket.Spec.SeedName) {
			needs.Insert(extension(extensionsv1alpha1.BackupBucketResource, bucket.Spec.Provider.Type))
		}
	}
	for _, entry := range s.entries {
		provider, ok := providers[entry.Spec.BucketName]
		if !ok {
			logf.FromContext(ctx).Info("A BackupEntry is in a BackupBucket that is not there", "namespace", entry.Namespace,
				"backupEntry", entry.Name, "backupBucket", entry.Spec.BucketName)
			continue
		}
		needs.Insert(extension(extensionsv1alpha1.BackupEntryResource, provider))
	}
	return needs
}

func needsOfProvider(provider string) []string {
	return []string{
		extension(extensionsv1alpha1.ControlPlaneResource, provider),
		extension(extensionsv1alpha1.InfrastructureResource, provider),
		extension(extensionsv1alpha1.WorkerResource, provider),
	}
}

func (s *state) needsOfSeed() []string {
	needs := needsOfProvider(s.seed.Spec.Provider.Type)
	if dns := s.seed.Spec.DNS.Provider; dns != nil {
		needs = append(needs, extension(extensionsv1alpha1.DNSRecordResource, dns.Type))
	}
	return append(needs, s.needsOfExtensions(corev1beta1.ClusterTypeSeed, s.seed.Spec.Extensions, false)...)
}

func (s *state) needsOfShoot(shoot *corev1beta1.Shoot, d domains) []string {
	// The extension for the Seed's provider has webhooks that expose the control planes of all providers.
	needs := []string{extension(extensionsv1alpha1.ControlPlaneResource, s.seed.Spec.Provider.Type)}
	if backup := s.seed.Spec.Backup; backup != nil {
		needs = append(needs,
			extension(extensionsv1alpha1.BackupBucketResource, backup.Provider),
			extension(extensionsv1alpha1.BackupEntryResource, backup.Provider))
	}
	workerless := len(shoot.Spec.Provider.Workers) == 0
	if !workerless {
		needs = append(needs, needsOfWorkers(shoot)...)
	}
	for _, provider := range d.providersFor(shoot) {
		if provider != "" && provider != core.DNSUnmanaged {
			needs = append(needs, extension(extensionsv1alpha1.DNSRecordResource, provider))
		}
	}
	return append(needs, s.needsOfExtensions(corev1beta1.ClusterTypeShoot, shoot.Spec.Extensions, workerless)...)
}

func needsOfWorkers(shoot *corev1beta1.Shoot) []string {
	needs := needsOfProvider(shoot.Spec.Provider.Type)
	if networking := shoot.Spec.Networking; networking != nil && networking.Type != nil {
		needs = append(needs, extension(extensionsv1alpha1.NetworkResource, *networking.Type))
	}
	for _, pool := range shoot.Spec.Provider.Workers {
		if image := pool.Machine.Image; image != nil {
			needs = append(needs, extension(extensionsv1alpha1.OperatingSystemConfigResource, image.Name))
		}
		if pool.CRI == nil {
			continue
		}
		for _, runtime := range pool.CRI.ContainerRuntimes {
			needs = append(needs, extension(extensionsv1alpha1.ContainerRuntimeResource, runtime.Type))
		}
	}
	return needs
}

// needsOfExtensions returns the resources of kind Extension that a cluster needs: those that it lists, and those that
// are automatically enabled for its type, unless it disables them. The latter must support workerless clusters if the
// cluster is workerless.
func (s *state) needsOfExtensions(cluster corev1beta1.ClusterType, named []corev1beta1.Extension, workerless bool) (needs []string) {
	disabled := sets.New[string]()
	for _, e := range named {
		if ptr.Deref(e.Disabled, false) {
			disabled.Insert(e.Type)
		} else {
			needs = append(needs, extension(extensionsv1alpha1.ExtensionResource, e.Type))
		}
	}
	for _, registration := range s.registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind != extensionsv1alpha1.ExtensionResource || disabled.Has(resource.Type) ||
				!slices.Contains(resource.AutoEnable, cluster) {
				continue
			}
			if !workerless || ptr.Deref(resource.WorkerlessSupported, false) {
				needs = append(needs, extension(resource.Kind, resource.Type))
			}
		}
	}
	return needs
}

// isSelected reports whether the seed selector of a registration matches the Seed.
func isSelected(registration *corev1beta1.ControllerRegistration, seed *corev1beta1.Seed) (bool, error) {
	deployment := registration.Spec.Deployment
	if deployment == nil || deployment.SeedSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.SeedSelector)
	if err != nil {
		return false, fmt.Errorf("reading the seedSelector of the ControllerRegistration %q: %w", registration.Name, err)
	}
	return selector.Matches(labels.Set(seed.Labels)), nil
}
