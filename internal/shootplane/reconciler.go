package shootplane

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// ControllerName is the name of the controller.
const ControllerName = "control-planes"

// retry is the delay before the desired state is applied again after an error, for example because another seed still
// has the control plane, or because the Secret is incomplete. The conditions contain the reason.
const retry = 2 * time.Second

// Reconciler passes the desired state in a namespace to the Host, and writes the status to the objects there.
type Reconciler struct {
	Client client.Client
	Host   *Host
	Seed   string
	Clock  clock.PassiveClock
}

// AddToManager adds the controller to the manager. The name of a request is the name of a namespace.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	ofNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{request(obj.GetNamespace())}
	})
	ofControlPlane := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return strings.HasPrefix(obj.GetNamespace(), IDPrefix) && (obj.GetName() == spec.APIServer || obj.GetName() == spec.ControllerManager)
	})
	return component.NewControllerBuilder(mgr, ControllerName).
		Watches(&appsv1.Deployment{}, ofNamespace).
		Watches(&corev1.Service{}, ofNamespace).
		WatchesRawSource(source.TypedFunc[reconcile.Request](r.watchHost)).
		WithEventFilter(ofControlPlane).
		Complete(r)
}

func request(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// watchHost enqueues a request for each change of a control plane in the Host.
func (r *Reconciler) watchHost(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	stop := r.Host.Watch(r.Seed, func(id string) { queue.Add(request(id)) })
	context.AfterFunc(ctx, stop)
	return nil
}

// objects are the objects of a control plane in a shoot's namespace; missing ones are nil.
type objects struct {
	apiServer, controllers *appsv1.Deployment
	service                *corev1.Service
}

// Reconcile reconciles one control plane.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	id := req.Name
	found, err := r.find(ctx, id)
	if err != nil {
		return reconcile.Result{}, err
	}
	if found.apiServer == nil || found.apiServer.DeletionTimestamp != nil {
		if found.apiServer != nil && spec.IsGardeners(found.apiServer) && found.apiServer.Annotations[spec.AnnotationConfirmDeletion] == "" {
			return reconcile.Result{RequeueAfter: retry}, nil // it is not decided yet whether the data is deleted
		}
		return reconcile.Result{}, r.remove(ctx, id, found)
	}
	if err := operation.AddFinalizer(ctx, r.Client, found.apiServer, spec.Finalizer); err != nil {
		return reconcile.Result{}, err
	}
	if spec.IsGardeners(found.apiServer) {
		if err := r.readDescription(ctx, found); err != nil {
			return component.RequeueAfter(retry, r.report(ctx, found, DesiredState{APIServer: true}, Status{Phase: Waiting, Message: err.Error()}))
		}
	}
	desired, err := desiredState(found)
	var status Status
	if err == nil {
		status, err = r.Host.Apply(ctx, id, r.Seed, desired, func() (map[string][]byte, error) { return r.files(ctx, id) })
	}
	wait := time.Duration(0)
	if err != nil {
		wait = retry
		if status.Phase != Ready {
			status.Phase = Failed
		}
		status.Message = err.Error()
	}
	return component.RequeueAfter(wait, r.report(ctx, found, desired, status))
}

// readDescription copies the description of a control plane of Gardener's gardenlet from the Secret to the Deployments in memory.
func (r *Reconciler) readDescription(ctx context.Context, found objects) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: found.apiServer.Namespace, Name: spec.SecretName}
	if err := r.Client.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if secret.Annotations[spec.AnnotationGeneration] != spec.Generation(found.apiServer, found.controllers) {
		return fmt.Errorf("secret %s does not describe the Deployments as they are now", key)
	}
	found.apiServer.Annotations = labels.Merge(found.apiServer.Annotations, secret.Annotations)
	template := &found.apiServer.Spec.Template
	template.Annotations = labels.Merge(template.Annotations,
		map[string]string{spec.AnnotationChecksum: secret.Annotations[spec.AnnotationChecksum]})
	if found.controllers != nil {
		found.controllers.Annotations = labels.Merge(found.controllers.Annotations, secret.Annotations)
	}
	return nil
}

