package managedseed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
)

// backupChecksum is the pod annotation that restarts a gardenlet when its seed's backup credentials change, as in
// Gardener.
const backupChecksum = "checksum/seed-backup-secret"

// install deploys the gardenlet, which registers the Seed, into the Shoot's cluster.
func (s *step) install(ctx context.Context) error {
	gardenlet, err := s.gardenlet(ctx)
	if err != nil {
		return err
	}
	s.event(corev1.EventTypeNormal, corev1beta1.EventReconciling, corev1beta1.EventActionReconcile, "Deploying gardenlet into target cluster")
	return s.installer().Install(ctx, s.managedSeed, gardenlet, s.bootstrap())
}

func (s *step) gardenlet(ctx context.Context) (gardenlet deployment.Gardenlet, err error) {
	spec := s.managedSeed.Spec.Gardenlet
	gardenlet.Owner, gardenlet.Target = deployment.Owner("ManagedSeed", s.managedSeed), s.target()
	var parent *gardenletconfigv1alpha1.GardenletConfiguration
	if ptr.Deref(spec.MergeWithParent, false) {
		parent = s.Config
	}
	if gardenlet.Config, err = deployment.Config(s.managedSeed.Name, spec.Config, parent); err != nil {
		return gardenlet, err
	}
	if spec.Deployment != nil {
		gardenlet.Deployment = *spec.Deployment.DeepCopy()
	}
	checksum, err := s.backupChecksum(ctx, gardenlet.Config.SeedConfig.Spec.Backup)
	if err != nil {
		return gardenlet, err
	}
	if checksum != "" {
		gardenlet.Deployment.PodAnnotations = labels.Merge(gardenlet.Deployment.PodAnnotations, map[string]string{backupChecksum: checksum})
	}
	return gardenlet, nil
}

// target returns the Shoot's cluster.
func (s *step) target() deployment.Target {
	return deployment.Target{SeedName: s.managedSeed.Name, Shoot: ptr.To(client.ObjectKeyFromObject(s.shoot))}
}

// backupChecksum returns a checksum of the Secret with the seed's backup credentials, which must exist. It is empty if
// the seed has no such Secret.
func (s *step) backupChecksum(ctx context.Context, backup *corev1beta1.Backup) (string, error) {
	if backup == nil || backup.CredentialsRef == nil || backup.CredentialsRef.APIVersion != corev1.SchemeGroupVersion.String() ||
		backup.CredentialsRef.Kind != "Secret" {
		return "", nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: backup.CredentialsRef.Namespace, Name: backup.CredentialsRef.Name}
	if err := s.GardenReader.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the configured backup secret does not exist: create Secret %s: %w", key, err)
	} else if err != nil {
		return "", fmt.Errorf("reading the backup credentials of seed %s, Secret %s: %w", s.managedSeed.Name, key, err)
	}
	text, _ := json.Marshal(secret.Data) // such a map can always be encoded
	sum := sha256.Sum256(text)
	return key.Name + "-" + hex.EncodeToString(sum[:4]), nil
}

func (s *step) bootstrap() seedmanagementv1alpha1.Bootstrap {
	return ptr.Deref(s.managedSeed.Spec.Gardenlet.Bootstrap, seedmanagementv1alpha1.BootstrapNone)
}

func (s *step) installer() *deployment.Installer {
	return &deployment.Installer{Bootstrapper: deployment.Bootstrapper{Base: &s.Base, GardenConfig: s.GardenConfig}, Deployer: s.Deployer}
}
