package shoot

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// serverFiles returns the files that the API server needs.
func (b *botanist) serverFiles() (map[string][]byte, error) {
	encryption, err := b.encryptionConfiguration()
	if err != nil {
		return nil, err
	}
	ca, clients, proxy := b.authorities[shootsecrets.CA], b.authorities[shootsecrets.CAClient], b.authorities[shootsecrets.CAFrontProxy]
	return map[string][]byte{
		spec.KeyCA: ca.Serving().Certificate, spec.KeyCAKey: ca.Serving().Key, spec.KeyCABundle: ca.Bundle(shootsecrets.KeyCertificate),
		spec.KeyClientCA: clients.Authority().Certificate, spec.KeyClientCAKey: clients.Authority().Key,
		spec.KeyClientCABundle: b.clientBundle(),
		spec.KeyFrontProxyCA:   proxy.Authority().Certificate, spec.KeyFrontProxyCAKey: proxy.Authority().Key,
		spec.KeyServiceAccountKey:    b.signingKey.Current[shootsecrets.KeyRSA],
		spec.KeyServiceAccountBundle: b.signingKey.Bundle(shootsecrets.KeyRSA),
		spec.KeyEncryption:           encryption,
	}, nil
}

// bundle returns the CA certificates that clients of the API server trust.
func (b *botanist) bundle() []byte {
	return b.authorities[shootsecrets.CA].Bundle(shootsecrets.KeyCertificate)
}

// clientBundle returns the CA certificates with which the API server and kubelets verify client certificates.
func (b *botanist) clientBundle() []byte {
	return b.authorities[shootsecrets.CAClient].Bundle(shootsecrets.KeyCertificate)
}

// deployAPIServer writes the Secret and the Deployment of the API server.
func (b *botanist) deployAPIServer(ctx context.Context) error {
	files, err := b.serverFiles()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: spec.SecretName}}
	err = ensure(ctx, b.SeedClient, b.SeedReader, secret, func(secret *corev1.Secret) error {
		secret.Data = files
		return nil
	})
	if err != nil {
		return err
	}
	return b.deployPlane(ctx, spec.APIServer, spec.RoleAPIServer, spec.Checksum(files))
}

// deployControllerManager writes the Deployment of Kubernetes' controllers.
func (b *botanist) deployControllerManager(ctx context.Context) error {
	files, err := b.serverFiles()
	if err != nil {
		return err
	}
	return b.deployPlane(ctx, spec.ControllerManager, spec.RoleControllerManager, spec.Checksum(files))
}

func (b *botanist) deployPlane(ctx context.Context, name, role, checksum string) error {
	version, labels := b.shoot.Spec.Kubernetes.Version, spec.Labels(role)
	replicas := ptr.To[int32](1)
	if b.asleep {
		replicas = ptr.To[int32](0)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: name}}
	return ensure(ctx, b.SeedClient, b.SeedReader, deployment, func(d *appsv1.Deployment) error {
		annotate(d, spec.AnnotationVersion, version)
		if role == spec.RoleAPIServer {
			annotateOrNot(d, spec.AnnotationIssuers, strings.Join(issuers(b.shoot), " "))
		}
		if n := b.shoot.Spec.Networking; n != nil && n.Services != nil && role == spec.RoleAPIServer {
			annotate(d, spec.AnnotationServiceCIDR, *n.Services)
		}
		if n := b.shoot.Spec.Networking; n != nil && n.Pods != nil && role == spec.RoleControllerManager {
			annotate(d, spec.AnnotationPodCIDR, *n.Pods)
			annotateOrNot(d, spec.AnnotationNodeMask, nodeMask(b.shoot))
		}
		d.Labels = labels
		if b.hibernates() && ptr.Deref(d.Spec.Replicas, 1) == 0 { // it has been stopped for the hibernation
			replicas = ptr.To[int32](0)
		}
		d.Spec.Replicas = replicas
		if d.Spec.Selector == nil { // it cannot be changed
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: spec.Selector(role)}
		}
		template := &d.Spec.Template
		if spec.IsGardeners(d) { // Gardener's gardenlet was here before
			*template = corev1.PodTemplateSpec{}
		}
		template.Labels = labels
		annotate(template, spec.AnnotationChecksum, checksum)
		// Fields that the seed's API server has defaulted are kept.
		if len(template.Spec.Containers) != 1 {
			template.Spec.Containers = []corev1.Container{{}}
		}
		template.Spec.Containers[0].Name, template.Spec.Containers[0].Image = name, spec.Image(name, version)
		return nil
	})
}

