package node

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	nodeagentv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

const (
	// PathInitScript is the script that downloads and starts gardener-node-agent on a machine of Gardener's gardenlet.
	PathInitScript = nodeagentv1alpha1.BaseDir + "/init.sh"
	// UnitNodeInit is the unit that runs it.
	UnitNodeInit = nodeagentv1alpha1.InitUnitName

	// gardenersKubelet is the KubeletConfiguration that Gardener's gardenlet writes.
	gardenersKubelet = "/var/lib/kubelet/config/kubelet"
)

// NodeAgentUnit is the unit of gardener-node-agent.
func NodeAgentUnit() string { return unit("gardener-node-agent", PathNodeAgent) }

// Translate adds the configuration of both programs to an OperatingSystemConfig of Gardener's gardenlet, which has them in the
// formats of gardener-node-agent and of the kubelet. It leaves that of gardenlite's own gardenlet alone.
func Translate(osc *extensionsv1alpha1.OperatingSystemConfig) error {
	spec := &osc.Spec
	i := slices.IndexFunc(spec.Files, func(f extensionsv1alpha1.File) bool {
		folder, name := path.Split(f.Path)
		return folder == nodeagentv1alpha1.BaseDir+"/" && strings.HasPrefix(name, "config-") && path.Ext(name) == ".yaml"
	})
	if i < 0 {
		return nil
	}
	var config nodeagentv1alpha1.NodeAgentConfiguration
	if err := unmarshal(spec.Files[i], &config); err != nil {
		return err
	}
	ca, err := contentAt(spec.Files, config.APIServer.CAFile)
	if err != nil {
		return err
	}
	agent := AgentConfig{
		APIServer: config.APIServer.Server, CA: string(ca), SecretName: config.Controllers.OperatingSystemConfig.SecretName, Lease: true,
	}
	data, err := json.Marshal(agent)
	if err != nil {
		return err
	}
	added := []extensionsv1alpha1.File{file(PathAgentConfig, 0o600, data)}
	if k := slices.IndexFunc(spec.Units, func(u extensionsv1alpha1.Unit) bool { return u.Name == UnitKubelet }); k >= 0 {
		version := config.Controllers.OperatingSystemConfig.KubernetesVersion
		if version == nil {
			return fmt.Errorf("%s has no controllers.operatingSystemConfig.kubernetesVersion", spec.Files[i].Path)
		}
		kubelet, err := translateKubelet(spec.Files, &spec.Units[k], agent)
		if err != nil {
			return err
		}
		kubelet.KubernetesVersion = version.String()
		if data, err = json.Marshal(kubelet); err != nil {
			return err
		}
		added = append(added, file(PathKubeletConfig, 0o600, data))
		spec.Units[k].FilePaths = append(slices.Clone(spec.Units[k].FilePaths), PathKubeletConfig)
	}
	spec.Files = append(slices.Clone(spec.Files), added...)
	return nil
}

// translateKubelet returns what the kubelet needs of a KubeletConfiguration and of the flags in its unit.
func translateKubelet(files []extensionsv1alpha1.File, unit *extensionsv1alpha1.Unit, agent AgentConfig) (*KubeletConfig, error) {
	i := slices.IndexFunc(files, func(f extensionsv1alpha1.File) bool { return f.Path == gardenersKubelet })
	if i < 0 {
		return nil, errors.New(gardenersKubelet + " is missing")
	}
	var config struct {
		Authentication struct {
			X509 struct {
				ClientCAFile string `json:"clientCAFile"`
			} `json:"x509"`
		} `json:"authentication"`
		MaxPods            int64               `json:"maxPods"`
		RegisterWithTaints []corev1.Taint      `json:"registerWithTaints"`
		KubeReserved       corev1.ResourceList `json:"kubeReserved"`
		SystemReserved     corev1.ResourceList `json:"systemReserved"`
	}
	if err := unmarshal(files[i], &config); err != nil {
		return nil, err
	}
	clientCA, err := contentAt(files, config.Authentication.X509.ClientCAFile)
	if err != nil {
		return nil, err
	}
	reserved := corev1.ResourceList{}
	for _, part := range []corev1.ResourceList{config.KubeReserved, config.SystemReserved} {
		for name, quantity := range part {
			sum := reserved[name]
			sum.Add(quantity)
			reserved[name] = sum
		}
	}
	kubelet := &KubeletConfig{APIServer: agent.APIServer, CA: agent.CA, ClientCA: string(clientCA), MaxPods: config.MaxPods,
		Taints: config.RegisterWithTaints, Reserved: reserved, Labels: map[string]string{}}
	if unit.Content != nil {
		for word := range strings.FieldsSeq(*unit.Content) {
			if labels, ok := strings.CutPrefix(word, "--node-labels="); ok {
				for label := range strings.SplitSeq(labels, ",") {
					name, value, _ := strings.Cut(label, "=")
					kubelet.Labels[name] = value
				}
			}
		}
	}
	return kubelet, nil
}

func contentAt(files []extensionsv1alpha1.File, at string) ([]byte, error) {
	for _, file := range files {
		if file.Path == at {
			return Content(file)
		}
	}
	return nil, fmt.Errorf("%s is missing", at)
}

func unmarshal(file extensionsv1alpha1.File, into any) error {
	data, err := Content(file)
	if err == nil {
		err = plainyaml.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file.Path, err)
	}
	return nil
}

// Content returns the content of a file that is in the OperatingSystemConfig itself.
func Content(file extensionsv1alpha1.File) ([]byte, error) {
	inline := file.Content.Inline
	if inline == nil {
		return nil, fmt.Errorf("the file %s has no content of its own", file.Path)
	}
	switch inline.Encoding {
	case "", "plain":
		return []byte(inline.Data), nil
	case "b64", "base64":
		data, err := base64.StdEncoding.DecodeString(inline.Data)
		if err != nil {
			return nil, fmt.Errorf("the file %s is not in base64: %w", file.Path, err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("the file %s has the encoding %q, which is none of plain, b64", file.Path, inline.Encoding)
}
