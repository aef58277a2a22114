package controllerinstallationcare

import (
	"context"
	"fmt"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation-care"

// syncPeriod is the period of the check, as in Gardener. Events of the seed trigger a check earlier.
const syncPeriod = 30 * time.Second

// Reconciler checks the health of the extensions of a seed.
type Reconciler struct{ controllerutils.Base }

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, component.Creations())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
			handler.EnqueueRequestsFromMapFunc(installationOf), changed())).
		// The token may be written after the ManagedResource is applied.
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofToken), builder.WithPredicates(tokenChanged())).
		Complete(r)
}

// changed returns a predicate for changes of the status of a ManagedResource.
func changed() predicate.Predicate {
	return component.ChangesIf(func(before, after *resourcesv1alpha1.ManagedResource) bool {
		return !equality.Semantic.DeepEqual(before.Status, after.Status)
	})
}

func installationOf(_ context.Context, obj client.Object) []reconcile.Request {
	if obj.GetNamespace() != constants.GardenNamespace {
		return nil
	}
	return controllerinstallation.Requests(obj.GetLabels()[controllerinstallation.LabelInstallation])
}

// tokenChanged returns a predicate for access Secrets that are created or deleted, or whose token was renewed.
func tokenChanged() predicate.Predicate {
	isAccess := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == controllerinstallation.AccessSecretName })
	return predicate.And[client.Object](isAccess, component.ChangesIf(func(before, after client.Object) bool {
		const renewal = resourcesv1alpha1.ServiceAccountTokenRenewTimestamp
		return before.GetAnnotations()[renewal] != after.GetAnnotations()[renewal]
	}))
}

func ofToken(_ context.Context, obj client.Object) []reconcile.Request {
	return controllerinstallation.Requests(controllerinstallation.OfNamespace(obj.GetNamespace()))
}

// Reconcile checks one ControllerInstallation.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	installation := &corev1beta1.ControllerInstallation{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, installation); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !controllerinstallation.Own(installation, r.SeedName) || installation.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now, err := r.checkHealth(ctx, installation)
	if err := controllerinstallation.PatchConditions(ctx, r.GardenClient, r.Clock, installation, now...); err != nil {
		return reconcile.Result{}, err
	}
	return component.RequeueAfter(syncPeriod, err)
}

// checkHealth returns the conditions of an extension. An error means that its state could not be read.
func (r *Reconciler) checkHealth(ctx context.Context, installation *corev1beta1.ControllerInstallation) ([]conditions.Condition, error) {
	resource := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: installation.Name}
	if err := r.SeedClient.Get(ctx, key, resource); err != nil {
		message := fmt.Sprintf("The ManagedResource %s cannot be read in the seed: %v", key, err)
		var all []conditions.Condition
		for _, kind := range []corev1beta1.ConditionType{installed, healthy, progressing} {
			all = append(all, conditions.Condition{Type: kind, Status: corev1beta1.ConditionUnknown, Reason: "SeedReadError", Message: message})
		}
		return all, client.IgnoreNotFound(err) // the ManagedResource may not exist yet
	}
	missing, err := r.missing(ctx, installation, resource)
	if err != nil {
		return nil, err
	}
	return []conditions.Condition{
		newCondition(installed, missing, corev1beta1.ConditionTrue, "InstallationSuccessful", "The extension is installed in the seed.",
			corev1beta1.ConditionFalse, "InstallationPending"),
		newCondition(healthy, failedCondition(resource, resourcesv1alpha1.ResourcesHealthy, corev1beta1.ConditionTrue),
			corev1beta1.ConditionTrue, "ControllerHealthy", "What the extension consists of in the seed is healthy.",
			corev1beta1.ConditionFalse, "ControllerNotHealthy"),
		newCondition(progressing, failedCondition(resource, resourcesv1alpha1.ResourcesProgressing, corev1beta1.ConditionFalse),
			corev1beta1.ConditionFalse, "ControllerRolledOut", "What the extension consists of in the seed is rolled out.",
			corev1beta1.ConditionTrue, "ControllerNotRolledOut"),
	}, nil
}

const (
	installed   = corev1beta1.ControllerInstallationInstalled
	healthy     = corev1beta1.ControllerInstallationHealthy
	progressing = corev1beta1.ControllerInstallationProgressing
)

// newCondition returns the good condition if wrong is empty, and otherwise the bad one with wrong as its message.
func newCondition(kind corev1beta1.ConditionType, wrong string, good corev1beta1.ConditionStatus, goodReason, message string,
	bad corev1beta1.ConditionStatus, badReason string) conditions.Condition {
	if wrong != "" {
		return conditions.Condition{Type: kind, Status: bad, Reason: badReason, Message: wrong}
	}
	return conditions.Condition{Type: kind, Status: good, Reason: goodReason, Message: message}
}

// failedCondition returns a message if a condition of a ManagedResource does not have the wanted status, empty if it
// does.
func failedCondition(resource *resourcesv1alpha1.ManagedResource, kind corev1beta1.ConditionType,
	wanted corev1beta1.ConditionStatus) string {
	found := conditions.Find(resource.Status.Conditions, kind)
	switch {
	case found.Reason == "" && found.Status == corev1beta1.ConditionUnknown:
		return fmt.Sprintf("The condition %s of ManagedResource %s has not been reported yet.", kind, resource.Name)
	case found.Status != wanted:
		return fmt.Sprintf("The condition %s of ManagedResource %s is %s: %s", kind, resource.Name, found.Status, found.Message)
	}
	return ""
}

// missing returns what an extension lacks to be installed, empty if nothing.
func (r *Reconciler) missing(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	resource *resourcesv1alpha1.ManagedResource) (string, error) {
	if resource.Status.ObservedGeneration != resource.Generation {
		return fmt.Sprintf("The ManagedResource %s has changed, and is not applied yet.", resource.Name), nil
	}
	if wrong := failedCondition(resource, resourcesv1alpha1.ResourcesApplied, corev1beta1.ConditionTrue); wrong != "" {
		return wrong, nil
	}
	name := controllerinstallation.NamespaceName(installation.Name)
	namespace := &corev1.Namespace{}
	if err := r.SeedClient.Get(ctx, client.ObjectKey{Name: name}, namespace); apierrors.IsNotFound(err) || err == nil &&
		namespace.DeletionTimestamp != nil {
		return fmt.Sprintf("The namespace %s is not there.", name), nil
	} else if err != nil {
		return "", fmt.Errorf("reading the namespace %s in the seed: %w", name, err)
	}
	deployment, err := controllerinstallation.Deployment(ctx, r.GardenReader, installation)
	if err != nil || deployment == nil || !controllerinstallation.AsksForGarden(deployment) {
		return "", err
	}
	return r.missingToken(ctx, name, deployment)
}

// missingToken returns a message if an extension waits for its token for the garden, empty if not.
func (r *Reconciler) missingToken(ctx context.Context, namespace string, deployment *gardencorev1.ControllerDeployment) (string, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: controllerinstallation.AccessSecretName}
	err := r.SeedClient.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err) && !controllerinstallation.Simulated(deployment):
		return "", nil // no workload of the chart needs a token
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("reading Secret %s in the seed: %w", key, err)
	case len(secret.Data[resourcesv1alpha1.DataKeyToken]) == 0:
		return fmt.Sprintf("There is no token for the garden in Secret %s yet.", key), nil
	}
	return "", nil
}