// nodeMask returns the prefix length of the Pod range of a Node, "" for the default.
func nodeMask(shoot *corev1beta1.Shoot) string {
	manager := ptr.Deref(shoot.Spec.Kubernetes.KubeControllerManager, corev1beta1.KubeControllerManagerConfig{})
	mask := manager.NodeCIDRMaskSize
	if strings.Contains(*shoot.Spec.Networking.Pods, ":") {
		mask = cmp.Or(manager.NodeCIDRMaskSizeIPv6, mask)
	}
	if mask == nil {
		return ""
	}
	return strconv.Itoa(int(*mask))
}

// deployService writes the Service whose status gets the address of the API server.
func (b *botanist) deployService(ctx context.Context) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: spec.ServiceName}}
	return ensure(ctx, b.SeedClient, b.SeedReader, service, func(s *corev1.Service) error {
		s.Labels = spec.Labels(spec.RoleAPIServer)
		s.Spec.Type, s.Spec.Selector = corev1.ServiceTypeLoadBalancer, spec.Labels(spec.RoleAPIServer)
		s.Spec.AllocateLoadBalancerNodePorts = ptr.To(false) // there are not enough node ports
		if len(s.Spec.Ports) != 1 {
			s.Spec.Ports = []corev1.ServicePort{{}}
		}
		port := &s.Spec.Ports[0]
		port.Name, port.Port, port.Protocol, port.TargetPort = spec.APIServer, spec.ServicePort, corev1.ProtocolTCP,
			intstr.FromInt32(spec.ServicePort)
		return nil
	})
}

// deployGenericKubeconfig writes the kubeconfig with which components of the control plane reach the shoot. Each mounts it
// together with a Secret of its own, into which the resource manager writes a token.
func (b *botanist) deployGenericKubeconfig(ctx context.Context) error {
	server := &rest.Config{Host: "https://" + b.endpoint, TLSClientConfig: rest.TLSClientConfig{CAData: b.bundle()}}
	kubeconfig, err := controllerutils.Kubeconfig(server, b.namespace(), &clientcmdapi.AuthInfo{TokenFile: genericTokenFile})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: constants.SecretNameGenericTokenKubeconfig}}
	return ensure(ctx, b.SeedClient, b.SeedReader, secret, func(secret *corev1.Secret) error {
		secret.Data = map[string][]byte{resourcesv1alpha1.DataKeyKubeconfig: kubeconfig}
		return nil
	})
}

// deployExtensionKubeconfig writes the kubeconfig with which extensions reach the shoot as its administrator, if it has some. The
// resource manager writes the token.
func (b *botanist) deployExtensionKubeconfig(ctx context.Context) error {
	if len(b.shoot.Spec.Extensions) == 0 {
		return nil
	}
	server := &rest.Config{Host: "https://" + b.endpoint, TLSClientConfig: rest.TLSClientConfig{CAData: b.bundle()}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: constants.SecretNameGardener}}
	filled := false
	err := ensure(ctx, b.SeedClient, b.SeedReader, secret, func(secret *corev1.Secret) error {
		user := &clientcmdapi.AuthInfo{}
		if before, err := clientcmd.Load(secret.Data[resourcesv1alpha1.DataKeyKubeconfig]); err == nil && before.AuthInfos[b.namespace()] != nil {
			user.Token = before.AuthInfos[b.namespace()].Token
		}
		filled = user.Token != ""
		kubeconfig, err := controllerutils.Kubeconfig(server, b.namespace(), user)
		if err != nil {
			return err
		}
		metav1.SetMetaDataLabel(&secret.ObjectMeta, resourcesv1alpha1.ResourceManagerPurpose, resourcesv1alpha1.LabelPurposeTokenRequest)
		metav1.SetMetaDataLabel(&secret.ObjectMeta, resourcesv1alpha1.ResourceManagerClass, resourcesv1alpha1.ResourceManagerClassShoot)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountName, constants.SecretNameGardener)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountNamespace, metav1.NamespaceSystem)
		secret.Data = map[string][]byte{resourcesv1alpha1.DataKeyKubeconfig: kubeconfig}
		return nil
	})
	if err == nil && !filled {
		err = flow.Pending("Secret %s has no token yet", client.ObjectKeyFromObject(secret))
	}
	return err
}

// genericTokenFile is where components mount their tokens, as in Gardener.
const genericTokenFile = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token"

// readEndpoint reads the address of the API server. A Shoot that has never been awake may have none.
func (b *botanist) readEndpoint(ctx context.Context) error {
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: b.namespace(), Name: spec.ServiceName}
	if err := b.SeedReader.Get(ctx, key, service); err != nil {
		return fmt.Errorf("reading Service %s: %w", key, err)
	}
	b.endpoint = spec.Endpoint(service)
	if b.endpoint == "" && !b.asleep {
		return flow.Pending("Service %s has no address yet", key)
	}
	return nil
}

