package shootplane

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// report writes the state of a control plane to its objects.
func (r *Reconciler) report(ctx context.Context, found objects, order Order, state State) error {
	if err := r.reportDeployment(ctx, found.apiServer, apiServerHealth(order, state)); err != nil {
		return err
	}
	if found.controllers != nil && found.controllers.DeletionTimestamp == nil {
		if err := r.reportDeployment(ctx, found.controllers, controllersHealth(found.controllers, state)); err != nil {
			return err
		}
	}
	return r.reportService(ctx, found.service, state)
}

func apiServerHealth(order Order, state State) health {
	h := health{message: messages[state.Phase]}
	if order.APIServer {
		h.wanted = 1
	}
	switch state.Phase {
	case Ready:
		h.running = 1
		if state.Checksum == order.Checksum && state.Version == order.Version {
			h.updated = h.wanted
		}
	case Failed:
		h.failed = true
	case Stopping:
		h.wanted = 1
	}
	if state.Message != "" {
		h.message = state.Message
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

func controllersHealth(deployment *appsv1.Deployment, state State) health {
	switch {
	case replicas(deployment) == 0 && !state.Controllers:
		return health{message: messageOff}
	case state.Controllers:
		return health{wanted: 1, running: 1, updated: 1, message: messageRuns}
	case state.ControllersMessage != "":
		return health{wanted: 1, failed: true, message: state.ControllersMessage}
	}
	return health{wanted: 1, message: messageNeedsServer}
}

func (r *Reconciler) reportDeployment(ctx context.Context, deployment *appsv1.Deployment, h health) error {
	before := deployment.DeepCopy()
	status := &deployment.Status
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
	if equality.Semantic.DeepEqual(before.Status, deployment.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, deployment, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
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

// reportService writes the address of the API server to the Service, from its first start on. The port never changes.
func (r *Reconciler) reportService(ctx context.Context, service *corev1.Service, state State) error {
	if service == nil || state.Port == 0 || service.DeletionTimestamp != nil || service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{
		IP: address, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP),
		Ports: []corev1.PortStatus{{Port: int32(state.Port), Protocol: corev1.ProtocolTCP}}, //nolint:gosec // a port
	}}
	if equality.Semantic.DeepEqual(before.Status, service.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, service, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return nil
}
