// Package shootquotavalidator is the admission plugin ShootQuotaValidator. Quotas hang on the binding through which a
// Shoot gets its credentials: the Shoots that use one may not have more than it allows in all, nor live longer.
//
// It may import the plugin package, shootcommon and cloudprofile.
package shootquotavalidator

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
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory makes the plugin.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "ShootQuotaValidator", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return quotas{admission.NewHandler(admission.Create, admission.Update), deps}, nil
	}}
}

type quotas struct {
	*admission.Handler
	deps plugin.Dependencies
}

var _ admission.ValidationInterface = quotas{}

// Validate implements admission.ValidationInterface.
func (q quotas) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !shootcommon.IsShoot(a) {
		return nil
	}
	shoot, old, err := shootcommon.Objects(a)
	if err != nil {
		return err
	}
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	creating := a.GetOperation() == admission.Create
	needsMore := creating || asksForMore(shoot, old)
	livesOn := !creating && lifetime(old, old.CreationTimestamp.String()) != lifetime(shoot, "")
	// The binding and its quotas have to exist even if nothing is asked of them: as in Gardener, a Shoot whose limits are
	// unknown does not change.
	granted, err := q.of(ctx, shoot)
	if err != nil {
		return shootcommon.Refused(a, err)
	}
	if needsMore {
		for _, quota := range granted {
			exceeded, err := q.exceeded(ctx, quota, shoot)
			if err != nil {
				return shootcommon.Refused(a, err)
			}
			if len(exceeded) > 0 {
				return admission.NewForbidden(
					a, fmt.Errorf("the Quota %s/%s does not allow so much more of: %s", quota.Namespace, quota.Name, strings.Join(exceeded, ", ")))
			}
		}
	}
	if livesOn {
		return shootcommon.Refused(a, q.validateLifetime(shoot, granted))
	}
	return nil
}

// asksForMore says whether a change may need more of what quotas limit. Fewer or smaller worker pools are looked at too:
// only what stays the same is not.
func asksForMore(shoot, old *gardencore.Shoot) bool {
	if shootcommon.NginxIngress(shoot.Spec.Addons) && !shootcommon.NginxIngress(old.Spec.Addons) {
		return true
	}
	for _, worker := range shoot.Spec.Provider.Workers {
		before := shootcommon.Worker(old.Spec.Provider.Workers, worker.Name)
		if before == nil || worker.Machine.Type != before.Machine.Type || worker.Maximum != before.Maximum ||
			!equality.Semantic.DeepEqual(worker.Volume, before.Volume) {
			return true
		}
	}
	return false
}

func lifetime(shoot *gardencore.Shoot, otherwise string) string {
	if timestamp, ok := shoot.Annotations[v1beta1constants.ShootExpirationTimestamp]; ok {
		return timestamp
	}
	return otherwise
}

// validateLifetime lets a Shoot expire no later, counted from now, than the strictest of its quotas allows.
func (q quotas) validateLifetime(shoot *gardencore.Shoot, granted []*gardencore.Quota) error {
	var days *int32
	for _, quota := range granted {
		if limit := quota.Spec.ClusterLifetimeDays; limit != nil && (days == nil || *limit < *days) {
			days = limit
		}
	}
	timestamp := lifetime(shoot, "")
	if _, set := shoot.Annotations[v1beta1constants.ShootExpirationTimestamp]; !set || days == nil {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(v1beta1constants.ShootExpirationTimestamp)
	expiration, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return field.Invalid(path, timestamp, "must be a time as 2006-01-02T15:04:05Z")
	}
	if expiration.After(q.deps.Clock.Now().Add(time.Duration(*days) * 24 * time.Hour)) {
		return field.Forbidden(path, fmt.Sprintf("the quotas allow only %d more day(s)", ptr.Deref(days, 0)))
	}
	return nil
}
