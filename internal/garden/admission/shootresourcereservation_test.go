package admission

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

func quantity(s string) *resource.Quantity { return new(resource.MustParse(s)) }

func TestAdmitShootResourceReservation(t *testing.T) {
	all := &gardencore.KubeletConfigReserved{CPU: quantity("80m"), Memory: quantity("1Gi"), PID: quantity("20k")}
	workers := []gardencore.Worker{{Name: "pool"}}
	for name, test := range map[string]struct {
		workers     []gardencore.Worker
		kubelet     *gardencore.KubeletConfig
		subresource string
		deleting    bool
		want        *gardencore.KubeletConfigReserved
	}{
		"nothing said": {workers: workers, want: all},
		"empty":        {workers: workers, kubelet: &gardencore.KubeletConfig{}, want: all},
		"partly said": {workers: workers, kubelet: &gardencore.KubeletConfig{
			KubeReserved: &gardencore.KubeletConfigReserved{CPU: quantity("1"), EphemeralStorage: quantity("2Gi")}},
			want: &gardencore.KubeletConfigReserved{CPU: quantity("1"), Memory: quantity("1Gi"), PID: quantity("20k"),
				EphemeralStorage: quantity("2Gi")}},
		"workerless":    {},
		"being deleted": {workers: workers, deleting: true},
		"subresource":   {workers: workers, subresource: "status"},
	} {
		t.Run(name, func(t *testing.T) {
			p := shootResourceReservationPlugin.New(plugin.Dependencies{})
			shoot := &gardencore.Shoot{}
			shoot.Spec.Provider.Workers, shoot.Spec.Kubernetes.Kubelet = test.workers, test.kubelet
			if test.deleting {
				shoot.DeletionTimestamp = &metav1.Time{}
			}
			a := admission.NewAttributesRecord(shoot, shoot.DeepCopy(), gardencore.Kind("Shoot").WithVersion("v1beta1"), "", "",
				gardencore.Resource("shoots").WithVersion("v1beta1"), test.subresource, admission.Update, nil, false, nil)
			if err := p.(admission.MutationInterface).Admit(context.Background(), a, nil); err != nil {
				t.Fatal(err)
			}
			var got *gardencore.KubeletConfigReserved
			if shoot.Spec.Kubernetes.Kubelet != nil {
				got = shoot.Spec.Kubernetes.Kubelet.KubeReserved
			}
			if !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("reserved %+v, want %+v", got, test.want)
			}
		})
	}
}
