package kubelet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
)

const (
	defaultArchitecture = "amd64"
	defaultMaxPods      = 110
	defaultOSImage      = "Garden Linux (simulated)"
	containerRuntime    = "containerd://2.1.4"
	kernelVersion       = "6.12.0-cloud-amd64"
)

// syncNode registers the Node if it does not exist, sets its labels, and updates its status.
func (k *Kubelet) syncNode(ctx context.Context, client *apiclient.Client, config node.KubeletConfig) error {
	nodes := client.Core.Nodes()
	is, err := nodes.Get(ctx, k.host.Hostname, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if is, err = nodes.Create(ctx, k.newNode(config), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("registering the Node: %w", err)
		}
		k.host.Logf("registered the Node %s", k.host.Hostname)
	} else if err != nil {
		return fmt.Errorf("reading the Node: %w", err)
	}
	if is.UID != k.uid { // a new Node needs a new Lease
		k.uid, k.lease = is.UID, nil
	}
	if wanted := k.labels(config); !labels.SelectorFromSet(wanted).Matches(labels.Set(is.Labels)) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": wanted}})
		if err == nil {
			_, err = nodes.Patch(ctx, is.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			return fmt.Errorf("labelling the Node: %w", err)
		}
	}
	patch, err := json.Marshal(map[string]any{"status": k.status(config, is.Status.Conditions)})
	if err == nil {
		_, err = nodes.PatchStatus(ctx, is.Name, patch)
	}
	if err != nil {
		return fmt.Errorf("telling the status of the Node: %w", err)
	}
	return nil
}

func (k *Kubelet) newNode(config node.KubeletConfig) *corev1.Node {
	annotations := map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	maps.Copy(annotations, config.Annotations)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: k.host.Hostname, Labels: k.labels(config), Annotations: annotations},
		Spec:       corev1.NodeSpec{ProviderID: k.host.Metadata.ProviderID, Taints: config.Taints},
		Status:     k.status(config, nil),
	}
}

// labels returns the labels that every kubelet sets on its Node, and those of the worker pool.
func (k *Kubelet) labels(config node.KubeletConfig) map[string]string {
	labels := map[string]string{}
	zone, region := cmp.Or(k.host.Metadata.Zone, config.Zone), cmp.Or(k.host.Metadata.Region, config.Region)
	instanceType, architecture := cmp.Or(k.host.Metadata.InstanceType, config.InstanceType), cmp.Or(config.Architecture, defaultArchitecture)
	for key, value := range map[string]string{
		corev1.LabelHostname: k.host.Hostname, corev1.LabelOSStable: "linux", "beta.kubernetes.io/os": "linux",
		corev1.LabelArchStable: architecture, "beta.kubernetes.io/arch": architecture,
		corev1.LabelInstanceTypeStable: instanceType, corev1.LabelInstanceType: instanceType,
		corev1.LabelTopologyZone: zone, corev1.LabelFailureDomainBetaZone: zone,
		corev1.LabelTopologyRegion: region, corev1.LabelFailureDomainBetaRegion: region,
	} {
		if value != "" {
			labels[key] = value
		}
	}
	for key, value := range config.Labels {
		if mayHave(key) {
			labels[key] = value
		}
	}
	return labels
}

// mayHave reports whether a node may set a label on itself. Of Kubernetes' own labels, it may set only some; the
// machine controller sets the others.
func mayHave(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	own := func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }
	return !found || !own("kubernetes.io") && !own("k8s.io") || kubeletapis.IsKubeletLabel(key)
}

// status returns the status of the Node. Conditions whose status stays keep their transition time.
func (k *Kubelet) status(config node.KubeletConfig, before []corev1.NodeCondition) corev1.NodeStatus {
	capacity := corev1.ResourceList{}
	maps.Copy(capacity, k.host.Metadata.Capacity)
	maps.Copy(capacity, config.Capacity)
	capacity[corev1.ResourcePods] = *resource.NewQuantity(cmp.Or(config.MaxPods, defaultMaxPods), resource.DecimalSI)
	allocatable := capacity.DeepCopy()
	for name, reserved := range config.Reserved {
		if left, known := allocatable[name]; known {
			left.Sub(reserved)
			if left.Sign() < 0 {
				left.Set(0)
			}
			allocatable[name] = left
		}
	}
	addresses := make([]corev1.NodeAddress, 0, len(k.host.Addresses)+1)
	for _, address := range k.host.Addresses {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address.String()})
	}
	sum := sha256.Sum256([]byte(cmp.Or(k.host.Metadata.ProviderID, k.host.Hostname)))
	id := hex.EncodeToString(sum[:16]) // in the format of machine IDs
	return corev1.NodeStatus{
		Capacity: capacity, Allocatable: allocatable,
		Addresses:       append(addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: k.host.Hostname}),
		Conditions:      k.conditions(before),
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: Port}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: id, SystemUUID: id, BootID: k.bootID, KernelVersion: kernelVersion, OperatingSystem: "linux",
			OSImage: cmp.Or(config.OSImage, defaultOSImage), ContainerRuntimeVersion: containerRuntime,
			KubeletVersion: "v" + config.KubernetesVersion, Architecture: cmp.Or(config.Architecture, defaultArchitecture),
		},
	}
}

// healthyConditions are the conditions of a healthy node.
var healthyConditions = []corev1.NodeCondition{
	{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "NetworkIsUp", Message: "the node network is there"},
	{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory",
		Message: "kubelet has sufficient memory available"},
	{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure",
		Message: "kubelet has no disk pressure"},
	{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID",
		Message: "kubelet has sufficient PID available"},
	{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
}

func (k *Kubelet) conditions(before []corev1.NodeCondition) []corev1.NodeCondition {
	now := metav1.NewTime(k.host.Clock.Now())
	all := make([]corev1.NodeCondition, 0, len(healthyConditions))
	for _, c := range healthyConditions {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		for _, b := range before {
			if b.Type == c.Type && b.Status == c.Status {
				c.LastTransitionTime = b.LastTransitionTime
			}
		}
		all = append(all, c)
	}
	return all
}

// ensureLease creates the Lease of the node, or renews the existing one.
func (k *Kubelet) ensureLease(ctx context.Context, client *apiclient.Client) error {
	leases := client.Coordination.Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, k.host.Hostname, metav1.GetOptions{})
	if err == nil {
		k.lease = lease
		return k.renewLease(ctx, client)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the Lease of the node: %w", err)
	}
	lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.host.Hostname}}
	k.fill(lease)
	if lease, err = leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the Lease of the node: %w", err)
	}
	lease.ManagedFields = nil
	k.lease = lease
	return nil
}

// renewLease renews the Lease of the node. After an error it forgets the known Lease, which may be outdated.
func (k *Kubelet) renewLease(ctx context.Context, client *apiclient.Client) error {
	lease := k.lease
	k.lease = nil
	k.fill(lease)
	written, err := client.Coordination.Leases(corev1.NamespaceNodeLease).Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("renewing the Lease of the node: %w", err)
	}
	written.ManagedFields = nil
	k.lease = written
	return nil
}

// fill sets the holder and the renew time of the Lease, and the owner reference that deletes it with its Node.
func (k *Kubelet) fill(lease *coordinationv1.Lease) {
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: k.host.Hostname, UID: k.uid,
	}}
	lease.Spec.HolderIdentity = ptr.To(k.host.Hostname)
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](leaseSeconds)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(k.host.Clock.Now()))
}
