package scheduler

import (
	"fmt"
	"slices"
	"strings"

	schedulerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/scheduler/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

type (
	seedList = []*gardencorev1beta1.Seed
	// verdict returns why a seed is not eligible, or "" if it is.
	verdict func(*gardencorev1beta1.Seed) string
	// rule returns the verdict on candidates. An error is a problem with the Shoot or the configuration, not with a
	// seed.
	rule func(l *Landscape, candidates seedList) (verdict, error)
)

// rules are applied in this order. It is the same as in Gardener, because some rules compare the remaining
// candidates.
var rules = []rule{
	each(usable),
	matchesSelector("the CloudProfile", func(l *Landscape) *gardencorev1beta1.SeedSelector { return l.SeedSelector }),
	matchesSelector("the Shoot", func(l *Landscape) *gardencorev1beta1.SeedSelector { return l.Shoot.Spec.SeedSelector }),
	each(offersProvider),
	each(hasZonesForHighAvailability),
	each(hasPinnedZones),
	each(hasEnforcedZones),
	prefersZones,
	each(supportsAccessRestrictions),
	servesDomain,
	each(reconcilesShoots),
	each(hasFreeNetworks),
	each(isTolerated),
	hasCapacity,
	followsStrategy,
}

// each returns a rule that checks every seed independently of the others.
func each(why func(l *Landscape, seed *gardencorev1beta1.Seed) string) rule {
	return func(l *Landscape, _ seedList) (verdict, error) {
		return func(seed *gardencorev1beta1.Seed) string { return why(l, seed) }, nil
	}
}

func anySeed(*gardencorev1beta1.Seed) string { return "" }

func usable(_ *Landscape, seed *gardencorev1beta1.Seed) string {
	switch {
	case seed.DeletionTimestamp != nil:
		return "seed is being deleted"
	case !visible(seed):
		return "seed is not visible for scheduling"
	case seed.Status.LastOperation == nil:
		return "seed has not been reconciled yet"
	}
	if why := conditionNotTrue(seed, gardencorev1beta1.GardenletReady); why != "" {
		return why
	}
	if seed.Spec.Backup != nil {
		return conditionNotTrue(seed, gardencorev1beta1.SeedBackupBucketsReady)
	}
	return ""
}

// visible reports whether a seed is visible for scheduling, which is the default.
func visible(seed *gardencorev1beta1.Seed) bool {
	settings := seed.Spec.Settings
	return settings == nil || settings.Scheduling == nil || settings.Scheduling.Visible
}

func conditionNotTrue(seed *gardencorev1beta1.Seed, kind gardencorev1beta1.ConditionType) string {
	switch condition := conditions.Get(seed.Status.Conditions, kind); {
	case condition == nil:
		return fmt.Sprintf("seed is not ready: condition %s is missing", kind)
	case condition.Status != gardencorev1beta1.ConditionTrue:
		return fmt.Sprintf("seed is not ready: condition %s is %s", kind, condition.Status)
	}
	return ""
}

func matchesSelector(whose string, of func(*Landscape) *gardencorev1beta1.SeedSelector) rule {
	return func(l *Landscape, _ seedList) (verdict, error) {
		seedSelector := of(l)
		if seedSelector == nil {
			return anySeed, nil
		}
		selector, err := metav1.LabelSelectorAsSelector(&seedSelector.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("reading the seed selector of %s: %w", whose, err)
		}
		return func(seed *gardencorev1beta1.Seed) string {
			if selector.Matches(labels.Set(seed.Labels)) {
				return ""
			}
			return fmt.Sprintf("seed does not match the seed selector of %s (%s)", whose, selector)
		}, nil
	}
}

// offersProvider refuses a seed with a provider type other than those of the CloudProfile's seed selector or, if it
// has none, the Shoot's.
func offersProvider(l *Landscape, seed *gardencorev1beta1.Seed) string {
	want, have := []string{l.Shoot.Spec.Provider.Type}, seed.Spec.Provider.Type
	if l.SeedSelector != nil && len(l.SeedSelector.ProviderTypes) > 0 {
		want = l.SeedSelector.ProviderTypes
	}
	if slices.Contains(want, "*") || slices.Contains(want, have) {
		return ""
	}
	return fmt.Sprintf("seed has provider type %q, not %q", have, strings.Join(want, ", "))
}

// zonesForHighAvailability is the number of zones that a control plane needs to tolerate the failure of a zone.
const zonesForHighAvailability = 3

func zonal(shoot *gardencorev1beta1.Shoot) bool {
	controlPlane := shoot.Spec.ControlPlane
	return controlPlane != nil && controlPlane.HighAvailability != nil &&
		controlPlane.HighAvailability.FailureTolerance.Type == gardencorev1beta1.FailureToleranceTypeZone
}

func hasZonesForHighAvailability(l *Landscape, seed *gardencorev1beta1.Seed) string {
	if have := len(seed.Spec.Provider.Zones); zonal(l.Shoot) && have < zonesForHighAvailability {
		return fmt.Sprintf("seed has %d of the %d zones that failure tolerance type %q needs", have, zonesForHighAvailability,
			gardencorev1beta1.FailureToleranceTypeZone)
	}
	return ""
}

func zoneSelection(seed *gardencorev1beta1.Seed) gardencorev1beta1.ZoneSelectionMode {
	if settings := seed.Spec.Settings; settings != nil && settings.ZoneSelection != nil {
		return settings.ZoneSelection.Mode
	}
	return ""
}

// hasPinnedZones refuses seeds that have not all zones to which the control plane is pinned. As in Gardener, it does not
// apply to a control plane in several zones.
func hasPinnedZones(l *Landscape, seed *gardencorev1beta1.Seed) string {
	if zones := seed.Spec.Provider.Zones; !zonal(l.Shoot) && !sets.New(zones...).HasAll(pinnedZones(l.Shoot)...) {
		return fmt.Sprintf("seed has the zones %v, not all of %v, to which the control plane is pinned", zones, pinnedZones(l.Shoot))
	}
	return ""
}

func pinnedZones(shoot *gardencorev1beta1.Shoot) []string {
	return ptr.Deref(shoot.Spec.ControlPlane, gardencorev1beta1.ControlPlane{}).Zones
}

// sharesZone reports whether a seed is in a zone of the workers. It is also true if the workers name no zones, and for a
// control plane that is pinned to zones or in several zones, which does not depend on the workers' zones.
func sharesZone(l *Landscape, seed *gardencorev1beta1.Seed) bool {
	named := false
	for _, worker := range l.Shoot.Spec.Provider.Workers {
		for _, zone := range worker.Zones {
			named = true
			if slices.Contains(seed.Spec.Provider.Zones, zone) {
				return true
			}
		}
	}
	return !named || zonal(l.Shoot) || len(pinnedZones(l.Shoot)) > 0
}

func hasEnforcedZones(l *Landscape, seed *gardencorev1beta1.Seed) string {
	if zoneSelection(seed) == gardencorev1beta1.ZoneSelectionModeEnforce && !sharesZone(l, seed) {
		return "seed has none of the workers' zones, and enforces zone selection"
	}
	return ""
}

// prefersZones refuses seeds in the zone selection mode Prefer that share no zone with the workers, if there is any
// other candidate.
func prefersZones(l *Landscape, candidates seedList) (verdict, error) {
	reluctant := func(seed *gardencorev1beta1.Seed) bool {
		return zoneSelection(seed) == gardencorev1beta1.ZoneSelectionModePrefer && !sharesZone(l, seed)
	}
	if !slices.ContainsFunc(candidates, func(seed *gardencorev1beta1.Seed) bool { return !reluctant(seed) }) {
		return anySeed, nil
	}
	return func(seed *gardencorev1beta1.Seed) string {
		if reluctant(seed) {
			return "seed has none of the workers' zones, and other seeds are preferred"
		}
		return ""
	}, nil
}

func supportsAccessRestrictions(l *Landscape, seed *gardencorev1beta1.Seed) string {
	for _, wanted := range l.Shoot.Spec.AccessRestrictions {
		if !slices.ContainsFunc(seed.Spec.AccessRestrictions, func(r gardencorev1beta1.AccessRestriction) bool { return r.Name == wanted.Name }) {
			return fmt.Sprintf("seed does not support access restriction %q", wanted.Name)
		}
	}
	return ""
}

// servesDomain accepts, for a domain below a default domain of a candidate, only seeds with this default domain, and
// for any other domain all seeds.
func servesDomain(l *Landscape, candidates seedList) (verdict, error) {
	if l.Shoot.Spec.DNS == nil || l.Shoot.Spec.DNS.Domain == nil {
		return anySeed, nil
	}
	domain, ours := *l.Shoot.Spec.DNS.Domain, false
	for _, seed := range candidates {
		ours = ours || slices.ContainsFunc(seed.Spec.DNS.Defaults, func(d gardencorev1beta1.SeedDNSProviderConfig) bool {
			return strings.HasSuffix(domain, "."+d.Domain)
		})
	}
	if !ours {
		return anySeed, nil
	}
	return func(seed *gardencorev1beta1.Seed) string {
		for _, d := range seed.Spec.DNS.Defaults {
			if domain == l.Shoot.Name+"."+l.Project+"."+d.Domain {
				return ""
			}
		}
		return fmt.Sprintf("seed does not serve the domain %q", domain)
	}, nil
}

func reconcilesShoots(_ *Landscape, seed *gardencorev1beta1.Seed) string {
	if seed.Annotations[v1beta1constants.AnnotationEmergencyStopShootReconciliations] == "true" {
		return "seed has its Shoot reconciliations stopped"
	}
	return ""
}

// isTolerated refuses seeds with taints that the Shoot does not tolerate. A taint without a value is tolerated by its
// key, whatever the toleration's value.
func isTolerated(l *Landscape, seed *gardencorev1beta1.Seed) string {
	tolerations := map[string]string{}
	for _, toleration := range l.Shoot.Spec.Tolerations {
		tolerations[toleration.Key] = ptr.Deref(toleration.Value, "")
	}
	for _, taint := range seed.Spec.Taints {
		if value, ok := tolerations[taint.Key]; !ok || taint.Value != nil && *taint.Value != value {
			return fmt.Sprintf("Shoot does not tolerate the seed's taint %q", taint.Key)
		}
	}
	return ""
}

func hasCapacity(l *Landscape, candidates seedList) (verdict, error) {
	if l.Count != nil && len(candidates) > 0 {
		var err error
		if l.Usage, err = l.Count(); err != nil {
			return nil, err
		}
	}
	return func(seed *gardencorev1beta1.Seed) string {
		room, limited := seed.Status.Allocatable[gardencorev1beta1.ResourceShoots]
		if used := int64(l.Usage[seed.Name]); limited && used >= room.Value() {
			return fmt.Sprintf("seed has no room: %d of %d Shoots", used, room.Value())
		}
		return ""
	}, nil
}

// followsStrategy keeps the seeds that the strategy of the scheduler allows. Shoots with the purpose testing go to any
// region of their provider type.
func followsStrategy(l *Landscape, candidates seedList) (verdict, error) {
	spec := &l.Shoot.Spec
	switch {
	case ptr.Deref(spec.Purpose, "") == gardencorev1beta1.ShootPurposeTesting:
		return func(seed *gardencorev1beta1.Seed) string { return sameProvider(l, seed) }, nil
	case l.Strategy == schedulerconfigv1alpha1.SameRegion:
		return func(seed *gardencorev1beta1.Seed) string {
			if why := sameProvider(l, seed); why != "" || seed.Spec.Provider.Region == spec.Region {
				return why
			}
			return fmt.Sprintf("seed is in region %q, not %q", seed.Spec.Provider.Region, spec.Region)
		}, nil
	case l.Strategy == schedulerconfigv1alpha1.MinimalDistance:
		return nearest(l, candidates)
	}
	return nil, fmt.Errorf("strategy %q is not known to the scheduler; configure one of %v", l.Strategy, schedulerconfigv1alpha1.Strategies)
}

// sameProvider refuses seeds with another provider type, which the CloudProfile may allow.
func sameProvider(l *Landscape, seed *gardencorev1beta1.Seed) string {
	if have, want := seed.Spec.Provider.Type, l.Shoot.Spec.Provider.Type; have != want {
		return fmt.Sprintf("seed has provider type %q, not %q", have, want)
	}
	return ""
}
