// Package controllermanager is Gardener's controller-manager: the controllers of the garden's own resources, as one
// component with its own identity.
//
// Each controller has a folder with a Reconciler, which tests call with a client and a clock, and its AddToManager. The
// table in manager.go puts the controllers together. The folders are:
//
//   - of projects: project, projectactivity, projectstale
//   - of seeds and gardenlets: seedsecrets, seedextensionscheck, seedbackupbucketscheck, gardenletlifecycle,
//     csrapprover, managedseedset
//   - of extensions: controllerregistration/installation, controllerregistration/extensionclusterrole
//   - of shoots: shootconditions, shoothibernation, shootmaintenance, shootmigration, shootquota, shootretry,
//     shootstatefinalizer, shootstatuslabel
//   - of objects that must not be deleted while they are in use: finalizers (profiles, bindings, quotas, registrations
//     …), seedreference and shootreference (secrets and other objects that Seeds and Shoots refer to), which share
//     references
//   - of bastions: bastion
//   - of events: eventcleaner
//   - for all controllers: kit, and kittest in it for their tests
//
// It may import the other packages below garden, and reaches the garden only through the client configuration that it
// is given. It promises that Run, when it returns, has left no goroutine behind, and that several managers can run in
// one process.
package controllermanager

import (
	"fmt"
	"time"

	controllermanagerv1alpha1 "github.com/gardener/gardener/pkg/apis/config/controllermanager/v1alpha1"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/bastion"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/extensionclusterrole"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/installation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/csrapprover"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/eventcleaner"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/gardenletlifecycle"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/managedseedset"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/project"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/projectactivity"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/projectstale"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedbackupbucketscheck"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedextensionscheck"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedreference"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/seedsecrets"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootconditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shoothibernation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootmaintenance"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootmigration"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootquota"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootreference"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootretry"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootstatefinalizer"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootstatuslabel"
)

// DefaultSeedMonitorPeriod is the default of Config.SeedMonitorPeriod, the same as in Gardener.
const DefaultSeedMonitorPeriod = gardenletlifecycle.DefaultMonitorPeriod

// User is the name of the user as which the controller-manager authenticates at the garden.
const User = "gardener.cloud:system:controller-manager"

// Config configures a controller-manager. REST is required.
type Config struct {
	REST *rest.Config
	// Clock is the real clock by default.
	Clock clock.WithTicker
	Log   logr.Logger
	// LeaderElection lets only the leader among several controller-managers run its controllers. They use Gardener's
	// lease. Another one takes over within 15 s when the leader dies, and at once when it stops.
	LeaderElection bool
	// Controllers selects controllers by name (see Names). If it is nil, all are selected.
	Controllers func(name string) bool
	// Quotas are the resource quotas of projects: each Project gets the first one whose selector matches its labels.
	Quotas []controllermanagerv1alpha1.QuotaConfiguration
	// SeedMonitorPeriod is the age of a gardenlet's lease at which its Seed becomes Unknown. The lease is checked four
	// times in this period. DefaultSeedMonitorPeriod by default.
	SeedMonitorPeriod time.Duration
	// BastionMaxLifetime is the maximum age of a Bastion: bastion.DefaultMaxLifetime by default.
	BastionMaxLifetime time.Duration
}

// controller is an entry of the table of controllers: a Reconciler that adds itself to a manager.
type controller struct {
	name       string
	reconciler interface {
		AddToManager(manager.Manager) error
	}
}

func controllers(cfg Config) []controller {
	all := []controller{
		{project.ControllerName, &project.Reconciler{Quotas: cfg.Quotas}},
		{projectactivity.ControllerName, &projectactivity.Reconciler{}},
		{projectstale.ControllerName, &projectstale.Reconciler{}},
		{csrapprover.ControllerName, &csrapprover.Reconciler{}},
		{eventcleaner.ControllerName, &eventcleaner.Reconciler{}},
		{bastion.ControllerName, &bastion.Reconciler{MaxLifetime: cfg.BastionMaxLifetime}},
		{installation.ControllerName, &installation.Reconciler{}},
		{extensionclusterrole.ControllerName, &extensionclusterrole.Reconciler{}},
		{seedsecrets.ControllerName, &seedsecrets.Reconciler{}},
		{seedreference.ControllerName, &seedreference.Reconciler{}},
		{gardenletlifecycle.ControllerName, &gardenletlifecycle.Reconciler{MonitorPeriod: cfg.SeedMonitorPeriod}},
		{seedextensionscheck.ControllerName, &seedextensionscheck.Reconciler{}},
		{seedbackupbucketscheck.ControllerName, &seedbackupbucketscheck.Reconciler{}},
		{managedseedset.ControllerName, &managedseedset.Reconciler{}},
		{shootconditions.ControllerName, &shootconditions.Reconciler{}},
		{shoothibernation.ControllerName, &shoothibernation.Reconciler{}},
		{shootmaintenance.ControllerName, &shootmaintenance.Reconciler{}},
		{shootmigration.ControllerName, &shootmigration.Reconciler{}},
		{shootquota.ControllerName, &shootquota.Reconciler{}},
		{shootreference.ControllerName, &shootreference.Reconciler{}},
		{shootretry.ControllerName, &shootretry.Reconciler{}},
		{shootstatefinalizer.ControllerName, &shootstatefinalizer.Reconciler{}},
		{shootstatuslabel.ControllerName, &shootstatuslabel.Reconciler{}},
	}
	for _, kind := range finalizers.Kinds() {
		all = append(all, controller{kind.Name, &finalizers.Reconciler{Kind: kind}})
	}
	return all
}

// Names returns the names of all controllers. They are the same as in Gardener.
func Names() []string {
	var names []string
	for _, c := range controllers(Config{}) {
		names = append(names, c.name)
	}
	return names
}

// New creates a controller-manager. Its controllers start with Run.
func New(cfg Config) (*component.Manager, error) {
	var lease *client.ObjectKey
	if cfg.LeaderElection {
		gardener := controllermanagerv1alpha1.ControllerManagerConfiguration{}
		controllermanagerv1alpha1.SetObjectDefaults_ControllerManagerConfiguration(&gardener)
		lease = &client.ObjectKey{Namespace: gardener.LeaderElection.ResourceNamespace, Name: gardener.LeaderElection.ResourceName}
	}
	mgr, err := component.New(component.Config{
		Name: "controller-manager", REST: cfg.REST, Clock: cfg.Clock, AddToScheme: schemes, Log: cfg.Log, Uncached: uncached(), Lease: lease,
		Concurrency: controllermanagerv1alpha1.DefaultControllerConcurrentSyncs,
	})
	if err != nil {
		return nil, err
	}
	for _, c := range controllers(cfg) {
		if cfg.Controllers != nil && !cfg.Controllers(c.name) {
			continue
		}
		if err := c.reconciler.AddToManager(mgr); err != nil {
			return nil, fmt.Errorf("adding the controller %s to the controller-manager: %w", c.name, err)
		}
	}
	return mgr, nil
}

// uncached returns the kinds that are read seldom or one by one. A cache would hold all their objects all the time,
// Secrets included.
func uncached() []client.Object {
	return []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ResourceQuota{},
		&corev1beta1.InternalSecret{}, &securityv1alpha1.WorkloadIdentity{},
		&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
	}
}

// schemes are the types of Kubernetes and of Gardener, in the versions that the garden serves.
var schemes = runtime.NewSchemeBuilder(
	clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme, operationsv1alpha1.AddToScheme,
	securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
)
