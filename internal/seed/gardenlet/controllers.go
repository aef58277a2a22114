package gardenlet

import (
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/backupbucket"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/backupentry"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallationcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallationrequired"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seedcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seedlease"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/tokenrequestor"
)

// parts are what controllers are made of beside the clusters.
type parts struct {
	cfg      Config
	identity *bootstrap.Identity
	renewed  <-chan event.GenericEvent
	gardener *corev1beta1.Gardener
}

// addable is a controller that takes what it misses from the seed's manager and the garden.
type addable interface {
	AddToManager(mgr manager.Manager, garden cluster.Cluster) error
}

// controllers are all there are, by Gardener's names.
var controllers = []struct {
	name string
	new  func(parts) addable
}{
	{seed.ControllerName, func(p parts) addable {
		return &seed.Reconciler{
			SeedName: p.cfg.SeedName, Clock: p.cfg.Clock, Identity: p.gardener,
			CertificateExpiration: p.identity.Expiration, Renewed: p.renewed,
		}
	}},
	{seedlease.ControllerName, func(p parts) addable {
		return &seedlease.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock, Resync: p.cfg.LeaseResync}
	}},
	{seedcare.ControllerName, func(p parts) addable {
		return &seedcare.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock}
	}},
	{backupbucket.ControllerName, func(p parts) addable {
		return &backupbucket.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock}
	}},
	{backupentry.ControllerName, func(p parts) addable {
		return &backupentry.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock}
	}},
	{controllerinstallation.ControllerName, func(p parts) addable {
		return &controllerinstallation.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock, GardenConfig: p.cfg.Garden}
	}},
	{controllerinstallationcare.ControllerName, func(p parts) addable {
		return &controllerinstallationcare.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock}
	}},
	{controllerinstallationrequired.ControllerName, func(p parts) addable {
		return &controllerinstallationrequired.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock}
	}},
	{tokenrequestor.ControllerName, func(p parts) addable {
		return &tokenrequestor.Reconciler{SeedName: p.cfg.SeedName, Clock: p.cfg.Clock, GardenConfig: p.cfg.Garden}
	}},
}

// Names are the names of all controllers.
func Names() []string {
	names := make([]string, len(controllers))
	for i, c := range controllers {
		names[i] = c.name
	}
	return names
}
