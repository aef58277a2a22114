// Package controllermanager is Gardener's controller-manager: the controllers of the garden's own resources, as one
// component with its own identity.
//
// Each controller is a type with Reconcile, which tests call with a client and a clock, and AddToManager, in a file or a
// folder that is named as in Gardener. The table in manager.go puts the controllers together. In folders are the larger
// ones, and those that other packages need: controllerregistration/installation, csrapprover, managedseedset, project,
// shootmaintenance, shootstatuslabel, and finalizers (of objects that must not be deleted while they are in use). The
// package references is for seedreference.go and shootreference.go; kit, and kittest for tests, are for all controllers.
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
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/controllerregistration/installation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/csrapprover"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/managedseedset"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/project"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootmaintenance"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/shootstatuslabel"
)

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
		{projectActivityName, &ProjectActivity{}},
		{projectStaleName, &ProjectStale{}},
		{csrapprover.ControllerName, &csrapprover.Reconciler{}},
		{eventCleanerName, &EventCleaner{}},
		{bastionName, &Bastion{MaxLifetime: cfg.BastionMaxLifetime}},
		{installation.ControllerName, &installation.Reconciler{}},
		{extensionClusterRoleName, &ExtensionClusterRole{}},
		{seedSecretsName, &SeedSecrets{}},
		{seedReferenceName, &SeedReference{}},
		{gardenletLifecycleName, &GardenletLifecycle{MonitorPeriod: cfg.SeedMonitorPeriod}},
		{seedExtensionsCheckName, &SeedExtensionsCheck{}},
		{seedBackupBucketsCheckName, &SeedBackupBucketsCheck{}},
		{managedseedset.ControllerName, &managedseedset.Reconciler{}},
		{shootConditionsName, &ShootConditions{}},
		{shootHibernationName, &ShootHibernation{}},
		{shootmaintenance.ControllerName, &shootmaintenance.Reconciler{}},
		{shootMigrationName, &ShootMigration{}},
		{shootQuotaName, &ShootQuota{}},
		{shootReferenceName, &ShootReference{}},
		{shootRetryName, &ShootRetry{}},
		{shootStateFinalizerName, &ShootStateFinalizer{}},
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
