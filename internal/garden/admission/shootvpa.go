package admission

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// shootVPAPlugin is the admission plugin ShootVPAEnabledByDefault, which enables the vertical pod autoscaler for new
// Shoots with workers that do not configure it.
var shootVPAPlugin = plugin.Factory{
	Name:       "ShootVPAEnabledByDefault",
	Operations: plugin.OnCreate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admitShootVPA),
}

func admitShootVPA(_ context.Context, _ plugin.Dependencies, _ admission.Attributes, shoot, _ *gardencore.Shoot) error {
	if kubernetes := &shoot.Spec.Kubernetes; kubernetes.VerticalPodAutoscaler == nil && !shootcommon.Workerless(shoot) {
		kubernetes.VerticalPodAutoscaler = &gardencore.VerticalPodAutoscaler{Enabled: true}
	}
	return nil
}