// issuers returns the issuers of the Shoot's service account tokens: new tokens have the first one, tokens of all are
// accepted. There are none if the Shoot configures none.
func issuers(shoot *corev1beta1.Shoot) []string {
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server == nil || server.ServiceAccountConfig == nil {
		return nil
	}
	config := server.ServiceAccountConfig
	if config.Issuer == nil && len(config.AcceptedIssuers) == 0 {
		return nil
	}
	all := []string{ptr.Deref(config.Issuer, spec.DefaultIssuer)}
	for _, accepted := range append(slices.Clone(config.AcceptedIssuers), spec.DefaultIssuer) {
		if !slices.Contains(all, accepted) {
			all = append(all, accepted)
		}
	}
	return all
}

// advertise writes the addresses of the API server into the Shoot's status, and the issuer of its service account
// tokens if it is not the default. Addresses are kept while the Shoot is hibernated.
func (b *botanist) advertise(ctx context.Context) error {
	if b.endpoint == "" {
		return nil
	}
	return b.patchShootStatus(ctx, func(shoot *corev1beta1.Shoot) {
		addresses := []corev1beta1.ShootAdvertisedAddress{
			{Name: constants.AdvertisedAddressExternal, URL: b.url()}, {Name: constants.AdvertisedAddressInternal, URL: b.url()},
		}
		if all := issuers(shoot); len(all) > 0 && all[0] != spec.DefaultIssuer {
			addresses = append(addresses, corev1beta1.ShootAdvertisedAddress{Name: constants.AdvertisedAddressServiceAccountIssuer, URL: all[0]})
		}
		shoot.Status.AdvertisedAddresses = addresses
	})
}

func (b *botanist) url() string { return "https://" + b.endpoint }

// hostOf returns an address without its port.
func hostOf(endpoint string) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return endpoint
	}
	return host
}

func (b *botanist) readPlane(ctx context.Context, name string) (*appsv1.Deployment, error) {
	deployment, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: b.namespace(), Name: name}
	if err := b.SeedReader.Get(ctx, key, deployment); err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return deployment, nil
}

// rolledOut returns a step that waits until a Deployment of the control plane is rolled out, which includes being
// stopped if it has 0 replicas.
func (b *botanist) rolledOut(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		deployment, err := b.readPlane(ctx, name)
		if err != nil {
			return err
		}
		status, wanted := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
		if status.ObservedGeneration >= deployment.Generation && status.Replicas == wanted && status.UpdatedReplicas == wanted &&
			status.AvailableReplicas == wanted {
			return nil
		}
		return flow.Pending("Deployment %s is not rolled out yet%s", client.ObjectKeyFromObject(deployment), why(deployment))
	}
}

// why returns the reason why a Deployment is not rolled out, from its conditions.
func why(deployment *appsv1.Deployment) string {
	for _, c := range deployment.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" && deployment.Status.ObservedGeneration >= deployment.Generation {
			return ": " + c.Message
		}
	}
	return ""
}

// scaleDown stops the control plane of a Shoot that hibernates: the controllers first, because they need the API
// server.
func (b *botanist) scaleDown(ctx context.Context) error {
	for _, name := range []string{spec.ControllerManager, spec.APIServer} {
		deployment, err := b.readPlane(ctx, name)
		if err != nil {
			return err
		}
		err = operation.Patch(ctx, b.SeedClient, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) })
		if err != nil {
			return err
		}
		if err := b.rolledOut(name)(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isHibernated reports whether the Shoot hibernates and its API server does not run, so that it is not started. It is
// started in a restoration: if the migration began before hibernation was complete, there still are machines.
func (b *botanist) isHibernated(ctx context.Context) (bool, error) {
	if !b.hibernates() {
		return false, nil
	}
	deployment, err := b.readPlane(ctx, spec.APIServer)
	if apierrors.IsNotFound(err) {
		return !b.restores(), nil
	} else if err != nil {
		return false, err
	}
	return ptr.Deref(deployment.Spec.Replicas, 1) == 0, nil
}

// deletePlane returns a step that deletes a Deployment of the control plane, and waits until it is gone. The data is
// deleted only if that is confirmed (withData); otherwise it stays for another seed.
func (b *botanist) deletePlane(name string, withData bool) func(context.Context) error {
	return func(ctx context.Context) error {
		deployment, err := b.readPlane(ctx, name)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if withData {
			err := operation.Patch(ctx, b.SeedClient, deployment, func(d *appsv1.Deployment) { annotate(d, spec.AnnotationConfirmDeletion, "true") })
			if err != nil {
				return client.IgnoreNotFound(err)
			}
		}
		return remove(ctx, b.SeedClient, b.SeedReader, deployment)
	}
}
