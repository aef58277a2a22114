package scheduler

import (
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/yaml"
)

// nearest accepts the candidates with the smallest distance: by the region ConfigMap, or by the names of the regions
// if the ConfigMap contains none of them.
func nearest(l *Landscape, candidates seedList) (verdict, error) {
	distances, err := configuredDistances(l)
	if err != nil {
		return nil, err
	}
	distanceOf := func(seed *gardencorev1beta1.Seed) (int, bool) {
		distance, ok := distances[seed.Spec.Provider.Region]
		return distance, ok
	}
	minimum, found := smallest(candidates, distanceOf)
	if !found {
		distanceOf = func(seed *gardencorev1beta1.Seed) (int, bool) { return nameDistanceTo(l.Shoot, seed), true }
		minimum, _ = smallest(candidates, distanceOf)
	}
	return func(seed *gardencorev1beta1.Seed) string {
		distance, known := distanceOf(seed)
		switch {
		case !known:
			return fmt.Sprintf("seed's region %q is not in the region configuration of %q", seed.Spec.Provider.Region, l.Shoot.Spec.Region)
		case distance > minimum:
			return fmt.Sprintf("seed's region %q is at distance %d, another one is at %d", seed.Spec.Provider.Region, distance, minimum)
		}
		return ""
	}, nil
}

func smallest(seeds seedList, distanceOf func(*gardencorev1beta1.Seed) (int, bool)) (minimum int, found bool) {
	for _, seed := range seeds {
		if distance, ok := distanceOf(seed); ok && (!found || distance < minimum) {
			minimum, found = distance, true
		}
	}
	return minimum, found
}

// configuredDistances returns the distances from the Shoot's region in the region ConfigMap, or nil if there are
// none. The distance of the region to itself is 0 unless it is configured.
func configuredDistances(l *Landscape) (map[string]int, error) {
	region := l.Shoot.Spec.Region
	text := l.RegionConfig[region]
	if text == "" {
		return nil, nil
	}
	distances := map[string]int{}
	if err := yaml.Unmarshal([]byte(text), &distances); err != nil {
		return nil, fmt.Errorf(
			"reading the distances of region %q in the region ConfigMap, which must be a map from regions to whole numbers: %w", region, err)
	}
	if distances == nil {
		distances = map[string]int{}
	}
	if _, ok := distances[region]; !ok {
		distances[region] = 0
	}
	return distances, nil
}

// foreignProvider is added to the distance of seeds whose provider type differs from the Shoot's.
const foreignProvider = 2

func nameDistanceTo(shoot *gardencorev1beta1.Shoot, seed *gardencorev1beta1.Seed) int {
	distance := nameDistance(seed.Spec.Provider.Region, shoot.Spec.Region)
	if seed.Spec.Provider.Type != shoot.Spec.Provider.Type {
		distance += foreignProvider
	}
	return distance
}

// nameDistance returns the distance of two region names. The orientation counts less than the rest: eu-west is nearer
// to eu-east than to us-west.
func nameDistance(a, b string) int {
	baseA, orientationA := splitOrientation(a)
	baseB, orientationB := splitOrientation(b)
	distance := 2 * levenshtein([]rune(baseA), []rune(baseB))
	switch {
	case orientationA == orientationB:
		return distance
	case orientationA == "" || orientationB == "":
		return distance + 1
	default:
		return distance + 2
	}
}

func splitOrientation(region string) (base, orientation string) {
	for _, orientation := range []string{"north", "south", "east", "west", "central"} {
		if before, after, ok := strings.Cut(region, orientation); ok {
			// The colon marks the place of the orientation, so that the base of eu-west-1 differs from eu-1.
			return before + ":" + after, orientation
		}
	}
	return region, ""
}

// levenshtein returns the number of runes to insert, delete or replace to turn a into b.
func levenshtein(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
