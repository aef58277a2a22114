// Package shootresourcereservation contains the admission plugin ShootResourceReservation, which defaults the resources
// that the kubelet reserves on each node (kubeReserved). The amounts are those that Gardener uses unless it is
// configured to derive them from machine types.
//
// It may import the plugin package and shootcommon.
package shootresourcereservation

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "ShootResourceReservation", New: func(plugin.Dependencies) (admission.Interface, error) {
		return reservation{admission.NewHandler(admission.Create, admission.Update)}, nil
	}}
}

type reservation struct{ *admission.Handler }

var _ admission.MutationInterface = reservation{}

// Admit implements admission.MutationInterface.
func (reservation) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !shootcommon.IsShoot(a) {
		return nil
	}
	shoot, _, err := shootcommon.Objects(a)
	if err != nil {
		return err
	}
	if shoot.DeletionTimestamp != nil || shootcommon.Workerless(shoot) {
		return nil
	}
	if shoot.Spec.Kubernetes.Kubelet == nil {
		shoot.Spec.Kubernetes.Kubelet = &gardencore.KubeletConfig{}
	}
	kubelet := shoot.Spec.Kubernetes.Kubelet
	if kubelet.KubeReserved == nil {
		kubelet.KubeReserved = &gardencore.KubeletConfigReserved{}
	}
	setDefault(&kubelet.KubeReserved.CPU, "80m")
	setDefault(&kubelet.KubeReserved.Memory, "1Gi")
	setDefault(&kubelet.KubeReserved.PID, "20k")
	return nil
}

func setDefault(quantity **resource.Quantity, value string) {
	if *quantity == nil {
		parsed := resource.MustParse(value)
		*quantity = &parsed
	}
}
