package shootcare

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/probe"
	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// care is a single health check of a Shoot.
type care struct {
	*Reconciler
	shoot *corev1beta1.Shoot
	// Objects in the Shoot's namespace in the seed.
	deployments []appsv1.Deployment
	managed     []resourcesv1alpha1.ManagedResource
	extensions  []extension
	// cluster gives access to the Shoot's API server if it is ready. Otherwise it is nil, and unreachable says why.
	cluster     *shootaccess.Cluster
	unreachable string
}

// problem describes why a condition is not True.
type problem struct {
	reason, message string
	codes           []corev1beta1.ErrorCode
}

func (r *Reconciler) checkShoot(ctx context.Context, shoot *corev1beta1.Shoot) findings {
	c := &care{Reconciler: r, shoot: shoot}
	if err := c.readSeed(ctx); err != nil {
		return c.unknown(err)
	}
	all := []conditions.Condition{c.apiServerAvailable(ctx)}
	all = append(all,
		c.condition(corev1beta1.ShootControlPlaneHealthy, "ControlPlaneRunning", "All components of the control plane are healthy.",
			func() (*problem, error) { return c.controlPlane(), nil }),
		c.condition(corev1beta1.ShootObservabilityComponentsHealthy, "ObservabilityComponentsRunning",
			"All observability components are healthy.", func() (*problem, error) { return c.observability(), nil }),
	)
	if !isWorkerless(shoot) {
		all = append(all, c.condition(corev1beta1.ShootEveryNodeReady, "EveryNodeReady", "All nodes are ready.",
			func() (*problem, error) { return c.nodes(ctx) }))
	}
	all = append(all, c.condition(corev1beta1.ShootSystemComponentsHealthy, "SystemComponentsRunning",
		"All system components are healthy.", func() (*problem, error) { return c.systemComponents() }))
	return findings{all, c.constraints(ctx)}
}

// condition returns the condition for the result of a check: True, failed, or Unknown if the check returned an error.
func (c *care) condition(kind corev1beta1.ConditionType, reason, message string, check func() (*problem, error)) conditions.Condition {
	wrong, err := check()
	switch {
	case err != nil:
		return conditions.Unchecked(kind, err)
	case wrong != nil:
		return c.failed(kind, *wrong)
	}
	return conditions.Condition{Type: kind, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message}
}

func (c *care) failed(kind corev1beta1.ConditionType, wrong problem) conditions.Condition {
	now := conditions.Failed(conditions.Find(c.shoot.Status.Conditions, kind), c.shoot.Status.LastOperation,
		c.Thresholds[kind], wrong.reason, wrong.message, c.Clock)
	now.Codes = wrong.codes
	return now
}

// unknown returns the conditions and constraints of a Shoot if the seed cannot be read.
func (c *care) unknown(err error) (found findings) {
	for _, kind := range ourConditions {
		if kind != corev1beta1.ShootEveryNodeReady || !isWorkerless(c.shoot) {
			found.conditions = append(found.conditions, conditions.Unchecked(kind, err))
		}
	}
	for _, kind := range ourConstraints[:2] {
		found.constraints = append(found.constraints, conditions.Unchecked(kind, err))
	}
	return found
}

// readSeed reads the Shoot's objects from the seed's cache.
func (c *care) readSeed(ctx context.Context) error {
	namespace := c.shoot.Status.TechnicalID
	deployments, managed := &appsv1.DeploymentList{}, &resourcesv1alpha1.ManagedResourceList{}
	if err := c.SeedClient.List(ctx, deployments, client.InNamespace(namespace),
		client.MatchingLabels{spec.LabelGardenRole: spec.GardenRoleControlPlane}); err != nil {
		return fmt.Errorf("listing the Deployments of the control plane: %w", err)
	}
	if err := c.SeedClient.List(ctx, managed, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the ManagedResources of the control plane: %w", err)
	}
	c.deployments, c.managed = deployments.Items, managed.Items
	var err error
	c.extensions, err = readExtensions(ctx, c.SeedClient, namespace)
	return err
}

