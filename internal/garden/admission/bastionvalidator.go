package admission

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/operations"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// bastionPlugin is the admission plugin Bastion. It sets the fields of a Bastion that derive from its Shoot, its
// creator, and the owner reference to the Shoot. Only the creator may change the ingress of a Bastion.
//
// As in Gardener, a Bastion that does not fit its Shoot is refused as Invalid; a change of its ingress by another user
// is refused as Forbidden.
var bastionPlugin = plugin.Factory{
	Name:       "Bastion",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(operations.Kind("Bastion"), completeBastion),
	Validate:   plugin.ForKind(operations.Kind("Bastion"), validateBastion),
}

func completeBastion(ctx context.Context, deps plugin.Dependencies, a admission.Attributes, bastion, old *operations.Bastion) error {
	isNew := a.GetOperation() == admission.Create
	// The deletion timestamp is read from the old Bastion, because the client controls the new one.
	if !isNew && old.DeletionTimestamp != nil {
		bastion.Spec.SeedName, bastion.Spec.ProviderType = old.Spec.SeedName, old.Spec.ProviderType
		return nil
	}
	shoot, fieldErr, err := shootOfBastion(ctx, deps.Reader, bastion, isNew)
	if err != nil {
		return err
	}
	if fieldErr != nil {
		return apierrors.NewInvalid(operations.Kind("Bastion"), bastion.Name, field.ErrorList{fieldErr})
	}
	setBastionFields(bastion, old, shoot)
	if isNew {
		metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, v1beta1constants.GardenCreatedBy, userName(a))
	}
	return nil
}

// validateBastion runs after all mutations, so that it sees the ingress as stored.
func validateBastion(_ context.Context, _ plugin.Dependencies, a admission.Attributes, bastion, old *operations.Bastion) error {
	if a.GetOperation() != admission.Update {
		return nil
	}
	creator := old.Annotations[v1beta1constants.GardenCreatedBy]
	if equality.Semantic.DeepEqual(bastion.Spec.Ingress, old.Spec.Ingress) || creator != "" && userName(a) == creator {
		return nil
	}
	return admission.NewForbidden(a, field.Forbidden(field.NewPath("spec", "ingress"),
		fmt.Sprintf("only %q, who created the Bastion, may change it: create a Bastion of your own", creator)))
}

// userName returns "" for a request without a user.
func userName(a admission.Attributes) string {
	if user := a.GetUserInfo(); user != nil {
		return user.GetName()
	}
	return ""
}

// shootOfBastion returns the Shoot of a Bastion if the Bastion can be used for it. If the Shoot is being deleted, only new
// Bastions are refused; an existing one can be changed until it is deleted as well.
func shootOfBastion(ctx context.Context, r plugin.Reader, bastion *operations.Bastion, isNew bool) (*gardencore.Shoot, *field.Error,
	error) {
	path, name := field.NewPath("spec", "shootRef", "name"), bastion.Spec.ShootRef.Name
	if name == "" {
		return nil, field.Required(path, "must name a Shoot of the namespace"), nil
	}
	shoot, err := plugin.Get[*gardencore.Shoot](ctx, r, gardencore.Resource("shoots"), bastion.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, field.Invalid(path, name, "is not a Shoot of the namespace "+bastion.Namespace), nil
	case err != nil:
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("reading the Shoot %s/%s of the Bastion: %v", bastion.Namespace, name, err))
	case isNew && shoot.DeletionTimestamp != nil:
		return nil, field.Invalid(path, name, "is being deleted"), nil
	case ptr.Deref(shoot.Spec.SeedName, "") == "":
		return nil, field.Invalid(path, name, "has no seed yet: try again when it is scheduled"), nil
	case !validation.SSHAccessEnabled(shoot):
		return nil, field.Invalid(
			path, name, "has no nodes that can be reached with SSH: see spec.provider.workersSettings.sshAccess of the Shoot"), nil
	}
	return shoot, nil, nil
}

// setBastionFields sets the fields that derive from the Shoot. The seed of an existing Bastion is kept even if the
// Shoot has moved, because the gardenlet of this seed has to clean up.
func setBastionFields(bastion, old *operations.Bastion, shoot *gardencore.Shoot) {
	bastion.Spec.SeedName = ptr.To(*shoot.Spec.SeedName)
	if seed := ptr.Deref(old.Spec.SeedName, ""); seed != "" {
		bastion.Spec.SeedName = &seed
	}
	bastion.Spec.ProviderType = ptr.To(shoot.Spec.Provider.Type)
	owner := *metav1.NewControllerRef(shoot, gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	for i, ref := range bastion.OwnerReferences {
		if ref.UID == owner.UID {
			bastion.OwnerReferences[i] = owner // overwrites the other fields that the client set
			return
		}
	}
	bastion.OwnerReferences = append(bastion.OwnerReferences, owner)
}
