package shootvalidator

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// isScheduled reports whether the request assigns a seed to a Shoot without one.
func (r *request) isScheduled() bool {
	return r.old.Spec.SeedName == nil && r.shoot.Spec.SeedName != nil
}

// isMigrated reports whether the request moves a Shoot to another seed, which is a control plane migration.
func (r *request) isMigrated() bool {
	return r.old.Spec.SeedName != nil && r.shoot.Spec.SeedName != nil && *r.old.Spec.SeedName != *r.shoot.Spec.SeedName
}

// validateScheduling checks that the Shoot may use its seed, and that its spec does not change during a migration.
func (r *request) validateScheduling(ctx context.Context) error {
	if r.GetOperation() == admission.Delete {
		return nil
	}
	if err := r.validateSeedAssignment(ctx); err != nil {
		return err
	}
	if r.isScheduled() || r.isMigrated() {
		if err := r.validateSeedAcceptsShoot(ctx); err != nil {
			return err
		}
	}
	if r.isMigrated() {
		if err := r.validateMigration(ctx); err != nil {
			return err
		}
	} else if r.specChanges() {
		if err := r.validateNoMigrationInProgress(); err != nil {
			return err
		}
	}
	return r.validateSeedStaysSuitable()
}

// validateSeedAssignment checks how the seed is set: in a create request by users who may update the subresource
// binding, afterwards only through this subresource.
func (r *request) validateSeedAssignment(ctx context.Context) error {
	if r.GetOperation() == admission.Create {
		return r.validateBindingPermission(ctx)
	}
	before, after := r.old.Spec.SeedName, r.shoot.Spec.SeedName
	switch {
	case before != nil && after == nil:
		return field.Forbidden(seedNamePath, fmt.Sprintf("the Shoot is on seed %q, which cannot be taken from it", *before))
	case r.GetSubresource() == shootcommon.Binding:
		spec := r.shoot.Spec
		spec.SeedName = before
		if r.isMigrated() && !reflect.DeepEqual(spec, r.old.Spec) {
			return field.Forbidden(specPath, "only spec.seedName may change when the subresource binding moves a Shoot to another seed")
		}
	case !reflect.DeepEqual(before, after):
		return field.Forbidden(seedNamePath, "can be changed through the subresource binding only")
	}
	return nil
}

func (r *request) validateBindingPermission(ctx context.Context) error {
	if !r.isScheduled() {
		return nil
	}
	resource := r.GetResource()
	allowed, err := r.allowed(ctx, authorizer.AttributesRecord{Verb: "update", APIGroup: resource.Group, Resource: resource.Resource,
		Subresource: shootcommon.Binding, Namespace: r.GetNamespace(), Name: r.GetName()})
	if err != nil || allowed {
		return err
	}
	return field.Forbidden(seedNamePath,
		fmt.Sprintf("user %q is not allowed to set .spec.seedName: leave it to the scheduler", r.GetUserInfo().GetName()))
}

// validateSeedAcceptsShoot checks that the seed has capacity for another Shoot and that this Shoot may run on it.
func (r *request) validateSeedAcceptsShoot(ctx context.Context) error {
	refuse := func(format string, args ...any) error {
		return field.Forbidden(seedNamePath, fmt.Sprintf("seed %q ", r.seed.Name)+fmt.Sprintf(format, args...))
	}
	if r.seed.DeletionTimestamp != nil {
		return refuse("is being deleted")
	}
	if !tolerates(r.seed.Spec.Taints, r.shoot.Spec.Tolerations) {
		return refuse("has a taint that spec.tolerations does not tolerate")
	}
	if !supportsRestrictions(r.seed.Spec.AccessRestrictions, r.shoot.Spec.AccessRestrictions) {
		return refuse("does not support all of spec.accessRestrictions")
	}
	if allocatable, ok := r.seed.Status.Allocatable[gardencore.ResourceShoots]; ok {
		count, err := r.shootsOnSeed(ctx)
		if err != nil {
			return err
		}
		if count >= allocatable.Value() {
			return refuse("has %d Shoots, which is all it takes", count)
		}
	}
	selector := r.profile.SeedSelector
	if selector == nil {
		return nil
	}
	if matches, err := selects(&selector.LabelSelector, r.seed); err != nil {
		return refuse("cannot be held against the seed selector of the cloud profile: %v", err)
	} else if !matches {
		return refuse("does not have the labels that the seed selector of the cloud profile wants")
	}
	if types := selector.ProviderTypes; types != nil && !slices.Contains(types, r.seed.Spec.Provider.Type) && !slices.Contains(types, "*") {
		return refuse("is of provider type %q; the seed selector of the cloud profile wants one of %s",
			r.seed.Spec.Provider.Type, strings.Join(types, ", "))
	}
	return nil
}

