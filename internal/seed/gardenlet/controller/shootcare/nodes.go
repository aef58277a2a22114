package shootcare

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/node"
)

// tooManyExpired is the percentage of nodes with an expired Lease at which the check fails, as in Gardener.
const tooManyExpired = 20

// nodes compares the Nodes of the Shoot with its worker pools.
func (c *care) nodes(ctx context.Context) (*problem, error) {
	if c.cluster == nil {
		return nil, errors.New(c.unreachable)
	}
	if wrong := c.extensionProblem(corev1beta1.ShootEveryNodeReady); wrong != nil {
		return wrong, nil
	}
	nodes, leases := &corev1.NodeList{}, &coordinationv1.LeaseList{}
	if err := c.cluster.Client.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing the Nodes of the Shoot: %w", err)
	}
	pools := map[string][]corev1.Node{}
	for _, n := range nodes.Items {
		pool := n.Labels[constants.LabelWorkerPool]
		pools[pool] = append(pools[pool], n)
	}
	for i := range c.shoot.Spec.Provider.Workers {
		worker := &c.shoot.Spec.Provider.Workers[i]
		if wrong := c.ofPool(worker, pools[worker.Name]); wrong != nil {
			return wrong, nil
		}
	}
	if wrong, err := c.outdated(ctx, nodes.Items); wrong != nil || err != nil {
		return wrong, err
	}
	if err := c.cluster.Client.List(ctx, leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return nil, fmt.Errorf("listing the Leases of the Shoot's nodes: %w", err)
	}
	return c.expired(nodes.Items, leases.Items), nil
}

func (c *care) ofPool(worker *corev1beta1.Worker, nodes []corev1.Node) *problem {
	version := c.shoot.Spec.Kubernetes.Version
	if own := worker.Kubernetes; own != nil && own.Version != nil {
		version = *own.Version
	}
	for i := range nodes {
		if why := unhealthyNode(&nodes[i]); why != "" {
			return &problem{reason: "NodeUnhealthy",
				message: fmt.Sprintf("Node %q of worker pool %q is unhealthy: %s", nodes[i].Name, worker.Name, why)}
		}
		if is := nodes[i].Status.NodeInfo.KubeletVersion; otherPatch(is, version) {
			return &problem{reason: "KubeletVersionMismatch",
				message: fmt.Sprintf("The kubelet of Node %q is version %s, and v%s is wanted", nodes[i].Name, is, version)}
		}
	}
	minimum, maximum := c.desiredNodes(worker)
	switch {
	case len(nodes) < minimum:
		return &problem{reason: "MissingNodes",
			message: fmt.Sprintf("There are not enough nodes in worker pool %q (%d of at least %d).", worker.Name, len(nodes), minimum)}
	case maximum > 0 && len(nodes) > maximum && !c.busy():
		return &problem{reason: "NodesScalingDown",
			message: fmt.Sprintf("There are too many nodes in worker pool %q (%d of at most %d).", worker.Name, len(nodes), maximum)}
	}
	return nil
}

// desiredNodes returns the minimum and maximum number of nodes of a pool: those of the Worker resource, which the
// extension follows, or else those of the Shoot.
func (c *care) desiredNodes(worker *corev1beta1.Worker) (minimum, maximum int) {
	for _, e := range c.extensions {
		resource, ok := e.Object.(*extensionsv1alpha1.Worker)
		if !ok {
			continue
		}
		for _, pool := range resource.Spec.Pools {
			if pool.Name == worker.Name {
				return int(pool.Minimum), int(pool.Maximum)
			}
		}
	}
	return int(worker.Minimum), int(worker.Maximum)
}

// busy reports whether the last operation has not succeeded yet: until then a pool may have more nodes.
func (c *care) busy() bool {
	last := c.shoot.Status.LastOperation
	return last != nil && last.State != corev1beta1.LastOperationStateSucceeded
}

// unhealthyNode returns why a Node is unhealthy, empty if it is healthy.
func unhealthyNode(n *corev1.Node) string {
	ready := false
	for _, condition := range n.Status.Conditions {
		want := corev1.ConditionFalse
		switch condition.Type {
		case corev1.NodeReady:
			ready, want = true, corev1.ConditionTrue
		case corev1.NodeNetworkUnavailable, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
		default:
			continue
		}
		if condition.Status != want {
			return fmt.Sprintf("condition %q is %s (%s): %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	if !ready {
		return "it has no condition \"Ready\" yet"
	}
	return ""
}

// otherPatch reports whether a kubelet has the wanted minor version, but another patch version. Another minor version
// means that the pool is being rolled.
func otherPatch(is, wanted string) bool {
	i, err := semver.NewVersion(is)
	w, err2 := semver.NewVersion(wanted)
	return err == nil && err2 == nil && i.Major() == w.Major() && i.Minor() == w.Minor() && !i.Equal(w)
}

// outdated reports a Node that has not applied the operating system config in the Secret of its pool.
func (c *care) outdated(ctx context.Context, nodes []corev1.Node) (*problem, error) {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.cluster.Client.List(ctx, secrets, client.InNamespace(node.SecretNamespace),
		client.MatchingLabels{constants.GardenRole: constants.GardenRoleOperatingSystemConfig}); err != nil {
		return nil, fmt.Errorf("listing what the Shoot's nodes should have: %w", err)
	}
	wanted := map[string]string{}
	for _, secret := range secrets.Items {
		wanted[secret.Name] = secret.Annotations[node.AnnotationChecksumSecret]
	}
	for _, n := range nodes {
		name := n.Labels[constants.LabelWorkerPoolGardenerNodeAgentSecretName]
		if want := wanted[name]; want != "" && n.Annotations[node.AnnotationChecksum] != want {
			return &problem{reason: "OperatingSystemConfigOutdated",
				message: fmt.Sprintf("Node %q has not applied what Secret %s/%s says yet", n.Name, node.SecretNamespace, name)}, nil
		}
	}
	return nil, nil
}

// expired reports whether too many kubelets have not renewed their Lease in time.
func (c *care) expired(nodes []corev1.Node, leases []coordinationv1.Lease) *problem {
	if len(nodes) == 0 {
		return nil
	}
	exists := map[string]bool{}
	for _, n := range nodes {
		exists[n.Name] = true
	}
	count := 0
	for _, lease := range leases {
		renewed, seconds := lease.Spec.RenewTime, ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
		if exists[lease.Name] && renewed != nil && int32(landscapeclock.Lived(c.Clock, renewed.Time).Seconds()) > seconds {
			count++
		}
	}
	if 100*count/len(nodes) < tooManyExpired {
		return nil
	}
	return &problem{reason: "TooManyExpiredNodeLeases",
		message: fmt.Sprintf("The kubelets of %d of %d nodes have not renewed their Lease in time", count, len(nodes))}
}
