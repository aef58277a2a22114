// Package apiserver adds the Gardener API groups to the garden's delegation chain: a separate server between
// kube-apiserver and aggregator, with storage, admission and OpenAPI. It may import registry, admission, scheme and
// controlplane.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	kubecorev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	gardenadmission "github.com/gardenlite/gardenlite/internal/garden/admission"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/apiserver/openapi"
	"github.com/gardenlite/gardenlite/internal/garden/registry"
	"github.com/gardenlite/gardenlite/internal/garden/registry/core/shootkubeconfig"
	"github.com/gardenlite/gardenlite/internal/garden/scheme"
)

// Extension serves the Gardener API groups.
type Extension struct {
	// Clock is the clock of the landscape.
	Clock clock.PassiveClock
	// PKIDir is the directory with the key that signs WorkloadIdentity tokens.
	PKIDir string
	// Kubeconfigs are the settings of the subresources adminkubeconfig and viewerkubeconfig of Shoots.
	Kubeconfigs shootkubeconfig.Options
	// BastionTimeToLive is passed on to registry.Config.
	BastionTimeToLive time.Duration
	// Admission selects the admission plugins.
	Admission gardenadmission.Selection
	// SeedDeleted, if set, is called after a Seed was deleted, with a client of the garden.
	SeedDeleted func(client kubernetes.Interface, name string)
}

var _ controlplane.Extension = Extension{}

// Scheme implements controlplane.Extension.
func (Extension) Scheme() *runtime.Scheme { return scheme.Scheme }

// OpenAPIDefinitions implements controlplane.Extension.
func (Extension) OpenAPIDefinitions(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
	return openapi.GetOpenAPIDefinitions(ref)
}

// Priorities implements controlplane.Extension. It returns the priorities with which Gardener registers its
// APIServices.
func (Extension) Priorities() map[schema.GroupVersion]controlplaneapiserver.APIServicePriority {
	return map[schema.GroupVersion]controlplaneapiserver.APIServicePriority{
		corev1.SchemeGroupVersion:                 {Group: 9997, Version: 10},
		corev1beta1.SchemeGroupVersion:            {Group: 10000, Version: 20},
		seedmanagementv1alpha1.SchemeGroupVersion: {Group: 9900, Version: 10},
		operationsv1alpha1.SchemeGroupVersion:     {Group: 9800, Version: 10},
		securityv1alpha1.SchemeGroupVersion:       {Group: 9700, Version: 10},
	}
}

// New implements controlplane.Extension.
func (e Extension) New(in controlplane.ExtensionInput) (_ *genericapiserver.GenericAPIServer, err error) {
	if in.Etcd.StorageConfig.Codec, in.Etcd.StorageConfig.EncodeVersioner, err = storageCodec(); err != nil {
		return nil, err
	}
	if err := in.Etcd.ApplyTo(&in.Generic); err != nil {
		return nil, fmt.Errorf("setting up the storage of the Gardener API: %w", err)
	}
	in.Generic.RESTOptionsGetter = seedDeletions{in.ShareStorage(in.Generic.RESTOptionsGetter)}
	kube, err := kubernetes.NewForConfig(in.Generic.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client for the Kubernetes API: %w", err)
	}
	address, err := addressOf(&in.Generic)
	if err != nil {
		return nil, err
	}
	issuer, err := newIssuer(e.PKIDir, address, e.Clock)
	if err != nil {
		return nil, fmt.Errorf("setting up the issuer of WorkloadIdentity tokens: %w", err)
	}
	groups, reader, err := registry.New(in.Generic.RESTOptionsGetter, registry.Config{
		Clock: e.Clock, Kubeconfigs: e.Kubeconfigs, Authorizer: in.Generic.Authorization.Authorizer, Issuer: issuer,
		BastionTimeToLive: e.BastionTimeToLive,
		ConfigMaps: func(ctx context.Context, namespace, name string) (*kubecorev1.ConfigMap, error) {
			return kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the storage of the Gardener API: %w", err)
	}
	e.notifyOfDeletedSeeds(groups, kube)
	// The plugins that Kubernetes has for every resource (webhooks, policies, quota) run after those of Gardener.
	gardenAdmission := gardenadmission.New(plugin.Dependencies{
		Reader: reader, Kube: kube, Authorizer: in.Generic.Authorization.Authorizer, Clock: e.Clock}, e.Admission)
	in.Generic.AdmissionControl = admission.NewChainHandler(
		admissionmetrics.WithStepMetrics(admission.NewChainHandler(gardenAdmission...)), in.Generic.AdmissionControl)
	server, err := in.Generic.Complete(in.Informers).New("gardener-apiserver", in.Delegate)
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		info := genericapiserver.NewDefaultAPIGroupInfo(group.Name, scheme.Scheme, scheme.ParameterCodec, scheme.Codecs)
		info.VersionedResourcesStorageMap = group.Versions
		if err := server.InstallAPIGroup(&info); err != nil {
			return nil, fmt.Errorf("installing the API group %s: %w", group.Name, err)
		}
	}
	return server, serveDiscovery(server.Handler.NonGoRestfulMux, issuer)
}

// storageCodec returns a codec that stores objects as protobuf, in storageVersions.
func storageCodec() (runtime.Codec, runtime.GroupVersioner, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		return nil, nil, errors.New("the Gardener API's types have no protobuf form")
	}
	versions := storageVersions{scheme.GroupVersions}
	return scheme.Codecs.CodecForVersions(info.Serializer, scheme.Codecs.UniversalDeserializer(), versions,
		runtime.InternalGroupVersioner), versions, nil
}

// storageVersions is the version in which an object is stored: the first one of its group, but for ControllerDeployments,
// whose resources only v1 has.
type storageVersions struct{ schema.GroupVersions }

func (v storageVersions) KindForGroupVersionKinds(kinds []schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	for _, kind := range kinds {
		if kind.Group == corev1.GroupName && kind.Kind == "ControllerDeployment" {
			return corev1.SchemeGroupVersion.WithKind(kind.Kind), true
		}
	}
	return v.GroupVersions.KindForGroupVersionKinds(kinds)
}

func (v storageVersions) Identifier() string { return "storage:" + v.GroupVersions.Identifier() }
