package shootplane

import (
	"context"
	"fmt"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// Reasons and messages of the conditions. The reasons are those of Kubernetes, except reasonFailed.
const (
	reasonAvailable    = "MinimumReplicasAvailable"
	reasonUnavailable  = "MinimumReplicasUnavailable"
	reasonProgressing  = "ReplicaSetUpdated"
	reasonComplete     = "NewReplicaSetAvailable"
	reasonFailed       = "ControlPlaneFailed"
	messageOff         = "It is not to run."
	messageRuns        = "It runs."
	messageNeedsServer = "It waits for the API server."
)

// health is the content of a Deployment's status.
type health struct {
	// wanted, running and updated are numbers of replicas: 0 or 1.
	wanted, running, updated int32
	// failed makes the condition Progressing False.
	failed  bool
	message string
}

// report writes the status of a control plane to its objects, to the Service first: when the Deployment is ready, the
// Service has the address.
func (r *Reconciler) report(ctx context.Context, found objects, desired DesiredState, status Status) error {
	if err := r.reportService(ctx, found.service, status); err != nil {
		return err
	}
	if err := r.reportAddress(ctx, found.apiServer, status); err != nil {
		return err
	}
	if err := r.reportDeployment(ctx, found.apiServer, apiServerHealth(desired, status)); err != nil {
		return err
	}
	if found.controllers != nil && found.controllers.DeletionTimestamp == nil {
		if err := r.reportDeployment(ctx, found.controllers, controllersHealth(found.controllers, status)); err != nil {
			return err
		}
	}
	return nil
}

func apiServerHealth(desired DesiredState, status Status) health {
	h := health{message: messages[status.Phase]}
	if desired.APIServer {
		h.wanted = 1
	}
	switch status.Phase {
	case Ready:
		h.running = 1
		if status.Checksum == desired.Checksum && status.Version == desired.Version {
			h.updated = h.wanted
		}
	case Failed:
		h.failed = true
	case Stopping:
		h.wanted = 1
	}
	if status.Message != "" {
		h.message = status.Message
	}
	return h
}

var messages = map[Phase]string{
	Stopped:  messageOff,
	Waiting:  "It waits until others have been started.",
	Starting: "It is being started.",
	Ready:    messageRuns,
	Stopping: "It is being stopped.",
}

func controllersHealth(deployment *appsv1.Deployment, status Status) health {
	switch {
	case replicas(deployment) == 0 && !status.Controllers:
		return health{message: messageOff}
	case status.Controllers:
		return health{wanted: 1, running: 1, updated: 1, message: messageRuns}
	case status.ControllersMessage != "":
		return health{wanted: 1, failed: true, message: status.ControllersMessage}
	}
	return health{wanted: 1, message: messageNeedsServer}
}

func (r *Reconciler) reportDeployment(ctx context.Context, deployment *appsv1.Deployment, h health) error {
	before, status := deployment.DeepCopy(), &deployment.Status
	if all := replicas(deployment); all > 1 { // one control plane runs for all replicas
		h.wanted, h.running, h.updated = h.wanted*all, h.running*all, h.updated*all
	}
	status.ObservedGeneration = deployment.Generation
	status.Replicas, status.UpdatedReplicas = max(h.wanted, h.running), h.updated // a replica that is being stopped still counts
	status.ReadyReplicas, status.AvailableReplicas, status.UnavailableReplicas = h.running, h.running, max(h.wanted-h.running, 0)
	now := metav1.NewTime(r.Clock.Now())
	available, progressing := condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonAvailable, h.message),
		condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonComplete, h.message)
	if h.running < h.wanted {
		available.Status, available.Reason = corev1.ConditionFalse, reasonUnavailable
	}
	switch {
	case h.failed:
		progressing.Status, progressing.Reason = corev1.ConditionFalse, reasonFailed
	case h.updated < h.wanted:
		progressing.Reason = reasonProgressing
	}
	status.Conditions = withCondition(withCondition(status.Conditions, available, now), progressing, now)
	return client.IgnoreNotFound(operation.WriteStatus(ctx, r.Client, deployment, before))
}

func condition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

// withCondition replaces the condition of the same type, or adds it. The transition time changes only with the status,
// the update time with any field.
func withCondition(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition, now metav1.Time) []appsv1.DeploymentCondition {
	c.LastUpdateTime, c.LastTransitionTime = now, now
	for i, current := range conditions {
		if current.Type != c.Type {
			continue
		}
		if current.Status == c.Status {
			c.LastTransitionTime = current.LastTransitionTime
			if current.Reason == c.Reason && current.Message == c.Message {
				return conditions
			}
		}
		conditions[i] = c
		return conditions
	}
	return append(conditions, c)
}

// reportService writes the address of the API server to the Service, from its first start on.
func (r *Reconciler) reportService(ctx context.Context, service *corev1.Service, status Status) error {
	if service == nil || status.Port == 0 || service.DeletionTimestamp != nil || service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{
		IP: address, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP),
		Ports: []corev1.PortStatus{{Port: int32(status.Port), Protocol: corev1.ProtocolTCP}}, //nolint:gosec // a port
	}}
	return client.IgnoreNotFound(operation.WriteStatus(ctx, r.Client, service, before))
}

// reportAddress writes the address of the API server to the Deployment of Gardener's gardenlet, whose Service is no load balancer.
func (r *Reconciler) reportAddress(ctx context.Context, deployment *appsv1.Deployment, status Status) error {
	at := net.JoinHostPort(address, strconv.Itoa(status.Port))
	if status.Port == 0 || !spec.IsGardeners(deployment) || deployment.Annotations[spec.AnnotationAddress] == at {
		return nil
	}
	before := deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, spec.AnnotationAddress, at)
	if err := r.Client.Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the address of the API server to Deployment %s/%s: %w", deployment.Namespace, deployment.Name,
			client.IgnoreNotFound(err))
	}
	return nil
}
