package installation

import (
	"context"
	"slices"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "controllerinstallation-seed"

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, ControllerName)
	mapped := handler.EnqueueRequestsFromMapFunc
	always := builder.WithPredicates(component.CreationsAndUpdatesIf(func(_, _ client.Object) bool { return true }))
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Seed{}, builder.WithPredicates(seedChanged())).
		Watches(&corev1beta1.ControllerRegistration{}, mapped(r.AllSeeds), always).
		Watches(&gardencorev1.ControllerDeployment{}, mapped(r.seedsOfDeployment), always).
		Watches(&corev1beta1.ControllerInstallation{}, mapped(kit.SeedsOf(kit.OfInstallation)), builder.WithPredicates(requirementChanged())).
		Watches(&corev1beta1.BackupBucket{}, mapped(kit.SeedsOf(kit.OfBucket)), builder.WithPredicates(component.ChangesIf(bucketChanged))).
		Watches(&corev1beta1.BackupEntry{}, mapped(kit.SeedsOf(ofEntry)), builder.WithPredicates(component.ChangesIf(entryChanged))).
		Watches(&corev1beta1.Shoot{}, mapped(kit.SeedsOf(ofShoot)), builder.WithPredicates(component.ChangesIf(shootChanged))).
		WatchesMetadata(&corev1.ConfigMap{}, mapped(r.seedsOfResource("ConfigMap")), builder.WithPredicates(isResource())).
		WatchesMetadata(&corev1.Secret{}, mapped(r.seedsOfResource("Secret")), builder.WithPredicates(isResource())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// seedChanged passes Seeds whose spec, labels or annotations have changed, and those that are being deleted. It does
// not pass updates of the status.
func seedChanged() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Seed) bool {
		return after.DeletionTimestamp != nil ||
			!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Annotations, after.Annotations)
	})
}

// requirementChanged passes installations whose condition Required has become or ceased to be true, and deleted ones,
// because a deletion may be waited for before the new installation is created.
func requirementChanged() predicate.Predicate {
	return component.ChangesIf(func(before, after *corev1beta1.ControllerInstallation) bool {
		required := corev1beta1.ControllerInstallationRequired
		return conditions.IsTrue(before.Status.Conditions, required) != conditions.IsTrue(after.Status.Conditions, required)
	})
}

func bucketChanged(before, after *corev1beta1.BackupBucket) bool {
	return !ptr.Equal(before.Spec.SeedName, after.Spec.SeedName) || before.Spec.Provider.Type != after.Spec.Provider.Type
}

func entryChanged(before, after *corev1beta1.BackupEntry) bool {
	return !ptr.Equal(before.Spec.SeedName, after.Spec.SeedName) || before.Spec.BucketName != after.Spec.BucketName
}

func shootChanged(before, after *corev1beta1.Shoot) bool {
	b, a := &before.Spec, &after.Spec
	return !ptr.Equal(b.SeedName, a.SeedName) ||
		!ptr.Equal(before.Status.SeedName, after.Status.SeedName) ||
		b.Provider.Type != a.Provider.Type ||
		!ptr.Equal(networkOf(b), networkOf(a)) ||
		!equality.Semantic.DeepEqual(b.Provider.Workers, a.Provider.Workers) ||
		!equality.Semantic.DeepEqual(b.Extensions, a.Extensions) ||
		!equality.Semantic.DeepEqual(b.DNS, a.DNS)
}

func networkOf(spec *corev1beta1.ShootSpec) *string {
	if spec.Networking == nil {
		return nil
	}
	return spec.Networking.Type
}

// isResource passes the ConfigMaps and Secrets that ControllerDeployments may refer to, which have a label in the
// garden.
func isResource() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetNamespace() == constants.GardenNamespace && obj.GetLabels()[constants.GardenRole] == constants.GardenRoleResourceReference
	})
}

func ofEntry(entry *corev1beta1.BackupEntry) []*string { return []*string{entry.Spec.SeedName} }

func ofShoot(shoot *corev1beta1.Shoot) []*string {
	return []*string{shoot.Spec.SeedName, shoot.Status.SeedName}
}

// seedsOfDeployment returns requests for all Seeds if a registration refers to the deployment, else none.
func (r *Reconciler) seedsOfDeployment(ctx context.Context, deployment client.Object) []reconcile.Request {
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := r.Client.List(ctx, registrations, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing ControllerRegistrations")
		return nil
	}
	for _, registration := range registrations.Items {
		if d := registration.Spec.Deployment; d != nil &&
			slices.Contains(d.DeploymentRefs, corev1beta1.DeploymentRef{Name: deployment.GetName()}) {
			return r.AllSeeds(ctx, nil)
		}
	}
	return nil
}

// seedsOfResource returns a function that maps an object of the kind to requests for all Seeds if a deployment in use
// refers to it, else none.
func (r *Reconciler) seedsOfResource(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		deployments := &gardencorev1.ControllerDeploymentList{}
		if err := r.Client.List(ctx, deployments, client.UnsafeDisableDeepCopy); err != nil {
			logf.FromContext(ctx).Error(err, "Listing ControllerDeployments")
			return nil
		}
		for i, deployment := range deployments.Items {
			for _, resource := range deployment.Resources {
				if resource.ResourceRef.Kind != kind || resource.ResourceRef.Name != obj.GetName() {
					continue
				}
				if seeds := r.seedsOfDeployment(ctx, &deployments.Items[i]); len(seeds) > 0 {
					return seeds
				}
			}
		}
		return nil
	}
}
