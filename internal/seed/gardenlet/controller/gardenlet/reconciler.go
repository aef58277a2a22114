package gardenlet

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "gardenlet"

// syncPeriod is the period in which the gardenlet is deployed again, as in Gardener.
const syncPeriod = time.Hour

// Reconciler reconciles the Gardenlet object of a seed.
type Reconciler struct {
	controllerutils.Base
	// GardenConfig has the address and CA of the garden for a new identity. Credentials in it are ignored.
	GardenConfig *rest.Config
	Deployer     deployment.Deployer
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: 1}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &seedmanagementv1alpha1.Gardenlet{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.isOwn), predicate.GenerationChangedPredicate{})).
		Complete(r)
}

func (r *Reconciler) isOwn(obj client.Object) bool {
	return obj.GetNamespace() == constants.GardenNamespace && r.Own(obj)
}

// Reconcile deploys the gardenlet as its object says.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	gardenlet := &seedmanagementv1alpha1.Gardenlet{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, gardenlet); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.isOwn(gardenlet) || gardenlet.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	generation := gardenlet.Generation
	if err := r.install(ctx, gardenlet); err != nil {
		r.event(gardenlet, corev1.EventTypeWarning, corev1beta1.EventReconcileError, err.Error())
		if statusErr := r.report(ctx, gardenlet, generation, corev1beta1.ConditionFalse, corev1beta1.EventReconcileError,
			err.Error()); statusErr != nil {
			logf.FromContext(ctx).Error(statusErr, "Writing the status of a Gardenlet")
		}
		return reconcile.Result{}, err
	}
	r.event(gardenlet, corev1.EventTypeNormal, corev1beta1.EventReconciled, "Gardenlet has been deployed")
	message := fmt.Sprintf("Gardenlet with chart from %s has been deployed", chart(gardenlet))
	return reconcile.Result{RequeueAfter: syncPeriod},
		r.report(ctx, gardenlet, generation, corev1beta1.ConditionTrue, corev1beta1.EventReconciled, message)
}

func (r *Reconciler) install(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet) error {
	config, err := deployment.Config(gardenlet.Name, gardenlet.Spec.Config, nil)
	if err != nil {
		return err
	}
	r.event(gardenlet, corev1.EventTypeNormal, corev1beta1.EventReconciling, "Deploying gardenlet")
	installer := deployment.Installer{Bootstrapper: deployment.Bootstrapper{Base: &r.Base, GardenConfig: r.GardenConfig}, Deployer: r.Deployer}
	spec := gardenlet.Spec.Deployment
	return installer.Install(ctx, gardenlet, deployment.Gardenlet{
		Target:                        deployment.Target{SeedName: gardenlet.Name},
		Config:                        config,
		Deployment:                    *spec.GardenletDeployment.DeepCopy(),
		ImageVectorOverwrite:          spec.ImageVectorOverwrite,
		ComponentImageVectorOverwrite: spec.ComponentImageVectorOverwrite,
		Owner:                         deployment.Owner("Gardenlet", gardenlet),
	}, seedmanagementv1alpha1.BootstrapToken)
}

// chart returns the reference of the gardenlet's chart for messages. A Gardenlet that the garden did not validate may
// have none.
func chart(gardenlet *seedmanagementv1alpha1.Gardenlet) string {
	repository := gardenlet.Spec.Deployment.Helm.OCIRepository
	if repository.Ref == nil && repository.Repository == nil {
		return "nowhere"
	}
	return repository.GetURL()
}

func (r *Reconciler) report(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet, generation int64,
	is corev1beta1.ConditionStatus, reason, message string) error {
	now := conditions.Condition{Type: seedmanagementv1alpha1.GardenletReconciled, Status: is, Reason: reason, Message: message}
	return operation.PatchStatus(ctx, r.GardenClient, gardenlet, func(gardenlet *seedmanagementv1alpha1.Gardenlet) {
		gardenlet.Status.ObservedGeneration = generation
		gardenlet.Status.Conditions, _ = conditions.Set(gardenlet.Status.Conditions, now, r.Clock)
	})
}

func (r *Reconciler) event(gardenlet *seedmanagementv1alpha1.Gardenlet, severity, reason, message string) {
	r.Recorder.Eventf(gardenlet, nil, severity, reason, corev1beta1.EventActionReconcile, "%s", message)
}
