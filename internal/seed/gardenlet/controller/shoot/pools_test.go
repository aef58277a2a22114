package shoot

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestKubeReserved checks that what is reserved is not allocatable, and that the pool's configuration replaces the Shoot's.
func TestKubeReserved(t *testing.T) {
	kubelet := func(cpu, memory string) *corev1beta1.KubeletConfig {
		return &corev1beta1.KubeletConfig{KubeReserved: &corev1beta1.KubeletConfigReserved{
			CPU: new(resource.MustParse(cpu)), Memory: new(resource.MustParse(memory)),
			EphemeralStorage: new(resource.MustParse("1Gi")), PID: new(resource.MustParse("20k"))}}
	}
	resources := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	reserved := func(cpu, memory string) corev1.ResourceList {
		list := resources(cpu, memory)
		list[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
		return list
	}
	machine := &corev1beta1.MachineType{CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi")}
	for name, test := range map[string]struct {
		shoot, worker *corev1beta1.KubeletConfig
		want          corev1.ResourceList
	}{
		"none":                             {nil, nil, nil},
		"another field":                    {&corev1beta1.KubeletConfig{}, nil, nil},
		"the Shoot's":                      {kubelet("80m", "1Gi"), nil, reserved("80m", "1Gi")},
		"the pool's":                       {kubelet("80m", "1Gi"), kubelet("1", "3Gi"), reserved("1", "3Gi")},
		"the pool's without a reservation": {kubelet("80m", "1Gi"), &corev1beta1.KubeletConfig{}, nil},
		"only one": {&corev1beta1.KubeletConfig{KubeReserved: &corev1beta1.KubeletConfigReserved{CPU: new(resource.MustParse("500m"))}}, nil,
			corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
	} {
		shoot := aShoot(func(s *corev1beta1.Shoot) {
			s.Spec.Kubernetes.Kubelet = test.shoot
			s.Spec.Provider.Workers[0].Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: test.worker}
		})
		b := &botanist{gardenData: gardenData{shoot: shoot}}
		config := b.kubeletConfig(pool{Worker: shoot.Spec.Provider.Workers[0], machineType: machine})
		if !equality.Semantic.DeepEqual(config.Reserved, test.want) || !equality.Semantic.DeepEqual(config.Capacity, resources("2", "4Gi")) {
			t.Errorf("%s: %v of %v reserved, want %v", name, config.Reserved, config.Capacity, test.want)
		}
	}
}
