package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// shootQuotaPlugin is the admission plugin ShootQuotaValidator. The credentials binding of a Shoot refers to Quotas,
// which limit the sum of the resources of all Shoots that use the binding, and the lifetime of each of them.
var shootQuotaPlugin = plugin.Factory{
	Name:       "ShootQuotaValidator",
	Operations: plugin.OnCreateOrUpdate,
	Validate:   plugin.ForKind(gardencore.Kind("Shoot"), validateShootQuota),
}

func validateShootQuota(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	creating := a.GetOperation() == admission.Create
	needsMore := creating || mayNeedMore(shoot, old)
	lifetimeChanges := !creating && quotaLifetime(old, old.CreationTimestamp.String()) != quotaLifetime(shoot, "")
	// The binding and its quotas must exist even if the change does not need them: as in Gardener, a Shoot with unknown
	// limits cannot be changed.
	quotas, err := quotasOf(ctx, deps.Reader, shoot)
	if err != nil {
		return err
	}
	if needsMore {
		for _, quota := range quotas {
			exceeded, err := exceededMetrics(ctx, deps.Reader, quota, shoot)
			if err != nil {
				return err
			}
			if len(exceeded) > 0 {
				return admission.NewForbidden(
					a, fmt.Errorf("the Quota %s/%s does not allow so much more of: %s", quota.Namespace, quota.Name, strings.Join(exceeded, ", ")))
			}
		}
	}
	if lifetimeChanges {
		return validateLifetime(shoot, quotas, deps.Clock.Now())
	}
	return nil
}

// mayNeedMore reports whether a change may need more of the resources that quotas limit. It does not compare sizes: it
// returns true if a worker pool is new or has another machine type, maximum or volume, even a smaller one.
func mayNeedMore(shoot, old *gardencore.Shoot) bool {
	if validation.NginxIngressEnabled(shoot.Spec.Addons) && !validation.NginxIngressEnabled(old.Spec.Addons) {
		return true
	}
	for _, worker := range shoot.Spec.Provider.Workers {
		before := validation.WorkerNamed(old.Spec.Provider.Workers, worker.Name)
		if before == nil || worker.Machine.Type != before.Machine.Type || worker.Maximum != before.Maximum ||
			!equality.Semantic.DeepEqual(worker.Volume, before.Volume) {
			return true
		}
	}
	return false
}

func quotaLifetime(shoot *gardencore.Shoot, otherwise string) string {
	if timestamp, ok := shoot.Annotations[v1beta1constants.ShootExpirationTimestamp]; ok {
		return timestamp
	}
	return otherwise
}

// validateLifetime refuses an expiration timestamp that is later than now plus the shortest lifetime of the quotas.
func validateLifetime(shoot *gardencore.Shoot, quotas []*gardencore.Quota, now time.Time) error {
	var days *int32
	for _, quota := range quotas {
		if limit := quota.Spec.ClusterLifetimeDays; limit != nil && (days == nil || *limit < *days) {
			days = limit
		}
	}
	timestamp := quotaLifetime(shoot, "")
	if _, set := shoot.Annotations[v1beta1constants.ShootExpirationTimestamp]; !set || days == nil {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(v1beta1constants.ShootExpirationTimestamp)
	expiration, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return field.Invalid(path, timestamp, "must be a time as 2006-01-02T15:04:05Z")
	}
	if expiration.After(now.UTC().AddDate(0, 0, int(*days))) {
		return field.Forbidden(path, fmt.Sprintf("the quotas allow only %d more day(s)", ptr.Deref(days, 0)))
	}
	return nil
}
