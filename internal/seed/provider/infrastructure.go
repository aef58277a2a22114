package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/bastionsim"
	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

const (
	// ProviderAPIVersion is the API version of what the simulator writes into providerStatus.
	ProviderAPIVersion = "local.provider.extensions.gardener.cloud/v1alpha1"
	// DefaultNodesCIDR is the network of a Shoot that does not specify one.
	DefaultNodesCIDR = "10.0.0.0/16"
)

// infrastructure manages the network of a shoot in the cloud, which is named like the shoot's namespace.
type infrastructure struct{ cloud Cloud }

// networkState is the status.state of an Infrastructure.
type networkState struct {
	CIDR    string `json:"cidr"`
	Network string `json:"network"`
}

func (i infrastructure) reconcile(ctx context.Context, seed client.Client, infra *extensionsv1alpha1.Infrastructure) error {
	shoot, err := cluster.Shoot(ctx, seed, infra.Namespace)
	if err != nil {
		return err
	}
	cidr, err := nodesCIDR(shoot, infra)
	if err != nil {
		return operation.ConfigurationProblem(err)
	}
	if err := i.cloud.EnsureNetwork(ctx, infra.Namespace, cidr); err != nil {
		return fmt.Errorf("creating the network %s in the cloud: %w", infra.Namespace, err)
	}
	infra.Status.NodesCIDR = ptr.To(cidr.String())
	infra.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{cidr.String()}}
	networking := ptr.Deref(shoot.Spec.Networking, corev1beta1.Networking{})
	if networking.Pods != nil {
		infra.Status.Networking.Pods = []string{*networking.Pods}
	}
	if networking.Services != nil {
		infra.Status.Networking.Services = []string{*networking.Services}
	}
	infra.Status.EgressCIDRs = []string{cidr.String()}
	infra.Status.ProviderStatus = providerStatus("InfrastructureStatus")
	state, _ := json.Marshal(networkState{cidr.String(), infra.Namespace}) // encoding strings cannot fail
	infra.Status.State = &runtime.RawExtension{Raw: state}
	return nil
}

// nodesCIDR returns the network in the Shoot's spec, else the one in the state of the Infrastructure, else the default.
func nodesCIDR(shoot *corev1beta1.Shoot, infra *extensionsv1alpha1.Infrastructure) (netip.Prefix, error) {
	text := DefaultNodesCIDR
	if infra.Status.State != nil {
		state := networkState{}
		if err := json.Unmarshal(infra.Status.State.Raw, &state); err != nil {
			return netip.Prefix{}, fmt.Errorf("the state of Infrastructure %s/%s cannot be read: %w", infra.Namespace, infra.Name, err)
		}
		if state.CIDR != "" {
			text = state.CIDR
		}
	}
	if networking := shoot.Spec.Networking; networking != nil && networking.Nodes != nil {
		text = *networking.Nodes
	}
	cidr, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("spec.networking.nodes of Shoot %s/%s is %q: %w", shoot.Namespace, shoot.Name, text, err)
	}
	return cidr.Masked(), nil
}

func (i infrastructure) delete(ctx context.Context, seed client.Client, infra *extensionsv1alpha1.Infrastructure) error {
	if err := bastionsim.DeleteOrphans(ctx, seed, i.cloud, infra.Namespace); err != nil {
		return err
	}
	err := i.cloud.DeleteNetwork(ctx, infra.Namespace)
	if errors.Is(err, cloud.ErrInUse) {
		return &operation.Error{
			Err:   fmt.Errorf("deleting the network %s from the cloud: %w", infra.Namespace, err),
			Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraDependencies},
		}
	} else if err != nil {
		return fmt.Errorf("deleting the network %s from the cloud: %w", infra.Namespace, err)
	}
	return nil
}

// providerStatus returns a providerStatus that has nothing but its type.
func providerStatus(kind string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q}`, ProviderAPIVersion, kind))}
}
