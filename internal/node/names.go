package node

import "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

// Paths of the programs, as units name them.
const (
	PathNodeAgent = "/opt/bin/gardener-node-agent"
	PathKubelet   = "/opt/bin/kubelet"
)

// Names of the units.
const (
	UnitNodeAgent = "gardener-node-agent.service"
	UnitKubelet   = "kubelet.service"
	// UnitSSH is the machine's own SSH server.
	UnitSSH = "ssh.service"
)

// Files of gardener-node-agent; the names are Gardener's.
const (
	PathAgentConfig    = "/var/lib/gardener-node-agent/config.json"
	PathBootstrapToken = "/var/lib/gardener-node-agent/credentials/bootstrap-token"
	PathMachineName    = "/var/lib/gardener-node-agent/machine-name"
	// PathZone holds the zone of the machine, where the cloud's metadata does not tell it.
	PathZone = "/var/lib/gardener-node-agent/zone"
	// PathLastApplied is the last applied OperatingSystemConfig: what is not in the next one is removed.
	PathLastApplied = "/var/lib/gardener-node-agent/last-applied-osc.yaml"
)

// Files of the kubelet; the names are Gardener's and Kubernetes'.
const (
	PathKubeletConfig       = "/var/lib/kubelet/config/kubelet.json"
	PathKubeletCA           = "/var/lib/kubelet/ca.crt"
	PathKubeconfigBootstrap = "/var/lib/kubelet/kubeconfig-bootstrap"
	PathKubeconfig          = "/var/lib/kubelet/kubeconfig-real"
	// PathKubeletClient contains the kubelet's client certificate and its key, in one file so that they always match.
	PathKubeletClient = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// The user for SSH, and the keys that may log in as this user.
const (
	User               = "gardener"
	PathAuthorizedKeys = "/home/gardener/.ssh/authorized_keys"
)

// Placeholders in the user data, which the machine controller replaces for each machine.
const (
	PlaceholderBootstrapToken = "<<BOOTSTRAP_TOKEN>>"
	PlaceholderMachineName    = "<<MACHINE_NAME>>"
)

// The Lease of gardener-node-agent, and the user as whom it renews it.
const (
	// LeasePrefix is followed by the name of the Node.
	LeasePrefix = "gardener-node-agent-"
	// AgentUserPrefix is followed by the name of the machine, which is that of the Node.
	AgentUserPrefix = constants.NodeAgentUserNamePrefix
)

// Names for the OperatingSystemConfigs in the shoot.
const (
	// SecretNamespace is the namespace of the Secrets with the OperatingSystemConfigs of the pools.
	SecretNamespace = "kube-system"
	// DataKeyOSC is the key of the OperatingSystemConfig in the Secret.
	DataKeyOSC = "osc.yaml"
	// AnnotationChecksumSecret on the Secret is the checksum of its content.
	AnnotationChecksumSecret = "checksum/data-script"
	// AnnotationChecksum on the Node is the checksum of the configuration that the node has applied.
	AnnotationChecksum = "checksum/cloud-config-data"
	// LabelKubernetesVersion on the Node is the Kubernetes version that the node has applied.
	LabelKubernetesVersion = "worker.gardener.cloud/kubernetes-version"
)
