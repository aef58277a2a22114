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
	networkingv1 "k8s.io/api/networking/v1"
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
		validateCreator(newBastion, oldBastion),
		apivalidation.ValidateImmutableField(newBastion.Spec.ShootRef.Name, oldBastion.Spec.ShootRef.Name, spec.Child("shootRef", "name")),
		apivalidation.ValidateImmutableField(newBastion.Spec.SSHPublicKey, oldBastion.Spec.SSHPublicKey, spec.Child("sshPublicKey")),
		ValidateBastion(newBastion),
	)
}

// ValidateBastionStatusUpdate has who made the bastion stay, which could be changed with
// the status as well, and refuses a heartbeat that is after now. One that is as it was is
// not looked at: clocks are set back at times.
func ValidateBastionStatusUpdate(newBastion, oldBastion *gardenoperations.Bastion, now time.Time) field.ErrorList {
	errs := validateCreator(newBastion, oldBastion)
	if beat := newBastion.Status.LastHeartbeatTimestamp; beat != nil && !beat.Equal(oldBastion.Status.LastHeartbeatTimestamp) && beat.After(now) {
		errs = append(errs, field.Invalid(field.NewPath("status", "lastHeartbeatTimestamp"), beat, "must not be in the future"))
	}
	return errs
}

func validateCreator(newBastion, oldBastion *gardenoperations.Bastion) field.ErrorList {
	creator := constants.GardenCreatedBy
	return apivalidation.ValidateImmutableField(newBastion.Annotations[creator], oldBastion.Annotations[creator], field.NewPath("metadata", "annotations"))
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
		errs = append(errs, validateIPBlock(policy.IPBlock, ingress)...)
	}
	return errs
}

// validateIPBlock wants what is excepted to be a part of the range, as Kubernetes does in
// a NetworkPolicy. Gardener takes anything; it would be lost on whoever wrote it.
func validateIPBlock(block networkingv1.IPBlock, path *field.Path) field.ErrorList {
	_, all, err := net.ParseCIDR(block.CIDR)
	if err != nil {
		return field.ErrorList{field.Invalid(path, block.CIDR, "must be a range of addresses in CIDR notation, like 198.51.100.0/24")}
	}
	var errs field.ErrorList
	for _, except := range block.Except {
		_, part, err := net.ParseCIDR(except)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path, except, "what is excepted must be a range of addresses in CIDR notation, like 198.51.100.128/25"))
		case !isPart(part, all):
			errs = append(errs, field.Invalid(path, except, "what is excepted must be a part of "+block.CIDR+", and not all of it"))
		}
	}
	return errs
}

func isPart(part, all *net.IPNet) bool {
	partOnes, partBits := part.Mask.Size()
	allOnes, allBits := all.Mask.Size()
	return partBits == allBits && partOnes > allOnes && all.Contains(part.IP)
}
