// Package shootvpa contains the admission plugin ShootVPAEnabledByDefault, which enables the vertical pod autoscaler
// for new Shoots with workers that do not configure it.
package shootvpa

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory creates the plugin.
var Factory = plugin.Factory{
	Name:       "ShootVPAEnabledByDefault",
	Operations: plugin.OnCreate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admit),
}

func admit(_ context.Context, _ plugin.Dependencies, _ admission.Attributes, shoot, _ *gardencore.Shoot) error {
	if kubernetes := &shoot.Spec.Kubernetes; kubernetes.VerticalPodAutoscaler == nil && !shootcommon.Workerless(shoot) {
		kubernetes.VerticalPodAutoscaler = &gardencore.VerticalPodAutoscaler{Enabled: true}
	}
	return nil
}
