package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	schedulerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/scheduler/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Strategy determines how near a seed must be to its Shoots; see the constants in the configuration of Gardener's
// scheduler.
type Strategy = schedulerconfigv1alpha1.CandidateDeterminationStrategy

// Landscape is the input of a scheduling decision. Choose does not change it.
type Landscape struct {
	// Shoot has no seed yet.
	Shoot *gardencorev1beta1.Shoot
	// Project is the name of the Shoot's project. A default domain is only for Shoots with the domain
	// <shoot>.<project>.<default domain>.
	Project string
	// SeedSelector is the seed selector of the Shoot's CloudProfile or NamespacedCloudProfile.
	SeedSelector *gardencorev1beta1.SeedSelector
	// Seeds are all Seeds of the garden, in any order.
	Seeds []*gardencorev1beta1.Seed
	// Usage is the number of Shoots by the name of the seed; see ShootsPerSeed.
	Usage map[string]int
	// Count, if set, returns the Usage. It is called at most once, and only if a seed is left for which it matters.
	Count func() (map[string]int, error)
	// RegionConfig is the data of the CloudProfile's region ConfigMap: for each region of a Shoot, a YAML map from
	// the region of a seed to its distance. Only the strategy MinimalDistance uses it.
	RegionConfig map[string]string
	// Strategy is Gardener's default (SameRegion) if empty.
	Strategy Strategy
}

// Reason says why a seed was not chosen.
type Reason struct {
	Seed, Why string
}

// Reasons say why seeds were not chosen. They are reported to the owner of a Shoot for which there is no eligible
// seed.
type Reasons struct {
	// Problem is a reason that applies to all seeds, for example an invalid selector; "" in general.
	Problem string
	// Seeds are the reasons for single seeds, sorted by name.
	Seeds []Reason
}

// String returns the message if no seed was chosen.
func (r Reasons) String() string {
	switch {
	case r.Problem != "":
		return r.Problem
	case len(r.Seeds) == 0:
		return "there are no seeds in the garden"
	}
	texts := make([]string, 0, len(r.Seeds))
	for _, reason := range r.Seeds {
		texts = append(texts, reason.Seed+" => "+reason.Why)
	}
	return fmt.Sprintf("0/%d seeds are eligible: {%s}", len(r.Seeds), strings.Join(texts, ", "))
}

// Choose returns the name of the seed for the Shoot, or "" if no seed is eligible, and why the other seeds were not
// chosen. Each rule filters the seeds that the rules before it accept. Of the remaining seeds, it chooses the one
// with the fewest Shoots, and among equals the first by name.
func Choose(l Landscape) (seed string, reasons Reasons) {
	l.Strategy = cmp.Or(l.Strategy, schedulerconfigv1alpha1.Default)
	candidates := slices.Clone(l.Seeds)
	for _, rule := range rules {
		verdict, err := rule(&l, candidates)
		if err != nil {
			return "", Reasons{Problem: err.Error()}
		}
		var left []*gardencorev1beta1.Seed
		for _, candidate := range candidates {
			if why := verdict(candidate); why != "" {
				reasons.Seeds = append(reasons.Seeds, Reason{Seed: candidate.Name, Why: why})
			} else {
				left = append(left, candidate)
			}
		}
		candidates = left
	}
	if len(candidates) > 0 {
		seed = slices.MinFunc(candidates, func(a, b *gardencorev1beta1.Seed) int {
			if fewer := l.Usage[a.Name] - l.Usage[b.Name]; fewer != 0 {
				return fewer
			}
			return strings.Compare(a.Name, b.Name)
		}).Name
	}
	for _, candidate := range candidates {
		if candidate.Name != seed {
			reasons.Seeds = append(reasons.Seeds, Reason{Seed: candidate.Name, Why: "seed " + seed + " was preferred"})
		}
	}
	slices.SortFunc(reasons.Seeds, func(a, b Reason) int { return strings.Compare(a.Seed, b.Seed) })
	return seed, reasons
}

// ShootsPerSeed returns the number of Shoots of each seed. A Shoot that is being migrated counts for the source and the
// destination.
func ShootsPerSeed(shoots []gardencorev1beta1.Shoot) map[string]int {
	usage := map[string]int{}
	for i := range shoots {
		for _, seed := range seedsOf(&shoots[i]) {
			usage[seed]++
		}
	}
	return usage
}

// seedsOf returns the seeds whose capacity a Shoot uses: none, one, or two while it is being migrated.
func seedsOf(shoot *gardencorev1beta1.Shoot) (seeds []string) {
	for _, name := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
		if name != nil && *name != "" && !slices.Contains(seeds, *name) {
			seeds = append(seeds, *name)
		}
	}
	return seeds
}
