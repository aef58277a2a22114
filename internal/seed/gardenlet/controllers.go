package gardenlet

import (
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/backupbucket"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/backupentry"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/bastion"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallationcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallationrequired"
	gardenletcontroller "github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/gardenlet"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/managedseed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seed"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seedcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/seedlease"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/shoot"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/shootcare"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/shootstate"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/tokenrequestor"
)

// parts are the parameters of the controllers, except for the clusters.
type parts struct {
	cfg      Config
	seedName string
	identity *bootstrap.Identity
	renewed  <-chan event.GenericEvent
	gardener *corev1beta1.Gardener
}

// addable is a controller that takes its remaining dependencies from the manager of the seed and from the garden.
type addable interface {
	AddToManager(mgr manager.Manager, garden cluster.Cluster) error
}

// controllers lists all controllers, with Gardener's names. The function new returns nil if the controller is disabled, or
// if the gardenlet lacks what it needs.
var controllers = []struct {
	name string
	new  func(parts) addable
}{
	{seed.ControllerName, func(p parts) addable {
		return &seed.Reconciler{
			SeedName: p.seedName, Clock: p.cfg.Clock, Identity: p.gardener,
			CertificateExpiration: p.identity.Expiration, Renewed: p.renewed, Resources: p.cfg.Configuration.Resources,
		}
	}},
	{seedlease.ControllerName, func(p parts) addable {
		return &seedlease.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock,
			Resync: time.Duration(*p.cfg.Configuration.Controllers.Seed.LeaseResyncSeconds) * time.Second}
	}},
	{seedcare.ControllerName, func(p parts) addable {
		return &seedcare.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock}
	}},
	{backupbucket.ControllerName, func(p parts) addable {
		return &backupbucket.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock}
	}},
	{backupentry.ControllerName, func(p parts) addable {
		c := p.cfg.Configuration.Controllers.BackupEntry
		return &backupentry.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock,
			DeletionGracePeriod:              time.Duration(*c.DeletionGracePeriodHours) * time.Hour,
			DeletionGracePeriodShootPurposes: c.DeletionGracePeriodShootPurposes}
	}},
	{bastion.ControllerName, func(p parts) addable {
		return &bastion.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock,
			ConcurrentSyncs: *p.cfg.Configuration.Controllers.Bastion.ConcurrentSyncs}
	}},
	{controllerinstallation.ControllerName, func(p parts) addable {
		return &controllerinstallation.Reconciler{
			SeedName: p.seedName, Clock: p.cfg.Clock, GardenConfig: p.identity.Garden(),
			Version: p.cfg.Version, FeatureGates: p.cfg.Configuration.FeatureGates, ChartLayouts: p.cfg.ChartLayouts,
		}
	}},
	{controllerinstallationcare.ControllerName, func(p parts) addable {
		return &controllerinstallationcare.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock}
	}},
	{controllerinstallationrequired.ControllerName, func(p parts) addable {
		return &controllerinstallationrequired.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock}
	}},
	{shoot.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.Shoot
		r := &shoot.Reconciler{
			SeedName: p.seedName, Clock: p.cfg.Clock, Identity: p.gardener, ConcurrentSyncs: *config.ConcurrentSyncs,
			Sync: config.SyncPeriod.Duration, RetryDuration: config.RetryDuration.Duration,
		}
		if period := config.ProgressReportPeriod; period != nil {
			r.ProgressReportPeriod = period.Duration
		}
		return r
	}},
	{shootcare.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.ShootCare
		thresholds := map[corev1beta1.ConditionType]time.Duration{}
		for _, t := range config.ConditionThresholds {
			thresholds[corev1beta1.ConditionType(t.Type)] = t.Duration.Duration
		}
		return &shootcare.Reconciler{
			SeedName: p.seedName, Clock: p.cfg.Clock, ConcurrentSyncs: *config.ConcurrentSyncs, SyncPeriod: config.SyncPeriod.Duration,
			Thresholds: thresholds, ProgressingThreshold: config.ManagedResourceProgressingThreshold,
		}
	}},
	{shootstate.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.ShootState
		if *config.ConcurrentSyncs == 0 { // as in Gardener, 0 disables it
			return nil
		}
		return &shootstate.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock, ConcurrentSyncs: *config.ConcurrentSyncs,
			SyncPeriod: config.SyncPeriod.Duration}
	}},
	{tokenrequestor.ControllerName, func(p parts) addable {
		return &tokenrequestor.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock, GardenConfig: p.identity.Garden()}
	}},
	{managedseed.ControllerName, func(p parts) addable {
		if p.cfg.Deployer == nil {
			return nil
		}
		config := p.cfg.Configuration.Controllers.ManagedSeed
		return &managedseed.Reconciler{
			SeedName: p.seedName, Clock: p.cfg.Clock, GardenREST: p.identity.Garden(), Config: p.cfg.Configuration, Deployer: p.cfg.Deployer,
			SyncPeriod: config.SyncPeriod.Duration, WaitSyncPeriod: config.WaitSyncPeriod.Duration,
			SyncJitterPeriod: time.Nanosecond, // there are few gardenlets here: they need not be spread over minutes
		}
	}},
	{gardenletcontroller.ControllerName, func(p parts) addable {
		if p.cfg.Deployer == nil {
			return nil
		}
		return &gardenletcontroller.Reconciler{SeedName: p.seedName, Clock: p.cfg.Clock, GardenREST: p.identity.Garden(),
			Deployer: p.cfg.Deployer}
	}},
}

// Names returns the names of all controllers.
func Names() []string {
	names := make([]string, len(controllers))
	for i, c := range controllers {
		names[i] = c.name
	}
	return names
}