func (r *Reconciler) find(ctx context.Context, namespace string) (found objects, err error) {
	if found.apiServer, err = get(ctx, r.Client, namespace, spec.APIServer, &appsv1.Deployment{}); err != nil {
		return found, err
	}
	if found.controllers, err = get(ctx, r.Client, namespace, spec.ControllerManager, &appsv1.Deployment{}); err != nil {
		return found, err
	}
	found.service, err = get(ctx, r.Client, namespace, spec.ServiceName, &corev1.Service{})
	return found, err
}

// get reads an object. It returns nil if the object does not exist.
func get[T client.Object](ctx context.Context, c client.Client, namespace, name string, obj T) (_ T, err error) {
	var none T
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s/%s: %w", obj, namespace, name, err)
	}
	return obj, nil
}

// remove stops a control plane that has been deleted. It deletes the data if the Deployment has the annotation for
// that.
func (r *Reconciler) remove(ctx context.Context, id string, found objects) error {
	deployment := found.apiServer
	if deployment == nil {
		if status, there := r.Host.Status(id); !there || status.Owner != r.Seed {
			return nil
		}
	}
	purge := deployment != nil && deployment.Annotations[spec.AnnotationConfirmDeletion] == "true"
	status, done, err := r.Host.Remove(ctx, id, r.Seed, purge)
	if err != nil || deployment == nil {
		return err
	}
	if !done {
		return r.report(ctx, found, DesiredState{}, status)
	}
	return operation.RemoveFinalizers(ctx, r.Client, deployment, spec.Finalizer)
}

// desiredState returns the state that the objects describe.
func desiredState(found objects) (DesiredState, error) {
	deployment := found.apiServer
	d := DesiredState{
		APIServer: replicas(deployment) > 0,
		Checksum:  deployment.Spec.Template.Annotations[spec.AnnotationChecksum],
		Version:   spec.Version(deployment),
		Issuers:   deployment.Annotations[spec.AnnotationIssuers],
		Hosts:     deployment.Annotations[spec.AnnotationHosts],

		NodeAgents: spec.IsGardeners(deployment),
	}
	d.Controllers = d.APIServer && found.controllers != nil && found.controllers.DeletionTimestamp == nil && replicas(found.controllers) > 0
	var err error
	if d.ServiceCIDR, err = network(deployment, spec.AnnotationServiceCIDR); err == nil && found.controllers != nil {
		d.PodCIDR, err = network(found.controllers, spec.AnnotationPodCIDR)
	}
	if err == nil && found.controllers != nil && found.controllers.Annotations[spec.AnnotationNodeMask] != "" {
		if d.NodeMask, err = strconv.Atoi(found.controllers.Annotations[spec.AnnotationNodeMask]); err != nil {
			err = fmt.Errorf("the annotation %s of Deployment %s/%s: %w", spec.AnnotationNodeMask, deployment.Namespace, found.controllers.Name, err)
		}
	}
	return d, err
}

// network parses an annotation with a network; the result is not valid if the annotation is missing.
func network(deployment *appsv1.Deployment, annotation string) (netip.Prefix, error) {
	value := deployment.Annotations[annotation]
	if value == "" {
		return netip.Prefix{}, nil
	}
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		return prefix, fmt.Errorf("the annotation %s of Deployment %s/%s: %w", annotation, deployment.Namespace, deployment.Name, err)
	}
	return prefix, nil
}

func replicas(deployment *appsv1.Deployment) int32 { return ptr.Deref(deployment.Spec.Replicas, 1) }

// files returns the data of the Secret, or an error if keys are missing.
func (r *Reconciler) files(ctx context.Context, namespace string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: spec.SecretName}, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, spec.SecretName, err)
	}
	if missing := spec.MissingKeys(secret.Data); len(missing) > 0 {
		return nil, fmt.Errorf("the Secret %s/%s lacks %s", namespace, spec.SecretName, strings.Join(missing, ", "))
	}
	return secret.Data, nil
}
