package admission

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// shootResourceReservationPlugin is the admission plugin ShootResourceReservation, which defaults the resources that
// the kubelet reserves on each node (kubeReserved). The amounts are those that Gardener uses unless it is configured
// to derive them from machine types.
var shootResourceReservationPlugin = plugin.Factory{
	Name:       "ShootResourceReservation",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admitShootResourceReservation),
}

func admitShootResourceReservation(_ context.Context, _ plugin.Dependencies, _ admission.Attributes, shoot, _ *gardencore.Shoot) error {
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
	setDefaultReservation(&kubelet.KubeReserved.CPU, "80m")
	setDefaultReservation(&kubelet.KubeReserved.Memory, "1Gi")
	setDefaultReservation(&kubelet.KubeReserved.PID, "20k")
	return nil
}

func setDefaultReservation(quantity **resource.Quantity, value string) {
	if *quantity == nil {
		parsed := resource.MustParse(value)
		*quantity = &parsed
	}
}
