package agent

import (
	"context"
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/transport"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
)

// leaseDuration is how long the Lease is valid: the agent renews it in each checkInterval.
const leaseDuration = 4 * checkInterval

// renewLease renews the Lease of the agent, which belongs to the Node. A node may not write it itself: it acts as its agent.
func (a *Agent) renewLease(ctx context.Context, client *apiclient.Client, config node.AgentConfig) error {
	if !config.Lease {
		return nil
	}
	name := node.LeasePrefix + a.host.Hostname
	now := metav1.NewMicroTime(a.host.Clock.Now())
	data, err := json.Marshal(&coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: node.SecretNamespace, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Node", Name: a.host.Hostname, UID: a.node, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To(int32(leaseDuration.Seconds())), RenewTime: &now},
	})
	if err != nil {
		return err
	}
	err = client.Coordination.RESTClient().Patch(types.ApplyYAMLPatchType).Namespace(node.SecretNamespace).Resource("leases").Name(name).
		Param("fieldManager", "gardener-node-agent").Param("force", "true").
		SetHeader(transport.ImpersonateUserHeader, node.AgentUserPrefix+a.host.Hostname).Body(data).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("renewing Lease %s/%s: %w", node.SecretNamespace, name, err)
	}
	return nil
}
