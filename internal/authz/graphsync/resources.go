package graphsync

import (
	"fmt"
	"strings"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	gardenscheme "github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// Resource is a kind of object that causes edges.
type Resource struct {
	schema.GroupVersionResource
	Kind graph.Kind
	// Object is an empty object of the Go type.
	Object runtime.Object
	// retained objects stay in memory, because their edges are updated when another object or the time changes.
	retained bool
}

// Resources returns the kinds that are watched: those that cause edges (graph.EdgesOf), in the order in which they are
// best read. Secrets, ConfigMaps and the like only have edges of other objects, and so are never read.
func Resources() []Resource {
	core := gardencorev1beta1.SchemeGroupVersion.WithResource
	return []Resource{
		{core("seeds"), graph.KindSeed, &gardencorev1beta1.Seed{}, true},
		{seedmanagementv1alpha1.SchemeGroupVersion.WithResource("managedseeds"), graph.KindManagedSeed,
			&seedmanagementv1alpha1.ManagedSeed{}, true},
		{seedmanagementv1alpha1.SchemeGroupVersion.WithResource("gardenlets"), graph.KindGardenlet, &seedmanagementv1alpha1.Gardenlet{}, true},
		{core("projects"), graph.KindProject, &gardencorev1beta1.Project{}, false},
		{core("shoots"), graph.KindShoot, &gardencorev1beta1.Shoot{}, false},
		{core("secretbindings"), graph.KindSecretBinding, &gardencorev1beta1.SecretBinding{}, false},
		{securityv1alpha1.SchemeGroupVersion.WithResource("credentialsbindings"), graph.KindCredentialsBinding,
			&securityv1alpha1.CredentialsBinding{}, false},
		{core("backupbuckets"), graph.KindBackupBucket, &gardencorev1beta1.BackupBucket{}, false},
		{core("backupentries"), graph.KindBackupEntry, &gardencorev1beta1.BackupEntry{}, false},
		{operationsv1alpha1.SchemeGroupVersion.WithResource("bastions"), graph.KindBastion, &operationsv1alpha1.Bastion{}, false},
		{core("controllerinstallations"), graph.KindControllerInstallation, &gardencorev1beta1.ControllerInstallation{}, false},
		{gardencorev1.SchemeGroupVersion.WithResource("controllerdeployments"), graph.KindControllerDeployment,
			&gardencorev1.ControllerDeployment{}, false},
		{certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), graph.KindCertificateSigningRequest,
			&certificatesv1.CertificateSigningRequest{}, false},
		{corev1.SchemeGroupVersion.WithResource("serviceaccounts"), graph.KindServiceAccount, &corev1.ServiceAccount{}, false},
	}
}

// listerWatchers returns the lister-watchers of the resources. They share one connection to the garden, with one client
// for each group and version.
func listerWatchers(config *rest.Config, resources []Resource) ([]cache.ListerWatcher, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // a timeout would end every watch
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the garden: %w", err)
	}
	clients := map[schema.GroupVersion]rest.Interface{}
	all := make([]cache.ListerWatcher, 0, len(resources))
	for _, resource := range resources {
		gv := resource.GroupVersion()
		if clients[gv] == nil {
			if clients[gv], err = rest.RESTClientForConfigAndClient(versioned(config, gv), httpClient); err != nil {
				return nil, fmt.Errorf("making the client of %s: %w", gv, err)
			}
		}
		all = append(all, cache.NewListWatchFromClient(clients[gv], resource.Resource, metav1.NamespaceAll, fields.Everything()))
	}
	return all, nil
}

// versioned returns the configuration for a group and version: without a rate limit, because there are few requests,
// and with protobuf, because decoding it costs a fraction of JSON.
func versioned(config *rest.Config, gv schema.GroupVersion) *rest.Config {
	c := rest.CopyConfig(config)
	c.GroupVersion = &gv
	c.APIPath = "/apis"
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	c.NegotiatedSerializer = kubernetesscheme.Codecs.WithoutConversion()
	if strings.HasSuffix(gv.Group, ".gardener.cloud") {
		c.NegotiatedSerializer = gardenscheme.Codecs.WithoutConversion()
	}
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.QPS, c.RateLimiter = -1, nil
	return c
}

// strip removes large parts of an object that cause no edges, before the object waits in memory for the rest of its
// list.
func strip(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	if shoot, ok := obj.(*gardencorev1beta1.Shoot); ok {
		shoot.Status = gardencorev1beta1.ShootStatus{
			SeedName:    shoot.Status.SeedName,
			TechnicalID: shoot.Status.TechnicalID,
			UID:         shoot.Status.UID,
		}
		shoot.Spec.Provider, shoot.Spec.Extensions = gardencorev1beta1.Provider{}, nil
	}
	return obj, nil
}
