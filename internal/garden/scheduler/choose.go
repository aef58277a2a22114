package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	schedulerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/scheduler/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Strategy says how near a seed must be to its Shoots; see the constants in Gardener's configuration of its scheduler.
type Strategy = schedulerconfigv1alpha1.CandidateDeterminationStrategy

// Landscape is all that a decision depends on. Choose changes none of it.
type Landscape struct {
	// Shoot has no seed yet.
	Shoot *gardencorev1beta1.Shoot
	// Project is the name of the Shoot's project. Default domains are for <shoot>.<project>.<domain> only.
	Project string
	// SeedSelector is the one of the Shoot's CloudProfile or NamespacedCloudProfile.
	SeedSelector *gardencorev1beta1.SeedSelector
	// Seeds are all of the garden, in any order.
	Seeds []*gardencorev1beta1.Seed
	// Usage is the number of Shoots by the seed's name; see Usage.
	Usage map[string]int
	// RegionConfig is the data of the CloudProfile's region ConfigMap: by the Shoot's region, a YAML map from a seed's
	// region to its distance. Only MinimalDistance looks at it.
	RegionConfig map[string]string
	// Strategy is Gardener's default (SameRegion) if empty.
	Strategy Strategy
}

// Reason says why a seed was not chosen.
type Reason struct {
	Seed, Why string
}

// Reasons say why seeds were not chosen. They are the message for the owner of a Shoot that no seed takes.
type Reasons struct {
	// Problem is what keeps the Shoot from every seed alike, for example a selector that cannot be read; "" in general.
	Problem string
	// Seeds are sorted by name.
	Seeds []Reason
}

// String is the message if no seed was chosen.
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

// Choose returns the name of the seed that the Shoot gets, or "", and why not the others. Each rule sees the seeds that the
// ones before have left; of what is left in the end, the seed with the fewest Shoots is chosen, and of equals the first by
// name.
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

// Usage counts the Shoots of each seed. One that is moved counts on the seed where it is, and where it goes to.
func Usage(shoots []gardencorev1beta1.Shoot) map[string]int {
	usage := map[string]int{}
	for i := range shoots {
		for _, seed := range seedsOf(&shoots[i]) {
			usage[seed]++
		}
	}
	return usage
}

// seedsOf are the seeds that a Shoot takes room on: none, one, or two while it is moved.
func seedsOf(shoot *gardencorev1beta1.Shoot) (seeds []string) {
	for _, name := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
		if name != nil && *name != "" && !slices.Contains(seeds, *name) {
			seeds = append(seeds, *name)
		}
	}
	return seeds
}
