package operation

import (
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ForceGrace and ForceLimit are how long an extension may take to release its resources when an object is
// force-deleted: ForceGrace if the extension fails or does not answer, ForceLimit if it is working. Gardener's values
// are 30 s and 5 min, too.
const (
	ForceGrace = 30 * time.Second
	ForceLimit = 5 * time.Minute
)

// AskedAt returns when an extension was last asked for an operation on an object, the zero time if it never was.
func AskedAt(obj metav1.Object) time.Time {
	at, err := time.Parse(time.RFC3339Nano, obj.GetAnnotations()[constants.GardenerTimestamp])
	if err != nil {
		return time.Time{}
	}
	return at
}

// ForceDeletionTimedOut reports whether the time that an extension has for the forced deletion of an object has passed.
func ForceDeletionTimedOut(obj extensionsv1alpha1.Object, now time.Time) bool {
	asked, grace := AskedAt(obj), ForceGrace
	last := obj.GetExtensionStatus().GetLastOperation()
	if Is(last, corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing) &&
		!last.LastUpdateTime.Time.Before(asked.Truncate(time.Second)) { // timestamps in a status have no fractions of seconds
		grace = ForceLimit
	}
	return now.Sub(asked) >= grace
}