// tolerates reports whether each taint has a toleration with its key and, if the taint has a value, with this value. If
// two tolerations have the same key, the last one counts.
func tolerates(taints []gardencore.SeedTaint, tolerations []gardencore.Toleration) bool {
	values := map[string]string{}
	for _, toleration := range tolerations {
		values[toleration.Key] = ptr.Deref(toleration.Value, "")
	}
	return len(taints) <= len(tolerations) && !slices.ContainsFunc(taints, func(taint gardencore.SeedTaint) bool {
		value, ok := values[taint.Key]
		return !ok || taint.Value != nil && *taint.Value != value
	})
}

// supportsRestrictions reports whether a seed supports all access restrictions of a Shoot.
func supportsRestrictions(seed []gardencore.AccessRestriction, shoot []gardencore.AccessRestrictionWithOptions) bool {
	return len(shoot) <= len(seed) && !slices.ContainsFunc(shoot, func(wanted gardencore.AccessRestrictionWithOptions) bool {
		return !hasRestriction(seed, wanted.Name)
	})
}

func hasRestriction(restrictions []gardencore.AccessRestriction, name string) bool {
	return slices.ContainsFunc(restrictions, func(r gardencore.AccessRestriction) bool { return r.Name == name })
}

func selects(selector *metav1.LabelSelector, seed *gardencore.Seed) (bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(seed.Labels)), err
}

// shootsOnSeed returns the number of Shoots that are on the seed, or are being migrated to or from it.
func (r *request) shootsOnSeed(ctx context.Context) (int64, error) {
	shoots, err := seedcommon.Shoots(ctx, r.deps.Reader, r.seed.Name)
	distinct := sets.New[types.NamespacedName]()
	for _, shoot := range shoots {
		distinct.Insert(types.NamespacedName{Namespace: shoot.Namespace, Name: shoot.Name})
	}
	return int64(distinct.Len()), err
}

// validateMigration checks that the control plane can be migrated: both seeds have a backup, and the new one has the
// same internal domain and the default domain of the Shoot.
func (r *request) validateMigration(ctx context.Context) error {
	from, err := shootcommon.Seed(ctx, r.deps.Reader, r.old)
	if err != nil {
		return err
	}
	to := r.seed
	for _, seed := range []*gardencore.Seed{from, to} {
		if seed.Spec.Backup == nil {
			return field.Forbidden(seedNamePath, fmt.Sprintf("seed %q has no backup, through which the Shoot would move", seed.Name))
		}
	}
	before := ptr.Deref(from.Spec.DNS.Internal, gardencore.SeedDNSProviderConfig{}).Domain
	if after := ptr.Deref(to.Spec.DNS.Internal, gardencore.SeedDNSProviderConfig{}).Domain; before != after {
		return field.Forbidden(seedNamePath,
			fmt.Sprintf("the internal domain of seed %q must be %q, that of seed %q, and is %q", to.Name, before, from.Name, after))
	}
	if used := usedDefaultDomain(r.shoot, from); used != "" && !slices.Contains(shootcommon.DefaultDomains(&to.Spec), used) {
		return field.Forbidden(seedNamePath,
			fmt.Sprintf("the domain of the Shoot is in the default domain %q, which seed %q does not have", used, to.Name))
	}
	return nil
}

// usedDefaultDomain returns the first of the seed's default domains that is a parent of the Shoot's domain, and "" if
// there is none.
func usedDefaultDomain(shoot *gardencore.Shoot, seed *gardencore.Seed) string {
	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil {
		return ""
	}
	return shootcommon.ParentDomain(*shoot.Spec.DNS.Domain, shootcommon.DefaultDomains(&seed.Spec))
}

