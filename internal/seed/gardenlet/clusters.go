package gardenlet

import (
	"fmt"
	"net/http"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/operations"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// newGarden returns the gardenlet's clients and cache for the garden. The cache of each watched kind is restricted to the
// objects of the seed. Other kinds are read live, because the SeedAuthorizer does not allow to watch them.
func (g *Gardenlet) newGarden(identity *bootstrap.Identity) (cluster.Cluster, error) {
	config := identity.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &notOfSeed{next} })
	g.cfg.WrapGarden(config)
	scheme := runtime.NewScheme()
	if err := gardenTypes.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("putting together the types of the garden: %w", err)
	}
	ofSeed := labels.SelectorFromSet(labels.Set{constants.LabelPrefixSeedName + g.seedName: "true"})
	named := fields.OneTermEqualSelector(metav1.ObjectNameField, g.seedName)
	garden, err := cluster.New(component.WithDefaultRateLimits(config), func(o *cluster.Options) {
		o.Scheme, o.Logger = scheme, g.cfg.Log
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}, &corev1.ServiceAccount{}, &corev1.Event{},
			&coordinationv1.Lease{}, &certificatesv1.CertificateSigningRequest{}, &rbacv1.ClusterRoleBinding{},
			&gardencorev1.ControllerDeployment{}, &corev1beta1.CloudProfile{}, &corev1beta1.NamespacedCloudProfile{},
			&corev1beta1.ExposureClass{}, &corev1beta1.InternalSecret{}, &corev1beta1.Project{}, &corev1beta1.SecretBinding{},
			&corev1beta1.ShootState{}, &securityv1alpha1.CredentialsBinding{}, &securityv1alpha1.WorkloadIdentity{},
		}}
		o.NewCache = component.NewCache
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			&corev1beta1.ControllerInstallation{}: {Field: fields.OneTermEqualSelector(gardencore.SeedRefName, g.seedName)},
			&corev1beta1.Seed{}:                   {Label: ofSeed},
			&corev1beta1.Shoot{}:                  {Label: ofSeed},
			&seedmanagementv1alpha1.ManagedSeed{}: {Label: ofSeed},
			&operationsv1alpha1.Bastion{}:         {Field: fields.OneTermEqualSelector(operations.BastionSeedName, g.seedName)},
			&seedmanagementv1alpha1.Gardenlet{}: {
				Field: named, Namespaces: map[string]cache.Config{constants.GardenNamespace: {}},
			},
		}
	})
	if err != nil {
		return nil, fmt.Errorf("making the clients for the garden: %w", err)
	}
	return &gardenCluster{Cluster: garden, reader: newLiveReader(garden.GetAPIReader(), garden.GetClient())}, nil
}

// newManager returns the manager of the gardenlet's controllers, with the clients and the cache for the seed.
func (g *Gardenlet) newManager() (*component.Manager, error) {
	cfg := component.Config{
		Name: "gardenlet of seed " + g.seedName, REST: g.cfg.Seed, Clock: g.cfg.Clock, Log: g.cfg.Log, AddToScheme: seedTypes,
		Uncached: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{}, &coordinationv1.Lease{}},
		// The gardenlet may only read the Services of control planes.
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Service{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, spec.ServiceName)}},
	}
	return component.New(cfg)
}

// gardenTypes are the types of the garden, in the versions that are served.
var gardenTypes = runtime.NewSchemeBuilder(
	clientgoscheme.AddToScheme, corev1beta1.AddToScheme, gardencorev1.AddToScheme, operationsv1alpha1.AddToScheme,
	securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
)

var seedTypes = runtime.NewSchemeBuilder(
	clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
)
