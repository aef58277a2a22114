package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// landscape returns the Landscape of the Shoot without the number of Shoots. Its objects belong to the cache and must not be
// changed.
func (r *reconciler) landscape(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*Landscape, error) {
	l := &Landscape{Shoot: shoot, Strategy: r.strategy}
	reference := cloudProfileOf(shoot)
	var err error
	if l.SeedSelector, err = r.seedSelector(ctx, shoot.Namespace, reference); err != nil {
		return nil, err
	}
	if l.Project, err = r.project(ctx, shoot.Namespace); err != nil {
		return nil, err
	}
	if l.RegionConfig, err = r.regionConfig(ctx, reference.Name); err != nil {
		return nil, err
	}
	var seeds gardencorev1beta1.SeedList
	if err := r.client.List(ctx, &seeds, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the seeds: %w", err)
	}
	for i := range seeds.Items {
		l.Seeds = append(l.Seeds, &seeds.Items[i])
	}
	return l, nil
}

func (r *reconciler) shoots(ctx context.Context) ([]gardencorev1beta1.Shoot, error) {
	var shoots gardencorev1beta1.ShootList
	if err := r.client.List(ctx, &shoots, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Shoots: %w", err)
	}
	return shoots.Items, nil
}

// cloudProfileOf returns the Shoot's cloud profile reference, also if only the deprecated cloudProfileName is set.
func cloudProfileOf(shoot *gardencorev1beta1.Shoot) gardencorev1beta1.CloudProfileReference {
	reference := gardencorev1beta1.CloudProfileReference{Name: ptr.Deref(shoot.Spec.CloudProfileName, "")}
	if shoot.Spec.CloudProfile != nil {
		reference = *shoot.Spec.CloudProfile
	}
	reference.Kind = cmp.Or(reference.Kind, v1beta1constants.CloudProfileReferenceKindCloudProfile)
	return reference
}

func (r *reconciler) seedSelector(ctx context.Context, namespace string, reference gardencorev1beta1.CloudProfileReference) (
	*gardencorev1beta1.SeedSelector, error) {
	key := client.ObjectKey{Name: reference.Name}
	switch {
	case reference.Name == "":
		return nil, fmt.Errorf("the Shoot has no cloud profile, which tells its seeds; set spec.cloudProfile")
	case reference.Kind == v1beta1constants.CloudProfileReferenceKindCloudProfile:
		var profile gardencorev1beta1.CloudProfile
		if err := r.client.Get(ctx, key, &profile, client.UnsafeDisableDeepCopy); err != nil {
			return nil, unlessNotFound("CloudProfile", key, err)
		}
		return profile.Spec.SeedSelector, nil
	case reference.Kind == v1beta1constants.CloudProfileReferenceKindNamespacedCloudProfile:
		var profile gardencorev1beta1.NamespacedCloudProfile
		key.Namespace = namespace
		if err := r.client.Get(ctx, key, &profile, client.UnsafeDisableDeepCopy); err != nil {
			return nil, unlessNotFound("NamespacedCloudProfile", key, err)
		}
		return profile.Status.CloudProfileSpec.SeedSelector, nil
	}
	return nil, fmt.Errorf("the Shoot's cloud profile is of kind %q, which the scheduler does not know", reference.Kind)
}

// unlessNotFound hides the reason NotFound of err: only a missing Shoot may be reported as NotFound, because that is
// not a failure.
func unlessNotFound(kind string, key client.ObjectKey, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return fmt.Errorf("%s %s of the Shoot does not exist", kind, strings.TrimPrefix(key.String(), "/"))
	}
	return fmt.Errorf("reading %s %s: %w", kind, strings.TrimPrefix(key.String(), "/"), err)
}

func (r *reconciler) project(ctx context.Context, namespace string) (string, error) {
	var projects gardencorev1beta1.ProjectList
	if err := r.client.List(ctx, &projects, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the projects: %w", err)
	}
	for i := range projects.Items {
		if ptr.Deref(projects.Items[i].Spec.Namespace, "") == namespace {
			return projects.Items[i].Name, nil
		}
	}
	return "", fmt.Errorf("namespace %s belongs to no project", namespace)
}

// regionConfig returns the data of the first ConfigMap, by name, with the distances between the cloud profile's
// regions.
func (r *reconciler) regionConfig(ctx context.Context, cloudProfile string) (map[string]string, error) {
	var configMaps corev1.ConfigMapList
	if err := r.client.List(ctx, &configMaps, client.UnsafeDisableDeepCopy, client.InNamespace(v1beta1constants.GardenNamespace),
		regionConfigLabels); err != nil {
		return nil, fmt.Errorf("listing the region ConfigMaps: %w", err)
	}
	var first *corev1.ConfigMap
	for i := range configMaps.Items {
		candidate := &configMaps.Items[i]
		for name := range strings.SplitSeq(candidate.Annotations[v1beta1constants.AnnotationSchedulingCloudProfiles], ",") {
			if strings.TrimSpace(name) == cloudProfile && (first == nil || candidate.Name < first.Name) {
				first = candidate
			}
		}
	}
	if first == nil {
		return nil, nil
	}
	return first.Data, nil
}

// regionConfigLabels select the ConfigMaps with distances in the garden namespace.
var regionConfigLabels = client.MatchingLabels{v1beta1constants.SchedulingPurpose: v1beta1constants.SchedulingPurposeRegionConfig}
