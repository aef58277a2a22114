package admission

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

func TestAdmitShootVPA(t *testing.T) {
	workers := []gardencore.Worker{{Name: "pool"}}
	for name, test := range map[string]struct {
		workers     []gardencore.Worker
		had         *gardencore.VerticalPodAutoscaler
		subresource string
		want        *bool // nil if no autoscaler is configured
	}{
		"new":         {workers: workers, want: new(true)},
		"declined":    {workers: workers, had: &gardencore.VerticalPodAutoscaler{}, want: new(false)},
		"workerless":  {},
		"subresource": {workers: workers, subresource: "status"},
	} {
		t.Run(name, func(t *testing.T) {
			p := shootVPAPlugin.New(plugin.Dependencies{})
			shoot := &gardencore.Shoot{}
			shoot.Spec.Provider.Workers, shoot.Spec.Kubernetes.VerticalPodAutoscaler = test.workers, test.had
			a := admission.NewAttributesRecord(shoot, nil, gardencore.Kind("Shoot").WithVersion("v1beta1"), "", "",
				gardencore.Resource("shoots").WithVersion("v1beta1"), test.subresource, admission.Create, nil, false, nil)
			if err := p.(admission.MutationInterface).Admit(context.Background(), a, nil); err != nil {
				t.Fatal(err)
			}
			got := shoot.Spec.Kubernetes.VerticalPodAutoscaler
			if (got == nil) != (test.want == nil) || got != nil && got.Enabled != *test.want {
				t.Errorf("got %+v, want enabled=%v", got, test.want)
			}
			if p.Handles(admission.Update) {
				t.Error("a Shoot that exists keeps what it has")
			}
		})
	}
}