func (c *care) deployment(name string) *appsv1.Deployment {
	for i := range c.deployments {
		if c.deployments[i].Name == name {
			return &c.deployments[i]
		}
	}
	return nil
}

// apiServerAvailable checks whether the Shoot's API server is ready. If it is, the other checks use it, too.
func (c *care) apiServerAvailable(ctx context.Context) conditions.Condition {
	const kind = corev1beta1.ShootAPIServerAvailable
	key := client.ObjectKeyFromObject(c.shoot)
	c.unreachable = notRunning(c.shoot.Status.LastOperation)
	if server := c.deployment(spec.APIServer); server == nil || ptr.Deref(server.Spec.Replicas, 1) == 0 {
		c.Shoots.Drop(key)
		return c.failed(kind, problem{reason: "APIServerDown", message: "There is no API server to be asked."})
	}
	cluster, err := c.Shoots.Get(ctx, key, c.shoot.Status.TechnicalID)
	if err != nil {
		if !errors.Is(err, shootaccess.ErrNoEndpoint) {
			c.unreachable = "The Shoot's API server cannot be asked: " + err.Error()
		}
		return c.failed(kind, problem{reason: "APIServerDown", message: "The API server cannot be asked: " + err.Error()})
	}
	server, err := probe.New(cluster.Config, cluster.HTTP)
	if err != nil {
		return conditions.Unchecked(kind, err)
	}
	begin := c.Clock.Now()
	if err := server.Ready(ctx); err != nil {
		c.Shoots.Drop(key) // the next check uses a new connection and a new certificate
		c.unreachable = "The Shoot's API server is not ready: " + err.Error()
		return c.failed(kind, problem{reason: "ReadyzRequestFailed",
			message: "The request to the API server's /readyz endpoint has failed: " + err.Error()})
	}
	c.cluster = cluster
	return conditions.Condition{Type: kind, Status: corev1beta1.ConditionTrue, Reason: "ReadyzRequestSucceeded",
		Message: fmt.Sprintf("The API server's /readyz endpoint has responded with success in less than %s.", roundUp(c.Clock.Since(begin)))}
}

// steps are the latencies in messages. They are coarse, so that small changes of the latency do not cause writes.
var steps = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}

func roundUp(took time.Duration) time.Duration {
	for _, step := range steps {
		if took < step {
			return step
		}
	}
	return time.Minute
}

// notRunning returns a message why there is no API server.
func notRunning(last *corev1beta1.LastOperation) string {
	switch {
	case last == nil || last.Type == corev1beta1.LastOperationTypeCreate:
		return "The Shoot's control plane has not been made completely yet."
	case last.Type == corev1beta1.LastOperationTypeDelete:
		return "The Shoot's control plane is being deleted, or has been."
	}
	return "The Shoot's control plane does not run at the moment."
}

// sleeping returns the conditions and constraints of a hibernated Shoot, of which only the schedules are checked.
func sleeping(shoot *corev1beta1.Shoot, now time.Time) (found findings) {
	const message = "Shoot cluster has been hibernated."
	for _, kind := range ourConditions {
		if kind != corev1beta1.ShootEveryNodeReady || !isWorkerless(shoot) {
			found.conditions = append(found.conditions,
				conditions.Condition{Type: kind, Status: corev1beta1.ConditionTrue, Reason: "ConditionNotChecked", Message: message})
		}
	}
	for _, kind := range ourConstraints[:4] {
		found.constraints = append(found.constraints,
			conditions.Condition{Type: kind, Status: corev1beta1.ConditionTrue, Reason: "ConstraintNotChecked", Message: message})
	}
	if wrong := rotationProblem(shoot, now); wrong != nil {
		found.constraints = append(found.constraints,
			constraint(corev1beta1.ShootAutomaticCredentialsRotationPossible, wrong))
	}
	return found
}
