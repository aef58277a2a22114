package kubelet

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/apiclient"
)

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + corev1.NamespaceNodeLease + "/leases"

// ensureLease creates the Lease of the node, or renews the existing one.
func (k *Kubelet) ensureLease(ctx context.Context, client *apiclient.Client) error {
	lease := &coordinationv1.Lease{}
	err := client.Get(ctx, leasesPath+"/"+k.host.Hostname, lease)
	if apierrors.IsNotFound(err) {
		return k.createLease(ctx, client)
	} else if err != nil {
		return fmt.Errorf("reading the Lease of the node: %w", err)
	}
	k.lease = lease
	return k.renewLease(ctx, client)
}

// renewLease renews the Lease of the node. After an error it forgets the known Lease, which may be outdated.
func (k *Kubelet) renewLease(ctx context.Context, client *apiclient.Client) error {
	lease := k.lease
	k.lease = nil
	k.fill(lease)
	written := &coordinationv1.Lease{}
	if err := client.Update(ctx, leasesPath+"/"+k.host.Hostname, lease, written); err != nil {
		return fmt.Errorf("renewing the Lease of the node: %w", err)
	}
	written.ManagedFields = nil
	k.lease = written
	return nil
}

func (k *Kubelet) createLease(ctx context.Context, client *apiclient.Client) error {
	lease := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: k.host.Hostname, Namespace: corev1.NamespaceNodeLease},
	}
	k.fill(lease)
	if err := client.Create(ctx, leasesPath, lease, lease); err != nil {
		return fmt.Errorf("making the Lease of the node: %w", err)
	}
	lease.ManagedFields = nil
	k.lease = lease
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
