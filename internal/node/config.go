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

// AgentConfig is the configuration of gardener-node-agent. All fields except TokenFile are required.
type AgentConfig struct {
	// APIServer is the URL of the shoot's API server, CA its certificate authority (PEM, several during a rotation).
	APIServer string `json:"apiServer"`
	CA        string `json:"ca"`
	// SecretName is the name of the Secret in kube-system with the OperatingSystemConfig of the pool.
	SecretName string `json:"secretName"`
	// TokenFile is the path of the bootstrap token; PathBootstrapToken if it is empty.
	TokenFile string `json:"tokenFile,omitempty"`
}

// KubeletConfig is the configuration of the kubelet. APIServer, CA and KubernetesVersion are required.
type KubeletConfig struct {
	APIServer string `json:"apiServer"`
	CA        string `json:"ca"`
	// ClientCA is the authority that signs the certificates of the kubelet's clients (PEM, several during a rotation).
	// Without it, the kubelet serves no API, unless its host is reached only by the API server
	// (host.Host.OnlyAPIServer).
	ClientCA string `json:"clientCA,omitempty"`
	// KubernetesVersion is the version of the shoot or the pool, such as "1.36.3".
	KubernetesVersion string `json:"kubernetesVersion"`
	// Labels are the labels of the worker pool. The kubelet adds those that every kubelet sets.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are the annotations of the worker pool.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints are the taints of the worker pool.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Region is the region of the shoot, Zone the zone of the pool if it has only one. The metadata of the machine
	// takes precedence.
	Region string `json:"region,omitempty"`
	Zone   string `json:"zone,omitempty"`
	// InstanceType is the machine type of the pool.
	InstanceType string `json:"instanceType,omitempty"`
	// Architecture is amd64 if it is empty.
	Architecture string `json:"architecture,omitempty"`
	// OSImage is the OS image in the status of the Node, such as "Garden Linux 1592.1".
	OSImage string `json:"osImage,omitempty"`
	// Capacity contains the resources of the machine type (cpu, memory, ephemeral-storage, …). Allocatable contains the
	// part of them that is available for pods; resources that are missing there are allocatable as a whole.
	Capacity    corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// MaxPods is 110 if it is 0.
	MaxPods int64 `json:"maxPods,omitempty"`
}

// ParseAgentConfig parses the content of PathAgentConfig.
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

// ParseKubeletConfig parses the content of PathKubeletConfig.
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

// Checksum returns the checksum of the OperatingSystemConfig in a Secret. A Node reports it once it has applied the
// configuration.
func Checksum(osc []byte) string {
	sum := sha256.Sum256(osc)
	return hex.EncodeToString(sum[:])
}
