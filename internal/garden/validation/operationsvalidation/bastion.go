// Package operationsvalidation validates the objects of the API group operations.gardener.cloud in their internal
// version: bastions.
//
// The functions are pure and never panic; error types and field paths are the same as in Gardener's own API server.
// The package may import the Gardener API types, Kubernetes' API machinery and, of this module, bastionspec.
package operationsvalidation

import (
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"

	"github.com/gardenlite/gardenlite/internal/bastionspec"
)

// ValidateBastion checks a new bastion.
func ValidateBastion(bastion *gardenoperations.Bastion) field.ErrorList {
	return append(validateMeta(bastion), validateBastionSpec(&bastion.Spec, field.NewPath("spec"))...)
}

func validateMeta(bastion *gardenoperations.Bastion) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&bastion.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
}

// validateChangedSpec checks the spec only if it has changed, so that a spec that was valid before does not prevent
// the deletion of a bastion.
func validateChangedSpec(newBastion, oldBastion *gardenoperations.Bastion) field.ErrorList {
	if equality.Semantic.DeepEqual(newBastion.Spec, oldBastion.Spec) {
		return nil
	}
	return validateBastionSpec(&newBastion.Spec, field.NewPath("spec"))
}

// ValidateBastionUpdate checks a changed bastion. Its creator, shoot and public key are immutable, so that no other
// user can take it over.
func ValidateBastionUpdate(newBastion, oldBastion *gardenoperations.Bastion) field.ErrorList {
	metadata, spec := field.NewPath("metadata"), field.NewPath("spec")
	return slices.Concat(
		apivalidation.ValidateObjectMetaUpdate(&newBastion.ObjectMeta, &oldBastion.ObjectMeta, metadata),
		validateCreator(newBastion, oldBastion),
		apivalidation.ValidateImmutableField(newBastion.Spec.ShootRef.Name, oldBastion.Spec.ShootRef.Name, spec.Child("shootRef", "name")),
		apivalidation.ValidateImmutableField(newBastion.Spec.SSHPublicKey, oldBastion.Spec.SSHPublicKey, spec.Child("sshPublicKey")),
		validateMeta(newBastion),
		validateChangedSpec(newBastion, oldBastion),
	)
}

// ValidateBastionStatusUpdate refuses to change the creator, because an update of the status can also change
// annotations. It refuses a new heartbeat that is after now. It accepts an unchanged heartbeat, because the clock may
// have been set back.
func ValidateBastionStatusUpdate(newBastion, oldBastion *gardenoperations.Bastion, now time.Time) field.ErrorList {
	errs := validateCreator(newBastion, oldBastion)
	if beat := newBastion.Status.LastHeartbeatTimestamp; beat != nil &&
		!beat.Equal(oldBastion.Status.LastHeartbeatTimestamp) && beat.After(now) {
		errs = append(errs, field.Invalid(field.NewPath("status", "lastHeartbeatTimestamp"), beat, "must not be in the future"))
	}
	return errs
}

func validateCreator(newBastion, oldBastion *gardenoperations.Bastion) field.ErrorList {
	creator := constants.GardenCreatedBy
	return apivalidation.ValidateImmutableField(newBastion.Annotations[creator], oldBastion.Annotations[creator],
		field.NewPath("metadata", "annotations"))
}

func validateBastionSpec(spec *gardenoperations.BastionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ShootRef.Name == "" {
		errs = append(errs, field.Invalid(path.Child("shootRef", "name"), "", "must name a Shoot of the namespace"))
	}
	if _, err := bastionspec.ParsePublicKey(spec.SSHPublicKey); err != nil {
		errs = append(errs, field.Invalid(path.Child("sshPublicKey"), spec.SSHPublicKey, err.Error()))
	}
	ingress := path.Child("ingress") // as in Gardener, without an index
	if len(spec.Ingress) == 0 {
		errs = append(errs, field.Invalid(ingress, spec.Ingress, "must allow at least one range of addresses"))
	}
	blocks := make([]networkingv1.IPBlock, len(spec.Ingress))
	for i := range blocks {
		blocks[i] = spec.Ingress[i].IPBlock
	}
	_, wrong := bastionspec.ParseIngress(blocks, ingress)
	return append(errs, wrong...)
}
