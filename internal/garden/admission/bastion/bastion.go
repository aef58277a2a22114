// Package bastion is the admission plugin Bastion: it finds the Shoot that a Bastion leads to and fills in what the
// Bastion needs to know of it, who made it, and that it goes with the Shoot.
//
// It may import the plugin, request and shootcommon packages. What it refuses is invalid, not forbidden, as in Gardener.
package bastion

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/operations"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory makes the plugin.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "Bastion", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return &mutator{admission.NewHandler(admission.Create, admission.Update), deps.Reader}, nil
	}}
}

type mutator struct {
	*admission.Handler
	reader plugin.Reader
}

var _ admission.MutationInterface = &mutator{}

// Admit implements admission.MutationInterface.
func (m *mutator) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !request.IsAbout(a, operations.Kind("Bastion")) {
		return nil
	}
	bastion, ok := a.GetObject().(*operations.Bastion)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("the request is about a Bastion but carries a %T", a.GetObject()))
	}
	shoot, fieldErr, err := m.shoot(ctx, bastion, a.GetOperation() == admission.Create)
	if err != nil {
		return err
	}
	if fieldErr != nil {
		return apierrors.NewInvalid(operations.Kind("Bastion"), bastion.Name, field.ErrorList{fieldErr})
	}
	complete(bastion, shoot)
	if user := a.GetUserInfo(); a.GetOperation() == admission.Create && user != nil {
		metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, v1beta1constants.GardenCreatedBy, user.GetName())
	}
	return nil
}

// shoot is the Shoot that a Bastion leads to, if that can be done. A Bastion that is on its way out may lead to a Shoot
// that has no SSH any more, and to one that is deleted too.
func (m *mutator) shoot(ctx context.Context, bastion *operations.Bastion, isNew bool) (*gardencore.Shoot, *field.Error, error) {
	path, name := field.NewPath("spec", "shootRef", "name"), bastion.Spec.ShootRef.Name
	if name == "" {
		return nil, field.Required(path, "must name a Shoot of the namespace"), nil
	}
	shoot, err := plugin.Get[*gardencore.Shoot](ctx, m.reader, gardencore.Resource("shoots"), bastion.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, field.Invalid(path, name, "is not a Shoot of the namespace "+bastion.Namespace), nil
	case err != nil:
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("reading the Shoot %s/%s of the Bastion: %v", bastion.Namespace, name, err))
	case isNew && shoot.DeletionTimestamp != nil:
		return nil, field.Invalid(path, name, "is being deleted"), nil
	case ptr.Deref(shoot.Spec.SeedName, "") == "":
		return nil, field.Invalid(path, name, "has no seed yet: try again when it is scheduled"), nil
	case bastion.DeletionTimestamp == nil && !allowsSSH(shoot):
		return nil, field.Invalid(path, name, "has no nodes that can be reached with SSH: see spec.provider.workersSettings.sshAccess of the Shoot"), nil
	}
	return shoot, nil, nil
}

func allowsSSH(shoot *gardencore.Shoot) bool {
	settings := shoot.Spec.Provider.WorkersSettings
	return !shootcommon.Workerless(shoot) && (settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled)
}

func complete(bastion *operations.Bastion, shoot *gardencore.Shoot) {
	bastion.Spec.SeedName = ptr.To(*shoot.Spec.SeedName)
	bastion.Spec.ProviderType = ptr.To(shoot.Spec.Provider.Type)
	for _, owner := range bastion.OwnerReferences {
		if owner.UID == shoot.UID {
			return
		}
	}
	bastion.OwnerReferences = append(bastion.OwnerReferences, *metav1.NewControllerRef(shoot, gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot")))
}
