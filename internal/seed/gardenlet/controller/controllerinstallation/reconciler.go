package controllerinstallation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
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
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation"

const (
	finalizer       = "core.gardener.cloud/controllerinstallation"
	namespacePrefix = "extension-"

	// requeueDeletion is the delay before the next check whether an object in deletion is gone. An event of the
	// seed triggers the check earlier.
	requeueDeletion = time.Second
)

// Labels of a ManagedResource with the names of its ControllerInstallation and ControllerRegistration, as in Gardener.
const (
	LabelInstallation = "controllerinstallation-name"
	LabelRegistration = "controllerregistration-name"
)

// Reconciler installs the extensions of a seed.
type Reconciler struct {
	controllerutils.Base
	// GardenConfig has the address and the CA of the garden (Host, CAData) for the kubeconfig of extensions.
	GardenConfig *rest.Config
	// Version is the version of Gardener, FeatureGates are those of the gardenlet. Both are values for all charts.
	Version      string
	FeatureGates map[string]bool
	// ChartLayouts is the folder with the OCI layouts for chart references with layout://, which fail if it is empty.
	ChartLayouts string

	finalized operation.DeletedObjects
}

// NamespaceName returns the namespace in the seed of the extension that a ControllerInstallation installs.
func NamespaceName(installation string) string { return namespacePrefix + installation }

// OfNamespace returns the name of the ControllerInstallation that a namespace of the seed belongs to, empty if there is none.
func OfNamespace(namespace string) string {
	installation, ok := strings.CutPrefix(namespace, namespacePrefix)
	if !ok {
		return ""
	}
	return installation
}

// Own reports whether a ControllerInstallation is for a seed.
func Own(installation *corev1beta1.ControllerInstallation, seed string) bool {
	return installation.Spec.SeedRef != nil && installation.Spec.SeedRef.Name == seed
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, changed())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &resourcesv1alpha1.ManagedResource{},
			handler.EnqueueRequestsFromMapFunc(ofManagedResource), component.Deletions())).
		WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), &corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(ofNamespace), component.Deletions())).
		Complete(r)
}

// changed returns a predicate for new and deleted ControllerInstallations, and for changes of their spec and their deletion
// timestamp. The spec also contains the resource versions of the objects that it refers to.
func changed() predicate.Predicate {
	return component.ChangesIf(func(before, after *corev1beta1.ControllerInstallation) bool {
		const valid = corev1beta1.ControllerInstallationValid
		return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
			// The retry after a failure may have read the condition of before the failure.
			conditions.IsTrue(before.Status.Conditions, valid) && !conditions.IsTrue(after.Status.Conditions, valid)
	})
}

func ofManagedResource(_ context.Context, obj client.Object) []reconcile.Request {
	return Requests(obj.GetLabels()[LabelInstallation])
}

func ofNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	return Requests(OfNamespace(obj.GetName()))
}

// Requests returns the request for a ControllerInstallation, none if the name is empty.
func Requests(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// Reconcile reconciles one ControllerInstallation.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	installation := &corev1beta1.ControllerInstallation{}
	if found, err := r.finalized.Read(ctx, r.GardenClient, request.NamespacedName, installation); !found || !Own(installation, r.SeedName) {
		return reconcile.Result{}, err
	}
	if installation.DeletionTimestamp != nil {
		wait, err := r.delete(ctx, installation)
		return reconcile.Result{RequeueAfter: wait}, err
	}
	return reconcile.Result{}, r.reconcile(ctx, installation)
}

func (r *Reconciler) reconcile(ctx context.Context, installation *corev1beta1.ControllerInstallation) error {
	deployment, err := Deployment(ctx, r.GardenReader, installation)
	if err != nil || deployment == nil || !responsible(deployment) {
		return err
	}
	if err := operation.AddFinalizer(ctx, r.GardenClient, installation, finalizer); err != nil {
		return err
	}
	registration, seed := &corev1beta1.ControllerRegistration{}, &corev1beta1.Seed{}
	for _, needed := range []struct {
		kind, name string
		obj        client.Object
	}{{"Registration", installation.Spec.RegistrationRef.Name, registration}, {"Seed", r.SeedName, seed}} {
		if err := r.GardenClient.Get(ctx, client.ObjectKey{Name: needed.name}, needed.obj); err != nil {
			return r.failed(ctx, installation, unreadable(needed.kind, needed.name, err), err)
		}
	}
	if seed.Status.ClusterIdentity == nil || seed.Status.KubernetesVersion == nil {
		return component.NotYet(fmt.Errorf("seed %s has no cluster identity or version yet; its gardenlet reports them", seed.Name))
	}
	objects, wrong, err := r.render(ctx, installation, seed, deployment)
	if err != nil {
		return fmt.Errorf("rendering the chart of ControllerDeployment %s: %w", deployment.Name, err)
	}
	if wrong != nil {
		return r.reportInvalid(ctx, installation, deployment, wrong)
	}
	valid := condition(corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue, "RegistrationValid", "The chart is rendered.")
	if Simulated(deployment) {
		valid.Message = "This process serves the extension. It has no chart."
	}
	all := []conditions.Condition{valid}
	if conditions.Find(installation.Status.Conditions, corev1beta1.ControllerInstallationInstalled).Status == corev1beta1.ConditionUnknown {
		// This is written before the installation: the care controller may report the progress before install returns.
		all = append(all, condition(corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionFalse, "InstallationPending",
			fmt.Sprintf("The ManagedResource %s has yet to be installed.", installation.Name)))
	}
	if err := r.report(ctx, installation, all...); err != nil {
		return err
	}
	if err := r.install(ctx, installation, registration, seed, objects); err != nil {
		return r.failed(ctx, installation, condition(corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionFalse,
			"InstallationFailed", err.Error()), err)
	}
	return nil
}

