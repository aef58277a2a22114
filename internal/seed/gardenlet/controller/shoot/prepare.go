package shoot

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gardenData has the objects and names from the garden that a reconciliation needs.
type gardenData struct {
	shoot          *corev1beta1.Shoot
	seed           *corev1beta1.Seed
	cloudProfile   *corev1beta1.CloudProfile
	project        string
	gardenIdentity string
}

// prepare reads the project of a Shoot, its cloud profile and the identity of the garden.
func (r *Reconciler) prepare(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) (*gardenData, error) {
	a := &gardenData{shoot: shoot, seed: seed}
	namespace := &corev1.Namespace{}
	if err := r.GardenReader.Get(ctx, client.ObjectKey{Name: shoot.Namespace}, namespace); err != nil {
		return nil, fmt.Errorf("reading the project's namespace %s: %w", shoot.Namespace, err)
	}
	if a.project = namespace.Labels[constants.ProjectName]; a.project == "" {
		return nil, fmt.Errorf("namespace %s is of no project: it has no label %s", shoot.Namespace, constants.ProjectName)
	}
	identity := &corev1.ConfigMap{}
	if err := r.GardenReader.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity},
		identity); err != nil {
		return nil, fmt.Errorf("reading the identity of the garden, ConfigMap %s/%s: %w", metav1.NamespaceSystem, constants.ClusterIdentity, err)
	}
	a.gardenIdentity = identity.Data[constants.ClusterIdentity]
	var err error
	a.cloudProfile, err = r.readCloudProfile(ctx, shoot)
	return a, err
}

// readCloudProfile returns the Shoot's cloud profile. For a NamespacedCloudProfile this is the CloudProfile in its
// status, merged with its parent, with the namespace of the project, as extensions of Gardener expect it.
func (r *Reconciler) readCloudProfile(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.CloudProfile, error) {
	ref := shoot.Spec.CloudProfile
	if ref == nil {
		ref = &corev1beta1.CloudProfileReference{Name: ptr.Deref(shoot.Spec.CloudProfileName, "")}
	}
	if ref.Kind != constants.CloudProfileReferenceKindNamespacedCloudProfile {
		profile := &corev1beta1.CloudProfile{}
		if err := r.GardenReader.Get(ctx, client.ObjectKey{Name: ref.Name}, profile); err != nil {
			return nil, fmt.Errorf("reading CloudProfile %s: %w", ref.Name, err)
		}
		return profile, nil
	}
	key, namespaced := client.ObjectKey{Namespace: shoot.Namespace, Name: ref.Name}, &corev1beta1.NamespacedCloudProfile{}
	if err := r.GardenReader.Get(ctx, key, namespaced); err != nil {
		return nil, fmt.Errorf("reading NamespacedCloudProfile %s: %w", key, err)
	}
	return &corev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       namespaced.Status.CloudProfileSpec,
	}, nil
}

// technicalID returns the name of everything of a Shoot in seeds. It does not change in a Shoot's life.
func technicalID(shoot *corev1beta1.Shoot, project string) string {
	if shoot.Status.TechnicalID != "" {
		return shoot.Status.TechnicalID
	}
	return constants.TechnicalIDPrefix + "-" + project + "--" + shoot.Name
}
