package gardenlet

import (
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/probe"
)

// parts are the parameters of the controllers.
type parts struct {
	controllerutils.Base
	cfg      Config
	identity *bootstrap.Identity
	server   *probe.Server // of the seed
	renewed  <-chan event.GenericEvent
	gardener *corev1beta1.Gardener
}

// progressReportPeriod is the time between two reports of the progress of a Shoot's flow, if the configuration has none.
const progressReportPeriod = 5 * time.Second

// addable is a controller of the gardenlet.
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
			Base: p.Base, Identity: p.gardener, Version: p.server.Version,
			CertificateExpiration: p.identity.Expiration, Renewed: p.renewed, Resources: p.cfg.Configuration.Resources,
		}
	}},
	{seedlease.ControllerName, func(p parts) addable {
		return &seedlease.Reconciler{Base: p.Base, Check: p.server.Healthy,
			Resync: time.Duration(*p.cfg.Configuration.Controllers.Seed.LeaseResyncSeconds) * time.Second}
	}},
	{seedcare.ControllerName, func(p parts) addable {
		return &seedcare.Reconciler{Base: p.Base, Server: p.server}
	}},
	{backupbucket.ControllerName, func(p parts) addable {
		return &backupbucket.Reconciler{Base: p.Base}
	}},
	{backupentry.ControllerName, func(p parts) addable {
		c := p.cfg.Configuration.Controllers.BackupEntry
		return &backupentry.Reconciler{Base: p.Base,
			DeletionGracePeriod:              time.Duration(*c.DeletionGracePeriodHours) * time.Hour,
			DeletionGracePeriodShootPurposes: c.DeletionGracePeriodShootPurposes}
	}},
	{bastion.ControllerName, func(p parts) addable {
		return &bastion.Reconciler{Base: p.Base,
			ConcurrentSyncs: *p.cfg.Configuration.Controllers.Bastion.ConcurrentSyncs}
	}},
	{controllerinstallation.ControllerName, func(p parts) addable {
		return &controllerinstallation.Reconciler{
			Base: p.Base, GardenConfig: p.identity.Garden(),
			Version: p.cfg.Version, FeatureGates: p.cfg.Configuration.FeatureGates, ChartLayouts: p.cfg.ChartLayouts,
		}
	}},
	{controllerinstallationcare.ControllerName, func(p parts) addable {
		return &controllerinstallationcare.Reconciler{Base: p.Base}
	}},
	{controllerinstallationrequired.ControllerName, func(p parts) addable {
		return &controllerinstallationrequired.Reconciler{Base: p.Base}
	}},
	{shoot.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.Shoot
		return &shoot.Reconciler{
			Base: p.Base, Identity: p.gardener, ConcurrentSyncs: *config.ConcurrentSyncs,
			SyncPeriod: config.SyncPeriod.Duration, RetryDuration: config.RetryDuration.Duration,
			ProgressReportPeriod: ptr.Deref(config.ProgressReportPeriod, metav1.Duration{Duration: progressReportPeriod}).Duration,
		}
	}},
	{shootcare.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.ShootCare
		thresholds := map[corev1beta1.ConditionType]time.Duration{}
		for _, t := range config.ConditionThresholds {
			thresholds[corev1beta1.ConditionType(t.Type)] = t.Duration.Duration
		}
		return &shootcare.Reconciler{
			Base: p.Base, Shoots: &shootcare.Cache{Seed: p.SeedReader, Clock: p.Clock},
			ConcurrentSyncs: *config.ConcurrentSyncs, SyncPeriod: config.SyncPeriod.Duration,
			Thresholds: thresholds, ProgressingThreshold: config.ManagedResourceProgressingThreshold,
		}
	}},
	{shootstate.ControllerName, func(p parts) addable {
		config := p.cfg.Configuration.Controllers.ShootState
		if *config.ConcurrentSyncs == 0 { // as in Gardener, 0 disables it
			return nil
		}
		return &shootstate.Reconciler{Base: p.Base, ConcurrentSyncs: *config.ConcurrentSyncs,
			SyncPeriod: config.SyncPeriod.Duration}
	}},
	{tokenrequestor.ControllerName, func(p parts) addable {
		return &tokenrequestor.Reconciler{Base: p.Base, GardenConfig: p.identity.Garden()}
	}},
	{managedseed.ControllerName, func(p parts) addable {
		if p.cfg.Deployer == nil {
			return nil
		}
		config := p.cfg.Configuration.Controllers.ManagedSeed
		return &managedseed.Reconciler{
			Base: p.Base, GardenConfig: p.identity.Garden(), Config: p.cfg.Configuration, Deployer: p.cfg.Deployer,
			SyncPeriod: config.SyncPeriod.Duration, WaitSyncPeriod: config.WaitSyncPeriod.Duration,
		}
	}},
	{gardenletcontroller.ControllerName, func(p parts) addable {
		if p.cfg.Deployer == nil {
			return nil
		}
		return &gardenletcontroller.Reconciler{Base: p.Base, GardenConfig: p.identity.Garden(),
			Deployer: p.cfg.Deployer}
	}},
}
