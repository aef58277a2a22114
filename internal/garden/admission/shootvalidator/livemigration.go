package shootvalidator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// defaultMaxDistance is the maximum distance between the regions of the two seeds if their ConfigMap does not set one.
const defaultMaxDistance = 180

// validateLiveMigration checks that the control plane can be migrated without downtime, if the Shoot's annotation
// requests it.
func (r *request) validateLiveMigration(ctx context.Context) field.ErrorList {
	if live, _ := strconv.ParseBool(r.shoot.Annotations[v1beta1constants.AnnotationMigrationLiveMigrate]); !live {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(v1beta1constants.AnnotationMigrationLiveMigrate)
	if !validation.FeatureGate.Enabled(validation.LiveControlPlaneMigration) {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("needs the feature gate %s", validation.LiveControlPlaneMigration))}
	}
	if r.GetOperation() == admission.Create {
		return field.ErrorList{field.Forbidden(path, "a new Shoot has nothing to move")}
	}
	if !r.isMigrated() {
		return nil
	}
	errs := r.validateShootForLiveMigration()
	from, err := shootcommon.Seed(ctx, r.deps.Reader, r.old)
	if err != nil {
		return append(errs, field.InternalError(seedNamePath, err))
	}
	return append(errs, r.validateSeedsForLiveMigration(ctx, from, r.seed)...)
}

func (r *request) validateShootForLiveMigration() field.ErrorList {
	var errs field.ErrorList
	if c := r.shoot.Spec.ControlPlane; c == nil || c.HighAvailability == nil {
		errs = append(errs, field.Forbidden(seedNamePath, "a live migration needs a control plane with high availability"))
	}
	if validation.HibernationEnabled(r.shoot.Spec.Hibernation) || r.shoot.Status.IsHibernated {
		errs = append(errs, field.Forbidden(seedNamePath, "a live migration needs a Shoot that is awake"))
	}
	return errs
}

func (r *request) validateSeedsForLiveMigration(ctx context.Context, from, to *gardencore.Seed) field.ErrorList {
	var errs field.ErrorList
	refuse := func(format string, args ...any) {
		errs = append(errs, field.Forbidden(seedNamePath, fmt.Sprintf(format, args...)))
	}
	if from.Spec.Provider.Type != to.Spec.Provider.Type {
		refuse("the seeds of a live migration must have one provider type; they have %q and %q", from.Spec.Provider.Type, to.Spec.Provider.Type)
	}
	silent := false
	for _, seed := range []*gardencore.Seed{from, to} {
		if gardenletVersion(seed) == "" {
			silent = true
			refuse("the gardenlet of seed %q has not told its version yet", seed.Name)
		}
	}
	if a, b := gardenletVersion(from), gardenletVersion(to); !silent && a != b {
		refuse("the seeds of a live migration must have gardenlets of one version; that of %q is %s, that of %q is %s", from.Name, a, to.Name, b)
	}
	if err := r.validateDistance(ctx, from.Spec.Provider.Region, to.Spec.Provider.Region); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func gardenletVersion(seed *gardencore.Seed) string {
	return ptr.Deref(seed.Status.Gardener, gardencore.Gardener{}).Version
}

// validateDistance checks that the distance of two regions is within the limit, with the ConfigMap with distances that
// the scheduler uses.
func (r *request) validateDistance(ctx context.Context, from, to string) *field.Error {
	if allowed, _ := strconv.ParseBool(r.shoot.Annotations[v1beta1constants.AnnotationMigrationAllowDistantRegions]); allowed || from == to {
		return nil
	}
	config, err := r.regionConfig(ctx)
	if err != nil {
		return field.InternalError(seedNamePath, err)
	}
	if config == nil {
		return field.Forbidden(seedNamePath, fmt.Sprintf("no ConfigMap says how far the regions %s and %s of the seeds are apart", from, to))
	}
	limit, err := maxDistance(config)
	if err != nil {
		return field.InternalError(seedNamePath, err)
	}
	distances := map[string]int{}
	if err := yaml.Unmarshal([]byte(config.Data[from]), &distances); err != nil {
		return field.InternalError(seedNamePath,
			fmt.Errorf("reading the distances from %s in ConfigMap %s/%s: %w", from, config.Namespace, config.Name, err))
	}
	distance, ok := distances[to]
	if !ok {
		return field.Forbidden(seedNamePath,
			fmt.Sprintf("ConfigMap %s/%s does not say how far it is from region %s to %s", config.Namespace, config.Name, from, to))
	}
	if distance > limit {
		return field.Forbidden(seedNamePath, fmt.Sprintf("it is too far from region %s to %s: %d, with a limit of %d", from, to, distance, limit))
	}
	return nil
}

// regionConfig returns the ConfigMap with the distances between the regions of the Shoot's CloudProfile, and nil if
// there is none.
func (r *request) regionConfig(ctx context.Context) (*corev1.ConfigMap, error) {
	profile, _ := cloudprofile.Reference(r.shoot)
	configs, err := r.deps.Kube.CoreV1().ConfigMaps(v1beta1constants.GardenNamespace).List(ctx, metav1.ListOptions{
		ResourceVersion: plugin.FromCache,
		LabelSelector:   labels.Set{v1beta1constants.SchedulingPurpose: v1beta1constants.SchedulingPurposeRegionConfig}.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the ConfigMaps with the distances of regions: %w", err)
	}
	for i := range configs.Items {
		profiles := strings.Split(configs.Items[i].Annotations[v1beta1constants.AnnotationSchedulingCloudProfiles], ",")
		if slices.ContainsFunc(profiles, func(name string) bool { return strings.TrimSpace(name) == profile.Name }) {
			return &configs.Items[i], nil
		}
	}
	return nil, nil
}

func maxDistance(config *corev1.ConfigMap) (int, error) {
	text, ok := config.Annotations[v1beta1constants.AnnotationMigrationInterRegionDistanceThreshold]
	if !ok {
		return defaultMaxDistance, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("the annotation %s of ConfigMap %s/%s must be a number from 0 up, not %q",
			v1beta1constants.AnnotationMigrationInterRegionDistanceThreshold, config.Namespace, config.Name, text)
	}
	return limit, nil
}
