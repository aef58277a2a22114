// Package operations is the storage of the API group operations.gardener.cloud.
package operations

import (
	"context"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// TimeToLive is how long a Bastion lives after its last heartbeat (GEP-15).
const TimeToLive = time.Hour

// Storage is the storage of the group, by version and resource.
func Storage(getter generic.RESTOptionsGetter, clock clock.PassiveClock) (map[string]map[string]rest.Storage, error) {
	b := resource.NewBuilder(getter)
	resource.Add(b, bastions(clock))
	return b.Result()
}

func bastions(clock clock.PassiveClock) resource.Definition[*gardenoperations.Bastion] {
	return resource.Definition[*gardenoperations.Bastion]{
		Resource: gardenoperations.Resource("bastions"), Singular: "bastion", Versions: []string{"v1alpha1"}, Namespaced: true, Unconditional: true,
		New:         func() *gardenoperations.Bastion { return &gardenoperations.Bastion{} },
		NewList:     func() runtime.Object { return &gardenoperations.BastionList{} },
		CopySpec:    func(to, from *gardenoperations.Bastion) { to.Spec = from.Spec },
		CopyStatus:  func(to, from *gardenoperations.Bastion) { to.Status = from.Status },
		SpecChanged: func(b, old *gardenoperations.Bastion) bool { return bastionSpecChanged(b, old) },
		PrepareForCreate: func(_ context.Context, b *gardenoperations.Bastion) {
			resource.TakeOperation(b, v1beta1constants.GardenerOperationKeepalive)
			heartbeat(b, clock.Now())
		},
		PrepareForUpdate: func(_ context.Context, b, _ *gardenoperations.Bastion) {
			if b.DeletionTimestamp == nil && resource.TakeOperation(b, v1beta1constants.GardenerOperationKeepalive) {
				heartbeat(b, clock.Now())
			}
		},
		Fields: func(b *gardenoperations.Bastion) fields.Set {
			return fields.Set{
				gardenoperations.BastionSeedName:  ptr.Deref(b.Spec.SeedName, ""),
				gardenoperations.BastionShootName: b.Spec.ShootRef.Name,
			}
		},
		Indexed: []string{gardenoperations.BastionSeedName},
		Columns: []resource.Column[*gardenoperations.Bastion]{
			{Name: "Shoot", About: "The shoot whose nodes it leads to.", Value: func(b *gardenoperations.Bastion) any { return b.Spec.ShootRef.Name }},
			{Name: "Seed", About: "The shoot's seed.", Value: func(b *gardenoperations.Bastion) any { return ptr.Deref(b.Spec.SeedName, resource.None) }},
			{Name: "IP", About: "Where it is reached.", Value: bastionAddress},
			{Name: "Heartbeat", Type: "date", About: "When it was last kept alive.", Value: func(b *gardenoperations.Bastion) any { return age(b.Status.LastHeartbeatTimestamp, clock) }},
			{Name: "Expires", Type: "date", About: "When it will be deleted.", Value: func(b *gardenoperations.Bastion) any { return until(b.Status.ExpirationTimestamp, clock) }},
		},
	}
}

func bastionSpecChanged(b, old *gardenoperations.Bastion) bool {
	return !resource.SpecEquality(old.Spec, b.Spec) || resource.TakeOperation(b, v1beta1constants.GardenerOperationReconcile)
}

func heartbeat(b *gardenoperations.Bastion, now time.Time) {
	b.Status.LastHeartbeatTimestamp = ptr.To(metav1.NewTime(now))
	b.Status.ExpirationTimestamp = ptr.To(metav1.NewTime(now.Add(TimeToLive)))
}

func bastionAddress(b *gardenoperations.Bastion) any {
	switch ingress := b.Status.Ingress; {
	case ingress == nil:
		return resource.Pending
	case ingress.IP != "":
		return ingress.IP
	default:
		return ingress.Hostname
	}
}
