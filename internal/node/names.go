package node

// Programs, by the path at which units name them.
const (
	PathNodeAgent = "/opt/bin/gardener-node-agent"
	PathKubelet   = "/opt/bin/kubelet"
)

// Units.
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
	// PathLastApplied is the OperatingSystemConfig that was applied last: what is not in the next one is removed.
	PathLastApplied = "/var/lib/gardener-node-agent/last-applied-osc.yaml"
)

// Files of the kubelet; the names are Gardener's and Kubernetes'.
const (
	PathKubeletConfig       = "/var/lib/kubelet/config/kubelet.json"
	PathKubeletCA           = "/var/lib/kubelet/ca.crt"
	PathKubeconfigBootstrap = "/var/lib/kubelet/kubeconfig-bootstrap"
	PathKubeconfig          = "/var/lib/kubelet/kubeconfig-real"
	// PathKubeletClient is the kubelet's client certificate and its key, in one file so that they always fit.
	PathKubeletClient = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// The user that people log in as.
const (
	User               = "gardener"
	PathAuthorizedKeys = "/home/gardener/.ssh/authorized_keys"
)

// What the machine controller replaces in the user data of each machine.
const (
	PlaceholderBootstrapToken = "<<BOOTSTRAP_TOKEN>>"
	PlaceholderMachineName    = "<<MACHINE_NAME>>"
)

// What there is of an OperatingSystemConfig in the shoot.
const (
	// SecretNamespace is where the Secret with the OperatingSystemConfig of a pool is.
	SecretNamespace = "kube-system"
	// DataKeyOSC is its key.
	DataKeyOSC = "osc.yaml"
	// AnnotationChecksumSecret is the checksum of what is in the Secret, at the Secret.
	AnnotationChecksumSecret = "checksum/data-script"
	// AnnotationChecksum is the checksum of what a node has applied, at the Node.
	AnnotationChecksum = "checksum/cloud-config-data"
	// LabelKubernetesVersion is the version that a node has applied, at the Node.
	LabelKubernetesVersion = "worker.gardener.cloud/kubernetes-version"
)
