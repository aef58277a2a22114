package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// finalizerRemovalPlugin is the admission plugin FinalizerRemoval, which refuses to remove Gardener's finalizer from a
// binding that a Shoot uses, or from a Shoot whose deletion is not complete.
var finalizerRemovalPlugin = plugin.Factory{
	Name:       "FinalizerRemoval",
	Operations: []admission.Operation{admission.Update},
	Validate:   validateFinalizerRemoval,
}

func validateFinalizerRemoval(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
	obj, objErr := meta.Accessor(a.GetObject())
	old, oldErr := meta.Accessor(a.GetOldObject())
	if errors.Join(objErr, oldErr) != nil || !removesFinalizer(obj, old) {
		return nil
	}
	switch a.GetKind().GroupKind() {
	case gardencore.Kind("SecretBinding"):
		return validateUnused(ctx, deps.Reader, obj, func(shoot *gardencore.Shoot) *string { return shoot.Spec.SecretBindingName })
	case security.Kind("CredentialsBinding"):
		return validateUnused(ctx, deps.Reader, obj, func(shoot *gardencore.Shoot) *string { return shoot.Spec.CredentialsBindingName })
	case gardencore.Kind("Shoot"):
		shoot, _, err := request.Objects[gardencore.Shoot](a)
		if err == nil && !isDeleted(shoot) {
			return forbiddenRemoval("the shoot's deletion has not succeeded yet")
		}
		return err
	}
	return nil
}

func removesFinalizer(obj, old metav1.Object) bool {
	return slices.Contains(old.GetFinalizers(), gardencore.GardenerName) && !slices.Contains(obj.GetFinalizers(), gardencore.GardenerName)
}

func validateUnused(ctx context.Context, r plugin.Reader, binding metav1.Object, name func(*gardencore.Shoot) *string) error {
	shoots, err := plugin.List[*gardencore.Shoot](ctx, r, gardencore.Resource("shoots"), binding.GetNamespace(), nil)
	if err != nil {
		return fmt.Errorf("listing the shoots of namespace %q: %v", binding.GetNamespace(), err)
	}
	for _, shoot := range shoots {
		if ptr.Deref(name(shoot), "") == binding.GetName() {
			return forbiddenRemoval(fmt.Sprintf("shoot %q uses the binding", shoot.Name))
		}
	}
	return nil
}

// isDeleted reports whether the deletion of a Shoot has succeeded, or the Shoot has never been reconciled.
func isDeleted(shoot *gardencore.Shoot) bool {
	operation := shoot.Status.LastOperation
	return shoot.Status.TechnicalID == "" || operation == nil ||
		operation.Type == gardencore.LastOperationTypeDelete && operation.State == gardencore.LastOperationStateSucceeded &&
			operation.Progress == 100
}

func forbiddenRemoval(why string) error {
	return field.Forbidden(field.NewPath("metadata", "finalizers"), fmt.Sprintf("%q must stay: %s", gardencore.GardenerName, why))
}
