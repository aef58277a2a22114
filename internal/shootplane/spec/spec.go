package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The objects of a control plane in the shoot's namespace in the seed. The namespace's name is the shoot's technical ID.
const (
	// APIServer is the name of the API server's Deployment, of its one container and of its Service.
	APIServer = "kube-apiserver"
	// ControllerManager is the name of the Deployment of Kubernetes' controllers, and of its one container.
	ControllerManager = "kube-controller-manager"
	// ServiceName is the name of the Service of type LoadBalancer whose status contains the API server's address.
	ServiceName = APIServer
	// SecretName is the name of the Secret with the files of the API server.
	SecretName = "kube-apiserver"
	// ServicePort is the port of the Service.
	ServicePort = 443
)

// Labels of the Deployments.
const (
	LabelApp  = "app"
	LabelRole = "role"
	// LabelGardenRole has the value GardenRoleControlPlane at everything that the runner watches.
	LabelGardenRole = "gardener.cloud/role"

	AppKubernetes          = "kubernetes"
	RoleAPIServer          = "apiserver"
	RoleControllerManager  = "controller-manager"
	GardenRoleControlPlane = "controlplane"
)

// Annotations of the Deployments and their pod templates.
const (
	// AnnotationChecksum at a pod template changes with the Secret: another value restarts the API server.
	AnnotationChecksum = "checksum/secret-kube-apiserver"
	// AnnotationVersion at a Deployment is the shoot's Kubernetes version, without a leading v.
	AnnotationVersion = "gardenlite.dev/kubernetes-version"
	// AnnotationServiceCIDR at the API server's Deployment is the network of the shoot's Services. Without it, the API
	// server takes the default.
	AnnotationServiceCIDR = "gardenlite.dev/service-cidr"
	// AnnotationPodCIDR at the Deployment of the controllers is the network of the shoot's Pods, of which each Node gets a range.
	AnnotationPodCIDR = "gardenlite.dev/pod-cidr"
	// AnnotationNodeMask at the Deployment of the controllers is the prefix length of the range of a Node.
	AnnotationNodeMask = "gardenlite.dev/node-cidr-mask-size"
	// AnnotationIssuers at the API server's Deployment are the issuers of service account tokens, separated by spaces:
	// new tokens have the first issuer, tokens of all issuers are accepted. DefaultIssuer if it is missing.
	AnnotationIssuers = "gardenlite.dev/service-account-issuers"
	// AnnotationHosts at the Secret are the names of the API server of Gardener's gardenlet, separated by spaces.
	AnnotationHosts = "gardenlite.dev/hosts"
	// AnnotationGeneration at the Secret is the Generation of Gardener's Deployments that the Secret describes, with all other
	// annotations of this list.
	AnnotationGeneration = "gardenlite.dev/generation"
	// AnnotationAddress at Gardener's Deployment of the API server is its address, as host:port: the Service is no load balancer.
	AnnotationAddress = "gardenlite.dev/address"
	// AnnotationConfirmDeletion with the value "true" at the API server's Deployment lets the runner delete the data with it.
	// Without it, the data stays for the seed that the shoot's control plane moves to.
	AnnotationConfirmDeletion = "confirmation.gardener.cloud/deletion"
	// Finalizer is held by the runner at the API server's Deployment until the API server has ended, and its data is deleted
	// where that was confirmed.
	Finalizer = "gardenlite.dev/control-plane"
)

