// Package operations validates the objects of the API group
// operations.gardener.cloud in their internal version: bastions.
//
// The functions are pure and never panic; error types and field paths are those of
// Gardener's own API server. The package may import the Gardener API types and
// Kubernetes' API machinery, nothing else of this module.
package operations

import (
	"net"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
)

// ValidateBastion checks a bastion as such, be it new or changed.
func ValidateBastion(bastion *gardenoperations.Bastion) field.ErrorList {
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&bastion.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata")),
		validateBastionSpec(&bastion.Spec, field.NewPath("spec")),
	)
}

// ValidateBastionUpdate checks a changed bastion. Who made it, for which shoot and
// for whose key stays: it is not to be taken over by somebody else.
func ValidateBastionUpdate(newBastion, oldBastion *gardenoperations.Bastion) field.ErrorList {
	metadata, spec := field.NewPath("metadata"), field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newBastion.ObjectMeta, &oldBastion.ObjectMeta, metadata),
		apivalidation.ValidateImmutableField(newBastion.Annotations[constants.GardenCreatedBy], oldBastion.Annotations[constants.GardenCreatedBy], metadata.Child("annotations")),
		apivalidation.ValidateImmutableField(newBastion.Spec.ShootRef.Name, oldBastion.Spec.ShootRef.Name, spec.Child("shootRef", "name")),
		apivalidation.ValidateImmutableField(newBastion.Spec.SSHPublicKey, oldBastion.Spec.SSHPublicKey, spec.Child("sshPublicKey")),
		ValidateBastion(newBastion),
	)
}

// ValidateBastionStatusUpdate wants a heartbeat that is not after now: the end of
// the bastion's life is counted from it.
func ValidateBastionStatusUpdate(newBastion *gardenoperations.Bastion, now time.Time) field.ErrorList {
	path := field.NewPath("status", "lastHeartbeatTimestamp")
	switch beat := newBastion.Status.LastHeartbeatTimestamp; {
	case beat == nil:
		return field.ErrorList{field.Required(path, "must not be removed")}
	case beat.After(now):
		return field.ErrorList{field.Invalid(path, beat, "must not be in the future")}
	}
	return nil
}

func validateBastionSpec(spec *gardenoperations.BastionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ShootRef.Name == "" {
		errs = append(errs, field.Invalid(path.Child("shootRef", "name"), "", "must name a Shoot of the namespace"))
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(spec.SSHPublicKey)); err != nil {
		errs = append(errs, field.Invalid(path.Child("sshPublicKey"), spec.SSHPublicKey, "must be a public key as in authorized_keys, like: ssh-ed25519 AAAA…"))
	}
	ingress := path.Child("ingress") // Gardener names no index
	if len(spec.Ingress) == 0 {
		errs = append(errs, field.Invalid(ingress, spec.Ingress, "must allow at least one range of addresses"))
	}
	for _, policy := range spec.Ingress {
		if _, _, err := net.ParseCIDR(policy.IPBlock.CIDR); err != nil {
			errs = append(errs, field.Invalid(ingress, policy.IPBlock.CIDR, "must be a range of addresses in CIDR notation, like 198.51.100.0/24"))
		}
	}
	return errs
}
