package kit

import (
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

// CheckSeedConditions returns an error unless the Seed's conditions GardenletReady and SeedSystemComponentsHealthy are
// true.
func CheckSeedConditions(seed *corev1beta1.Seed) error {
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.GardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		condition := conditions.Get(seed.Status.Conditions, kind)
		if condition == nil {
			return fmt.Errorf("the condition %s is missing", kind)
		}
		if condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("the condition %s is %s, not True: %s: %s", kind, condition.Status, condition.Reason, condition.Message)
		}
	}
	return nil
}
