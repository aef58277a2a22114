package controllermanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// seedExtensionsCheckName is the name of the controller, which is Gardener's.
const seedExtensionsCheckName = "seed-extensions-check"

// extensionChecks are the conditions that a ControllerInstallation must have, the most important first.
var extensionChecks = []struct {
	condition corev1beta1.ConditionType
	good      corev1beta1.ConditionStatus
	// reason is Gardener's reason for a Seed that has an installation without the good status; problem completes
	// "Some extensions are …".
	reason, problem string
}{
	{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue, "NotAllExtensionsValid", "not valid"},
	{corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionTrue, "NotAllExtensionsInstalled", "not installed"},
	{corev1beta1.ControllerInstallationHealthy, corev1beta1.ConditionTrue, "NotAllExtensionsHealthy", "not healthy"},
	{corev1beta1.ControllerInstallationProgressing, corev1beta1.ConditionFalse, "SomeExtensionsProgressing", "progressing"},
}

// SeedExtensionsCheck reports in the condition ExtensionsReady of a Seed whether all extensions that are installed in
// it are valid, installed, healthy and not progressing, according to the conditions of their ControllerInstallations.
type SeedExtensionsCheck struct {
	kit.Base
	// Threshold is how long the condition is Progressing before it is False.
	Threshold time.Duration
}

// AddToManager adds the controller to the manager.
func (r *SeedExtensionsCheck) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, seedExtensionsCheckName)
	return component.NewControllerBuilder(mgr, seedExtensionsCheckName).
		Watches(&corev1beta1.ControllerInstallation{}, handler.EnqueueRequestsFromMapFunc(kit.SeedsOf(kit.OfInstallation)),
			builder.WithPredicates(component.CreationsAndUpdatesIf(installationChanged))).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// installationChanged reports whether one of the checked conditions has another status, reason or message than before.
func installationChanged(before, after *corev1beta1.ControllerInstallation) bool {
	for _, check := range extensionChecks {
		b, a := conditions.Get(before.Status.Conditions, check.condition), conditions.Get(after.Status.Conditions, check.condition)
		if (b == nil) != (a == nil) || a != nil && (a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message) {
			return true
		}
	}
	return false
}

// Reconcile checks the ControllerInstallations of one Seed.
func (r *SeedExtensionsCheck) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	installations := &corev1beta1.ControllerInstallationList{}
	if err := r.Client.List(ctx, installations, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing what is installed in the Seed %q: %w", seed.Name, err)
	}
	in := slices.DeleteFunc(slices.Clone(installations.Items), func(i corev1beta1.ControllerInstallation) bool {
		return i.Spec.SeedRef == nil || i.Spec.SeedRef.Name != seed.Name
	})
	err := conditions.WriteSeed(ctx, r.Client, r.Clock, seed, extensionsVerdict(in), r.Threshold)
	return component.RequeueAfter(DefaultSeedCheckSyncPeriod, err)
}

// extensionsVerdict returns the condition of a Seed with these installations.
func extensionsVerdict(installations []corev1beta1.ControllerInstallation) corev1beta1.Condition {
	bad := map[corev1beta1.ConditionType][]string{}
	for _, installation := range installations {
		for kind, message := range extensionProblems(installation.Status.Conditions) {
			bad[kind] = append(bad[kind], installation.Name+": "+message)
		}
	}
	for _, check := range extensionChecks {
		if all := bad[check.condition]; len(all) > 0 {
			slices.Sort(all)
			return corev1beta1.Condition{
				Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionFalse, Reason: check.reason,
				Message: fmt.Sprintf("Some extensions are %s: %s", check.problem, strings.Join(all, "; ")),
			}
		}
	}
	return corev1beta1.Condition{
		Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionTrue, Reason: "AllExtensionsReady",
		Message: "All extensions that are installed in the seed are ready and healthy.",
	}
}

// extensionProblems returns the messages of the conditions that do not have the good status. A missing condition counts as not
// healthy.
func extensionProblems(all []corev1beta1.Condition) map[corev1beta1.ConditionType]string {
	if len(all) == 0 {
		return map[corev1beta1.ConditionType]string{corev1beta1.ControllerInstallationInstalled: "not yet installed"}
	}
	found, missing := map[corev1beta1.ConditionType]string{}, false
	for _, check := range extensionChecks {
		condition := conditions.Get(all, check.condition)
		if condition == nil {
			missing = true
		} else if condition.Status != check.good {
			found[check.condition] = condition.Message
		}
	}
	if _, known := found[corev1beta1.ControllerInstallationHealthy]; missing && !known {
		found[corev1beta1.ControllerInstallationHealthy] = "some conditions are not there yet"
	}
	return found
}
