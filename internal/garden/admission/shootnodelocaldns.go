package admission

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// shootNodeLocalDNSPlugin is the admission plugin ShootNodeLocalDNSEnabledByDefault, which enables the DNS cache on nodes for new
// Shoots with workers that do not configure it.
var shootNodeLocalDNSPlugin = plugin.Factory{
	Name:       "ShootNodeLocalDNSEnabledByDefault",
	Off:        true,
	Operations: plugin.OnCreate,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), admitShootNodeLocalDNS),
}

func admitShootNodeLocalDNS(_ context.Context, _ plugin.Dependencies, _ admission.Attributes, shoot, _ *gardencore.Shoot) error {
	if shootcommon.Workerless(shoot) {
		return nil
	}
	if shoot.Spec.SystemComponents == nil {
		shoot.Spec.SystemComponents = &gardencore.SystemComponents{}
	}
	if components := shoot.Spec.SystemComponents; components.NodeLocalDNS == nil {
		components.NodeLocalDNS = &gardencore.NodeLocalDNS{Enabled: true}
	}
	return nil
}
