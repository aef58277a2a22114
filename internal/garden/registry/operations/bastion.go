// Package operations provides the storage of the API group operations.gardener.cloud.
package operations

import (
	"cmp"
	"context"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/operationsvalidation"
)

// The default and the limits of the time that a Bastion lives after its last heartbeat (GEP-15). The default is the
// same as in Gardener, which has no limits.
const (
	DefaultTimeToLive = time.Hour
	MinTimeToLive     = 10 * time.Second
	MaxTimeToLive     = 24 * time.Hour
)

// bastions returns the Definition of Bastions. Only the API server sets the times of their heartbeat and expiration.
func bastions(clock clock.PassiveClock, timeToLive time.Duration) resource.Definition[*gardenoperations.Bastion] {
	return resource.Definition[*gardenoperations.Bastion]{
		Resource: gardenoperations.Resource("bastions"), Kind: "Bastion", Categories: []string{"all"},
		Versions: []string{"v1alpha1"}, Namespaced: true,
		CopySpec: func(to, from *gardenoperations.Bastion) { to.Spec = from.Spec },
		// Unlike in Gardener, a new Bastion does not keep the status of the request: clients trust its address.
		CopyStatus:  func(to, from *gardenoperations.Bastion) { to.Status = from.Status },
		SpecChanged: bastionSpecChanged,
		PrepareForCreate: func(_ context.Context, b *gardenoperations.Bastion) {
			resource.ConsumeOperationAnnotation(b, v1beta1constants.GardenerOperationKeepalive)
			heartbeat(b, clock.Now(), timeToLive)
		},
		PrepareForUpdate: func(_ context.Context, b, old *gardenoperations.Bastion) {
			if resource.ConsumeOperationAnnotation(b, v1beta1constants.GardenerOperationKeepalive) {
				heartbeat(b, clock.Now(), timeToLive)
			}
		},
		PrepareStatus:  func(_ context.Context, b, old *gardenoperations.Bastion) { keepHeartbeat(b, old, clock.Now()) },
		Validate:       validation.ValidateBastion,
		ValidateUpdate: validation.ValidateBastionUpdate,
		ValidateStatusUpdate: func(b, old *gardenoperations.Bastion) field.ErrorList {
			return validation.ValidateBastionStatusUpdate(b, old, clock.Now())
		},
		Fields: func(b *gardenoperations.Bastion) fields.Set {
			return fields.Set{
				gardenoperations.BastionSeedName:  ptr.Deref(b.Spec.SeedName, ""),
				gardenoperations.BastionShootName: b.Spec.ShootRef.Name,
			}
		},
		Indexed: []string{gardenoperations.BastionSeedName},
		Columns: bastionColumns(clock),
	}
}

// bastionSpecChanged reports whether the generation is increased. It keeps the operation reconcile in the annotation,
// from which the gardenlet removes it.
func bastionSpecChanged(b, old *gardenoperations.Bastion) bool {
	forced := func(b *gardenoperations.Bastion) bool {
		return b.Annotations[v1beta1constants.AnnotationConfirmationForceDeletion] == "true"
	}
	return !resource.Equal(old.Spec, b.Spec) || resource.HasOperationAnnotation(b, v1beta1constants.GardenerOperationReconcile) ||
		forced(b) && !forced(old)
}

// keepHeartbeat resets the owner, the expiration and the heartbeat of a Bastion when a client updates its status. It
// keeps a heartbeat in the future, so that the validation refuses it, as Gardener does.
func keepHeartbeat(b, old *gardenoperations.Bastion, now time.Time) {
	b.OwnerReferences = old.OwnerReferences
	resource.ConsumeOperationAnnotation(b, v1beta1constants.GardenerOperationKeepalive) // only updates of the Bastion itself keep it alive
	b.Status.ExpirationTimestamp = old.Status.ExpirationTimestamp
	if beat := b.Status.LastHeartbeatTimestamp; beat == nil || !beat.After(now) {
		b.Status.LastHeartbeatTimestamp = old.Status.LastHeartbeatTimestamp
	}
}

func heartbeat(b *gardenoperations.Bastion, now time.Time, timeToLive time.Duration) {
	now = now.Truncate(time.Second) // the API has no fractions of a second
	b.Status.LastHeartbeatTimestamp = ptr.To(metav1.NewTime(now))
	b.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(now.Add(timeToLive)))
}

// annotationSSHPort is the annotation with the SSH port of a bastion, if it is not 22; the gardenlet copies it from
// the seed.
const annotationSSHPort = "gardenlite.dev/ssh-port"

func bastionColumns(clock clock.PassiveClock) []resource.Column[*gardenoperations.Bastion] {
	return []resource.Column[*gardenoperations.Bastion]{
		{Name: "Shoot", Description: "The shoot whose nodes it leads to.",
			Value: func(b *gardenoperations.Bastion) any { return b.Spec.ShootRef.Name }},
		{Name: "Seed", Description: "The shoot's seed.",
			Value: func(b *gardenoperations.Bastion) any { return ptr.Deref(b.Spec.SeedName, resource.Pending) }},
		{Name: "IP", Description: "Where it is reached: a host name or an IP.", Value: func(b *gardenoperations.Bastion) any {
			switch ingress := b.Status.Ingress; {
			case ingress != nil && ingress.Hostname != "":
				return ingress.Hostname
			case ingress != nil && ingress.IP != "":
				return ingress.IP
			}
			return resource.Pending
		}},
		{Name: "Port", Wide: true, Description: "The port of its SSH server.", Value: func(b *gardenoperations.Bastion) any {
			if port := b.Annotations[annotationSSHPort]; port != "" || b.Status.Ingress == nil {
				return cmp.Or(port, resource.Pending)
			}
			return "22"
		}},
		{Name: "Heartbeat", Description: "When it was last kept alive.", Value: func(b *gardenoperations.Bastion) any {
			if beat := b.Status.LastHeartbeatTimestamp; !beat.IsZero() {
				return duration.HumanDuration(clock.Since(beat.Time)) + " ago"
			}
			return "<never>"
		}},
		{Name: "Expires", Description: "In how long it will be deleted.", Value: func(b *gardenoperations.Bastion) any {
			expiration := b.Status.ExpirationTimestamp
			if expiration.IsZero() {
				return resource.Pending
			}
			if left := expiration.Sub(clock.Now()); left >= 0 {
				return duration.HumanDuration(left)
			}
			return "<expired>"
		}},
	}
}

// Storage returns the storage of the group, by version and resource. A timeToLive of 0 means DefaultTimeToLive.
func Storage(getter generic.RESTOptionsGetter, clock clock.PassiveClock, timeToLive time.Duration) (
	map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, bastions(clock, cmp.Or(timeToLive, DefaultTimeToLive)))
	return b.Result()
}
