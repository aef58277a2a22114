// Package shootvpa contains the admission plugin ShootVPAEnabledByDefault, which enables the vertical pod autoscaler
// for new Shoots with workers that do not configure it.
//
// It may import the plugin package and shootcommon.
package shootvpa

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "ShootVPAEnabledByDefault", New: func(plugin.Dependencies) (admission.Interface, error) {
		return vpa{admission.NewHandler(admission.Create)}, nil
	}}
}

type vpa struct{ *admission.Handler }

var _ admission.MutationInterface = vpa{}

// Admit implements admission.MutationInterface.
func (vpa) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !shootcommon.IsShoot(a) {
		return nil
	}
	shoot, _, err := shootcommon.Objects(a)
	if err != nil {
		return err
	}
	if kubernetes := &shoot.Spec.Kubernetes; kubernetes.VerticalPodAutoscaler == nil && !shootcommon.Workerless(shoot) {
		kubernetes.VerticalPodAutoscaler = &gardencore.VerticalPodAutoscaler{Enabled: true}
	}
	return nil
}