// validateNoMigrationInProgress refuses changes of the spec from the moment that a Shoot is assigned to another seed
// until its migration is complete.
func (r *request) validateNoMigrationInProgress() error {
	last, is, was := r.shoot.Status.LastOperation, r.shoot.Spec.SeedName, r.shoot.Status.SeedName
	if last != nil && last.Type != gardencore.LastOperationTypeMigrate && is != nil && was != nil && *is != *was {
		return field.Forbidden(specPath, fmt.Sprintf("wait for the Shoot to move from seed %q to seed %q", *was, *is))
	}
	if isMigrating(r.shoot) {
		return field.Forbidden(specPath,
			fmt.Sprintf("wait for the control plane migration: its last operation is %s, which is %s", last.Type, last.State))
	}
	return nil
}

// isMigrating reports whether a control plane migration has started and is not complete.
func isMigrating(shoot *gardencore.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && (last.Type == gardencore.LastOperationTypeMigrate ||
		last.Type == gardencore.LastOperationTypeRestore && last.State != gardencore.LastOperationStateSucceeded)
}

// validateSeedStaysSuitable checks that the Shoot can stay on its seed after the change.
func (r *request) validateSeedStaysSuitable() error {
	if r.seed == nil {
		return nil
	}
	tolerance := ptr.Deref(validation.FailureToleranceType(&r.shoot.Spec), "")
	if tolerance == gardencore.FailureToleranceTypeZone && len(r.seed.Spec.Provider.Zones) < 3 {
		return field.Forbidden(seedNamePath, fmt.Sprintf("failure tolerance of type %s needs a seed with at least 3 zones; seed %q has %d",
			tolerance, r.seed.Name, len(r.seed.Spec.Provider.Zones)))
	}
	if r.seed.DeletionTimestamp == nil {
		return nil
	}
	allowed := maps.Clone(r.old.Annotations)
	if confirmation, ok := r.shoot.Annotations[v1beta1constants.ConfirmationDeletion]; ok {
		if allowed == nil {
			allowed = map[string]string{}
		}
		allowed[v1beta1constants.ConfirmationDeletion] = confirmation
	}
	if !equality.Semantic.DeepEqual(r.shoot.Annotations, allowed) {
		return field.Forbidden(field.NewPath("metadata", "annotations"), fmt.Sprintf(
			"seed %q is being deleted: only the annotation %s of its Shoots may change", r.seed.Name, v1beta1constants.ConfirmationDeletion))
	}
	if !equality.Semantic.DeepEqual(r.shoot.Spec, r.old.Spec) {
		return field.Forbidden(specPath, fmt.Sprintf("seed %q is being deleted: the specification of its Shoots must stay", r.seed.Name))
	}
	return nil
}

// validateSeedSelector checks that a changed seed selector still selects the Shoot's seed.
func (r *request) validateSeedSelector() field.ErrorList {
	selector, path := r.shoot.Spec.SeedSelector, specPath.Child("seedSelector")
	if r.seed == nil || equality.Semantic.DeepEqual(selector, r.old.Spec.SeedSelector) {
		return nil
	}
	if selector == nil {
		return field.ErrorList{field.Invalid(path, selector, "must be kept once the Shoot has a seed")}
	}
	var errs field.ErrorList
	if matches, err := selects(&selector.LabelSelector, r.seed); err != nil {
		return field.ErrorList{field.Invalid(path, selector, err.Error())}
	} else if !matches {
		errs = append(errs, field.Invalid(path, selector, fmt.Sprintf("must select the labels of seed %q, on which the Shoot is", r.seed.Name)))
	}
	if types := selector.ProviderTypes; len(types) > 0 && !slices.Contains(types, r.seed.Spec.Provider.Type) {
		errs = append(errs, field.Invalid(path.Child("providerTypes"), types,
			fmt.Sprintf("must contain the type of seed %q, %q", r.seed.Name, r.seed.Spec.Provider.Type)))
	}
	return errs
}