// Deployment reads the ControllerDeployment of an installation, nil if it has none.
func Deployment(ctx context.Context, garden client.Reader, installation *corev1beta1.ControllerInstallation) (
	*gardencorev1.ControllerDeployment, error) {
	ref := installation.Spec.DeploymentRef
	if ref == nil {
		return nil, nil
	}
	deployment := &gardencorev1.ControllerDeployment{}
	if err := garden.Get(ctx, client.ObjectKey{Name: ref.Name}, deployment); err != nil {
		return nil, fmt.Errorf("reading ControllerDeployment %s of ControllerInstallation %s: %w", ref.Name, installation.Name, err)
	}
	return deployment, nil
}

// reportInvalid reports what is wrong with a deployment. Objects that are already installed stay as they are.
func (r *Reconciler) reportInvalid(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	deployment *gardencorev1.ControllerDeployment, wrong *invalid) error {
	now := condition(corev1beta1.ControllerInstallationValid, corev1beta1.ConditionFalse, wrong.reason,
		fmt.Sprintf("ControllerDeployment %s: %v", deployment.Name, wrong.err))
	if wrong.final {
		return r.report(ctx, installation, now)
	}
	err := fmt.Errorf("rendering the chart of ControllerDeployment %s: %w", deployment.Name, wrong.err)
	return r.failed(ctx, installation, now, err)
}

func (r *Reconciler) install(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	registration *corev1beta1.ControllerRegistration,
	seed *corev1beta1.Seed, what *rendered) error {
	if err := r.reconcileNamespace(ctx, installation, registration, seed); err != nil {
		return err
	}
	if err := r.reconcileAccess(ctx, installation, registration.Name, what); err != nil {
		return err
	}
	return r.reconcileManagedResource(ctx, installation, what.objects)
}

func (r *Reconciler) report(ctx context.Context, installation *corev1beta1.ControllerInstallation, now ...conditions.Condition) error {
	return PatchConditions(ctx, r.GardenClient, r.Clock, installation, now...)
}

// failed reports a failure in a condition, and returns the cause.
func (r *Reconciler) failed(ctx context.Context, installation *corev1beta1.ControllerInstallation,
	now conditions.Condition, cause error) error {
	if err := r.report(ctx, installation, now); err != nil {
		logf.FromContext(ctx).Error(err, "Writing a condition", "condition", now.Type)
	}
	return cause
}

// ResponsibleFor returns the ControllerInstallations of a seed whose extension is responsible for a kind and type of extension
// resources. It leaves out those whose ControllerRegistration cannot be read, which their own reconciliation reports.
func ResponsibleFor(ctx context.Context, garden client.Reader, seed, kind, extensionType string) (
	found []corev1beta1.ControllerInstallation, err error) {
	all := &corev1beta1.ControllerInstallationList{}
	if err := garden.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the ControllerInstallations: %w", err)
	}
	for _, installation := range all.Items {
		registration := &corev1beta1.ControllerRegistration{}
		if !Own(&installation, seed) ||
			garden.Get(ctx, client.ObjectKey{Name: installation.Spec.RegistrationRef.Name}, registration) != nil {
			continue
		}
		if slices.ContainsFunc(registration.Spec.Resources, func(resource corev1beta1.ControllerResource) bool {
			return resource.Kind == kind && resource.Type == extensionType
		}) {
			found = append(found, installation)
		}
	}
	return found, nil
}

// PatchConditions writes the given conditions if they have changed, and keeps all others.
func PatchConditions(ctx context.Context, garden client.Client, clock clock.PassiveClock, installation *corev1beta1.ControllerInstallation,
	now ...conditions.Condition) error {
	before, changed := installation.DeepCopy(), false
	for _, c := range now {
		all, new := conditions.Set(installation.Status.Conditions, c, clock)
		installation.Status.Conditions, changed = all, changed || new
	}
	if !changed {
		return nil
	}
	if err := garden.Status().Patch(ctx, installation, client.StrategicMergeFrom(before)); err != nil {
		return fmt.Errorf("writing the conditions of ControllerInstallation %s: %w", installation.Name, err)
	}
	return nil
}

func condition(kind corev1beta1.ConditionType, status corev1beta1.ConditionStatus, reason, message string) conditions.Condition {
	return conditions.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func unreadable(kind, name string, err error) conditions.Condition {
	if apierrors.IsNotFound(err) {
		return condition(corev1beta1.ControllerInstallationValid, corev1beta1.ConditionFalse, kind+"NotFound",
			fmt.Sprintf("The %s %q that the installation refers to does not exist: %v", kind, name, err))
	}
	return condition(corev1beta1.ControllerInstallationValid, corev1beta1.ConditionUnknown, kind+"ReadError",
		fmt.Sprintf("The %s %q that the installation refers to cannot be read: %v", kind, name, err))
}
