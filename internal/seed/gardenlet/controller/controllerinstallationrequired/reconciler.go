package controllerinstallationrequired

import (
	"context"
	"fmt"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// Reconciler reports which extensions of a seed are required.
type Reconciler struct{ controllerutils.Base }

// Reconcile checks one ControllerInstallation, even if it is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	installation := &corev1beta1.ControllerInstallation{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, installation); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !controllerinstallation.Own(installation, r.SeedName) {
		return reconcile.Result{}, nil
	}
	name, registration := installation.Spec.RegistrationRef.Name, &corev1beta1.ControllerRegistration{}
	if err := r.GardenClient.Get(ctx, client.ObjectKey{Name: name}, registration); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading ControllerRegistration %s of ControllerInstallation %s: %w", name, installation.Name, err)
	}
	found, unknown, err := exist(ctx, r.SeedClient, registration.Spec.Resources)
	if err != nil || len(found) == 0 && unknown {
		return reconcile.Result{}, err
	}
	now := conditions.Condition{Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionFalse,
		Reason: "NoExtensionObjects", Message: "There are no extension resources in the seed that the extension is responsible for."}
	if len(found) > 0 {
		now.Status, now.Reason = corev1beta1.ConditionTrue, "ExtensionObjectsExist"
		now.Message = "There are extension resources in the seed that the extension is responsible for: " + strings.Join(found, ", ")
	}
	return reconcile.Result{}, controllerinstallation.PatchConditions(ctx, r.GardenClient, r.Clock, installation, now)
}
