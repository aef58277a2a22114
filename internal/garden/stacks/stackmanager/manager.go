package stackmanager

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

const (
	// Name is the name of the component.
	Name = "stack-manager"
	// User is the user name of the Stack Manager in the garden.
	User = "gardenlite.dev:system:stack-manager"
	// leaseName is the name of the Lease for leader election.
	leaseName = "gardenlite-stack-manager-leader-election"
	// leaseNamespace is the namespace of the Leases of all garden components.
	leaseNamespace = "garden"
)

// Config configures a Stack Manager. REST is required.
type Config struct {
	REST *rest.Config
	// Clock defaults to the real clock.
	Clock clock.WithTicker
	Log   logr.Logger
	// LeaderElection enables leader election between several Stack Managers.
	LeaderElection bool
	// Folder contains the packages with references file://NAME. If it is empty, packages are read from registries only.
	Folder string
	// LoopbackRegistry allows packages from registries on loopback addresses.
	LoopbackRegistry bool
}

// New creates a Stack Manager. Until the first install exists, it watches only the two kinds of installs.
func New(cfg Config) (*component.Manager, error) {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	var lease *client.ObjectKey
	if cfg.LeaderElection {
		lease = &client.ObjectKey{Namespace: leaseNamespace, Name: leaseName}
	}
	mgr, err := component.New(component.Config{
		Name: Name, REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log, Lease: lease,
		AddToScheme: runtime.SchemeBuilder{v1alpha1.AddToScheme, apiextensionsv1.AddToScheme, appsv1.AddToScheme,
			batchv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme},
		ByObject: ofStacks(),
	})
	if err != nil {
		return nil, err
	}
	limited := component.WithDefaultRateLimits(cfg.REST)
	instances, err := metadata.NewForConfig(limited)
	if err != nil {
		return nil, fmt.Errorf("making the client that looks for instances of CRDs: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(limited)
	if err != nil {
		return nil, fmt.Errorf("making the client that looks for served resources: %w", err)
	}
	claims, packages := &sync.Mutex{}, newPackages(stackpackage.Options{Folder: cfg.Folder,
		LoopbackRegistry: cfg.LoopbackRegistry})
	for _, kind := range []v1alpha1.Install{&v1alpha1.ClusterStackInstall{}, &v1alpha1.StackInstall{}} {
		r := &Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Instances: instances, Discovery: served, Clock: cfg.Clock,
			kind: kind, claims: claims, packages: packages,
		}
		if err := r.addToManager(mgr); err != nil {
			return nil, fmt.Errorf("adding the controller of %ss: %w", kind.Kind(), err)
		}
	}
	return mgr, nil
}

// ofStacks returns the cache options: of the controlled kinds, only the objects of stacks are cached.
func ofStacks() map[client.Object]cache.ByObject {
	labelled, err := labels.NewRequirement(stackLabel, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	objects := map[client.Object]cache.ByObject{
		&apiextensionsv1.CustomResourceDefinition{}: {},
	}
	for _, object := range controlled() {
		objects[object] = cache.ByObject{Label: labels.NewSelector().Add(*labelled)}
	}
	return objects
}

// controlled returns the kinds of objects that a stack consists of, and the Pods of its controller. All of them have
// the label of the stack.
func controlled() []client.Object {
	return []client.Object{
		&appsv1.Deployment{}, &batchv1.Job{}, &corev1.ServiceAccount{}, &corev1.Pod{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
	}
}
