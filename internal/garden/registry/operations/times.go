package operations

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// age and until print a time as kubectl prints ages, from the landscape's clock.
func age(t *metav1.Time, clock clock.PassiveClock) any {
	if t.IsZero() {
		return resource.Unknown
	}
	return duration.HumanDuration(clock.Since(t.Time))
}

func until(t *metav1.Time, clock clock.PassiveClock) any {
	if t.IsZero() {
		return resource.Unknown
	}
	if left := t.Sub(clock.Now()); left > 0 {
		return duration.HumanDuration(left)
	}
	return "0s"
}