// The keys of the Secret.
const (
	// KeyCA and KeyCAKey are the authority that signs the serving certificate.
	KeyCA    = "ca.crt"
	KeyCAKey = "ca.key"
	// KeyCABundle is what clients of the API server trust. The shoot's controllers publish it in kube-root-ca.crt.
	KeyCABundle = "ca-bundle.crt"
	// KeyClientCA and KeyClientCAKey sign certificate signing requests.
	KeyClientCA    = "ca-client.crt"
	KeyClientCAKey = "ca-client.key"
	// KeyClientCABundle tells which client certificates are accepted.
	KeyClientCABundle = "ca-client-bundle.crt"
	// KeyFrontProxyCA and KeyFrontProxyCAKey are the authority of the aggregation layer.
	KeyFrontProxyCA    = "ca-front-proxy.crt"
	KeyFrontProxyCAKey = "ca-front-proxy.key"
	// KeyServiceAccountKey signs the tokens of service accounts.
	KeyServiceAccountKey = "service-account.key"
	// KeyServiceAccountBundle are the keys whose tokens are accepted, PEM blocks one after the other.
	KeyServiceAccountBundle = "service-account-bundle.key"
	// KeyEncryption is the EncryptionConfiguration of the API server, with the keys that encrypt its data. It is
	// optional: without it, the data is not encrypted.
	KeyEncryption = "encryption-configuration.json"
	// KeyKubeletClient and KeyKubeletClientKey are what the API server shows to kubelets. They are optional: without them, KeyClientCA
	// signs it.
	KeyKubeletClient    = "kubelet-client.crt"
	KeyKubeletClientKey = "kubelet-client.key"
)

// NotControlPlanes is the label selector of the Deployments that get Pods: all but those of control planes, which run in the process.
const NotControlPlanes = LabelRole + " notin (" + RoleAPIServer + "," + RoleControllerManager + ")"

// Keys returns every key that the Secret must have.
func Keys() []string {
	return []string{
		KeyCA, KeyCAKey, KeyCABundle, KeyClientCA, KeyClientCAKey, KeyClientCABundle,
		KeyFrontProxyCA, KeyFrontProxyCAKey, KeyServiceAccountKey, KeyServiceAccountBundle,
	}
}

// MissingKeys returns the keys that are absent or empty in the data of a Secret.
func MissingKeys(data map[string][]byte) []string {
	return slices.DeleteFunc(Keys(), func(key string) bool { return len(data[key]) > 0 })
}

// DefaultIssuer is the issuer of service account tokens where none is given.
const DefaultIssuer = "https://kubernetes.default.svc.cluster.local"

// Checksum returns the checksum of the files in a Secret.
func Checksum(files map[string][]byte) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%s\x00%d\x00", key, len(files[key])) // a hash returns no errors
		hash.Write(files[key])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Labels returns the labels of the Deployment of that role.
func Labels(role string) map[string]string {
	labels := Selector(role)
	labels[LabelGardenRole] = GardenRoleControlPlane
	return labels
}

// Selector returns the selector of the Deployment of that role. It cannot be changed, so it is that of Gardener's gardenlet.
func Selector(role string) map[string]string {
	return map[string]string{LabelApp: AppKubernetes, LabelRole: role}
}

// Image returns the image of a Deployment's container.
func Image(name, version string) string {
	return "registry.k8s.io/" + name + ":v" + strings.TrimPrefix(version, "v")
}

// Version returns the Kubernetes version that a Deployment is annotated with, with a leading v; "" without one.
func Version(deployment *appsv1.Deployment) string {
	version := strings.TrimPrefix(deployment.Annotations[AnnotationVersion], "v")
	if version == "" {
		return ""
	}
	return "v" + version
}

// IsGardeners reports whether Gardener's gardenlet has made the Deployment of an API server or of Kubernetes' controllers. The
// Secret describes the control plane then.
func IsGardeners(deployment *appsv1.Deployment) bool {
	containers := deployment.Spec.Template.Spec.Containers
	return len(containers) > 0 && len(containers[0].Command)+len(containers[0].Args) > 0
}

// Generation returns the generations of the Deployments of Gardener's gardenlet; there may be no controllers, or they end, or are still
// those of gardenlite's gardenlet.
func Generation(apiServer, controllers *appsv1.Deployment) string {
	generation := strconv.FormatInt(apiServer.Generation, 10)
	if controllers != nil && controllers.DeletionTimestamp == nil && IsGardeners(controllers) {
		generation += "/" + strconv.FormatInt(controllers.Generation, 10)
	}
	return generation
}

// Endpoint returns the address of the API server in the status of its Service, as host:port; "" while there is none.
func Endpoint(service *corev1.Service) string {
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		for _, port := range ingress.Ports {
			if ingress.IP != "" && port.Port != 0 {
				return fmt.Sprintf("%s:%d", ingress.IP, port.Port)
			}
		}
	}
	return ""
}
