package controllermanager

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func failedShoot(state corev1beta1.LastOperationState, ago time.Duration, codes ...corev1beta1.ErrorCode) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"}, Status: corev1beta1.ShootStatus{
		LastOperation: &corev1beta1.LastOperation{State: state, LastUpdateTime: metav1.NewTime(kittest.Start.Add(-ago))},
		LastErrors:    []corev1beta1.LastError{{Codes: []corev1beta1.ErrorCode{"OTHER"}}, {Codes: codes}},
	}}
}

func TestRetries(t *testing.T) {
	outdated := failedShoot("Failed", time.Hour, corev1beta1.ErrorInfraRateLimitsExceeded)
	outdated.Generation = 2
	for name, test := range map[string]struct {
		shoot   *corev1beta1.Shoot
		retried bool
		later   time.Duration
	}{
		"rate limits": {failedShoot("Failed", 11*time.Minute, corev1beta1.ErrorInfraRateLimitsExceeded), true, 0},
		"rate limits just now": {failedShoot("Failed", 4*time.Minute, corev1beta1.ErrorInfraRateLimitsExceeded), false,
			6 * time.Minute},
		"rate limits, at the very moment": {failedShoot("Failed", 10*time.Minute, corev1beta1.ErrorInfraRateLimitsExceeded), false, 1},
		"not failed for good":             {failedShoot("Error", time.Hour, corev1beta1.ErrorInfraRateLimitsExceeded), false, 0},
		"something else":                  {failedShoot("Failed", time.Hour, corev1beta1.ErrorInfraUnauthorized), false, 0},
		"respecified since":               {outdated, false, 0},
		"no operation":                    {&corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"}}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := kittest.New(t, test.shoot)
			result := g.MustReconcile(reconcile.AsReconciler(g, &ShootRetry{Base: g.Base()}), test.shoot)
			if result.RequeueAfter < test.later || result.RequeueAfter > test.later+DefaultRetryJitterPeriod ||
				(test.later == 0) != (result.RequeueAfter == 0) {
				t.Errorf("again after %s", result.RequeueAfter)
			}
			if got := test.shoot.Annotations[constants.GardenerOperation] == "retry"; got != test.retried {
				t.Errorf("annotations %v", test.shoot.Annotations)
			}
		})
	}
	limited := failedShoot("Failed", 0, corev1beta1.ErrorInfraRateLimitsExceeded)
	for before, want := range map[*corev1beta1.Shoot]bool{failedShoot("Processing", 0): true, limited: false, {}: true} {
		if got := shootFails().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: limited}); got != want {
			t.Errorf("from %v: %v", before.Status.LastOperation, got)
		}
	}
}
