package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

// AgentConfig is the configuration of gardener-node-agent. All fields but Lease are required.
type AgentConfig struct {
	// APIServer is the URL of the shoot's API server, CA its certificate authority (PEM, several during a rotation).
	APIServer string `json:"apiServer"`
	CA        string `json:"ca"`
	// SecretName is the name of the Secret in kube-system with the OperatingSystemConfig of the pool.
	SecretName string `json:"secretName"`
	// Lease says that the agent renews a Lease of its own in kube-system, of which Gardener's gardenlet sees that it runs.
	Lease bool `json:"lease,omitempty"`
}

// KubeletConfig is the configuration of the kubelet. APIServer, CA and KubernetesVersion are required.
type KubeletConfig struct {
	APIServer string `json:"apiServer"`
	CA        string `json:"ca"`
	// ClientCA is the authority that signs the certificates of the kubelet's clients (PEM, several during a rotation).
	// Without it, the kubelet serves its API only on a host.Host with OnlyAPIServer.
	ClientCA string `json:"clientCA,omitempty"`
	// KubernetesVersion is the version of the shoot or the pool, such as "1.36.4".
	KubernetesVersion string `json:"kubernetesVersion"`
	// Labels are the labels of the worker pool. The kubelet adds those that every kubelet sets.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are the annotations of the worker pool.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints are the taints of the worker pool.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Region is that of the shoot, Zone that of the pool if it has only one. The machine's metadata takes precedence.
	Region string `json:"region,omitempty"`
	Zone   string `json:"zone,omitempty"`
	// InstanceType is the machine type of the pool.
	InstanceType string `json:"instanceType,omitempty"`
	// Architecture is amd64 if it is empty.
	Architecture string `json:"architecture,omitempty"`
	// OSImage is the OS image in the status of the Node, such as "Garden Linux 1592.1".
	OSImage string `json:"osImage,omitempty"`
	// Capacity contains the resources of the machine type (cpu, memory, ephemeral-storage, …); without it, they are those of the
	// machine's metadata. Reserved is the part of them that is not allocatable for pods.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	Reserved corev1.ResourceList `json:"reserved,omitempty"`
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

// Checksum returns the checksum of the OperatingSystemConfig in a Secret. A Node reports it once it has applied that.
func Checksum(osc []byte) string {
	sum := sha256.Sum256(osc)
	return hex.EncodeToString(sum[:])
}

// KubeconfigWithToken returns a kubeconfig with a token.
func KubeconfigWithToken(server string, ca []byte, token string) ([]byte, error) {
	return writeKubeconfig(server, ca, clientcmdv1.AuthInfo{Token: token})
}

// KubeconfigWithFile returns a kubeconfig that names a file with a certificate and its key.
func KubeconfigWithFile(server string, ca []byte, path string) ([]byte, error) {
	return writeKubeconfig(server, ca, clientcmdv1.AuthInfo{ClientCertificate: path, ClientKey: path})
}

func writeKubeconfig(server string, ca []byte, user clientcmdv1.AuthInfo) ([]byte, error) {
	data, err := yaml.Marshal(&clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "default",
		Clusters:  []clientcmdv1.NamedCluster{{Name: "default", Cluster: clientcmdv1.Cluster{Server: server, CertificateAuthorityData: ca}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: "default", AuthInfo: user}},
		Contexts:  []clientcmdv1.NamedContext{{Name: "default", Context: clientcmdv1.Context{Cluster: "default", AuthInfo: "default"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return data, nil
}

// TokenOfKubeconfig returns the token in a kubeconfig.
func TokenOfKubeconfig(data []byte) (string, error) {
	config := clientcmdv1.Config{}
	if err := plainyaml.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("reading a kubeconfig: %w", err)
	}
	if len(config.AuthInfos) == 0 || config.AuthInfos[0].AuthInfo.Token == "" {
		return "", errors.New("there is no token in the kubeconfig")
	}
	return config.AuthInfos[0].AuthInfo.Token, nil
}
