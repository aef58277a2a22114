package node

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// AgentConfig is the configuration of gardener-node-agent. All of it is required.
type AgentConfig struct {
	// APIServer is the URL of the shoot's API server, CA its authority (PEM, several if it is being rotated).
	APIServer string `json:"apiServer"`
	CA        string `json:"ca"`
	// SecretName is the Secret in kube-system with the OperatingSystemConfig of the pool.
	SecretName string `json:"secretName"`
	// TokenFile is where the bootstrap token is; PathBootstrapToken if it is empty.
	TokenFile string `json:"tokenFile,omitempty"`
}

// KubeletConfig is the configuration of the kubelet. APIServer, CA and KubernetesVersion are required.
type KubeletConfig struct {
	APIServer string `json:"apiServer"`
	CA        string `json:"ca"`
	// ClientCA is the authority of the certificates that clients of the kubelet have (PEM, several if it is being rotated).
	// Without it, the kubelet has no API.
	ClientCA string `json:"clientCA,omitempty"`
	// KubernetesVersion is the shoot's or the pool's, as "1.36.3".
	KubernetesVersion string `json:"kubernetesVersion"`
	// Labels are those of the worker pool. Those that every kubelet gives its Node come by themselves.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are those of the worker pool.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints are those of the worker pool.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Region of the shoot. Zone is that of the pool if it has one only; where the machine's cloud knows better, that counts.
	Region string `json:"region,omitempty"`
	Zone   string `json:"zone,omitempty"`
	// InstanceType is the machine type of the pool.
	InstanceType string `json:"instanceType,omitempty"`
	// Architecture is amd64 if it is empty.
	Architecture string `json:"architecture,omitempty"`
	// OSImage is what the Node says, as "Garden Linux 1592.1".
	OSImage string `json:"osImage,omitempty"`
	// ContainerRuntimeVersion is what the Node says; a containerd if it is empty.
	ContainerRuntimeVersion string `json:"containerRuntimeVersion,omitempty"`
	// Capacity is what the machine type has (cpu, memory, ephemeral-storage, …). Allocatable is what is left of it for
	// pods; what it does not say is as much as there is.
	Capacity    corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// MaxPods is 110 if it is 0.
	MaxPods int64 `json:"maxPods,omitempty"`
}

// ParseAgentConfig reads the file of a node.
func ParseAgentConfig(data []byte) (AgentConfig, error) {
	var c AgentConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("reading %s: %w", PathAgentConfig, err)
	}
	if c.APIServer == "" || c.CA == "" || c.SecretName == "" {
		return c, errors.New(PathAgentConfig + " needs apiServer, ca and secretName")
	}
	c.TokenFile = cmp.Or(c.TokenFile, PathBootstrapToken)
	return c, nil
}

// ParseKubeletConfig reads the file of a node.
func ParseKubeletConfig(data []byte) (KubeletConfig, error) {
	var c KubeletConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("reading %s: %w", PathKubeletConfig, err)
	}
	if c.APIServer == "" || c.CA == "" || c.KubernetesVersion == "" {
		return c, errors.New(PathKubeletConfig + " needs apiServer, ca and kubernetesVersion")
	}
	return c, nil
}

// Checksum of the OperatingSystemConfig in a Secret: what the Node says once it has applied that.
func Checksum(osc []byte) string {
	sum := sha256.Sum256(osc)
	return hex.EncodeToString(sum[:])
}
