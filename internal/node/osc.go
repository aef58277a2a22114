package node

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Files returns the files of an OperatingSystemConfig with purpose reconcile: the configuration of both programs, the
// CA of the API server, and the authorized keys.
func Files(agent AgentConfig, kubelet KubeletConfig, authorizedKeys []string) ([]extensionsv1alpha1.File, error) {
	agentConfig, err := json.Marshal(agent)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of gardener-node-agent: %w", err)
	}
	kubeletConfig, err := json.Marshal(kubelet)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of the kubelet: %w", err)
	}
	return []extensionsv1alpha1.File{
		file(PathAgentConfig, 0o600, agentConfig),
		file(PathKubeletCA, 0o644, []byte(kubelet.CA)),
		file(PathKubeletConfig, 0o600, kubeletConfig),
		file(PathAuthorizedKeys, 0o600, []byte(lines(authorizedKeys))),
	}, nil
}

// Units returns the units of both programs for an OperatingSystemConfig with purpose reconcile.
func Units() []extensionsv1alpha1.Unit {
	return []extensionsv1alpha1.Unit{
		{
			Name: UnitKubelet, Enable: ptr.To(true), Command: ptr.To(extensionsv1alpha1.CommandStart),
			Content: ptr.To(unit("kubelet", PathKubelet)), FilePaths: []string{PathKubeletConfig, PathKubeletCA},
		},
		{
			Name: UnitNodeAgent, Enable: ptr.To(true), Command: ptr.To(extensionsv1alpha1.CommandStart),
			Content: ptr.To(unit("gardener-node-agent", PathNodeAgent)), FilePaths: []string{PathAgentConfig},
		},
	}
}

// EncodeOSC returns the value of DataKeyOSC in the Secret of a pool: the files and units of the given
// OperatingSystemConfig, followed by those of extensions (in its status).
func EncodeOSC(osc *extensionsv1alpha1.OperatingSystemConfig) ([]byte, error) {
	slim := &extensionsv1alpha1.OperatingSystemConfig{}
	slim.SetGroupVersionKind(extensionsv1alpha1.SchemeGroupVersion.WithKind(extensionsv1alpha1.OperatingSystemConfigResource))
	slim.Spec = *osc.Spec.DeepCopy()
	slim.Spec.Files = append(slim.Spec.Files, osc.Status.ExtensionFiles...)
	slim.Spec.Units = append(slim.Spec.Units, osc.Status.ExtensionUnits...)
	data, err := yaml.Marshal(slim)
	if err != nil {
		return nil, fmt.Errorf("writing OperatingSystemConfig %s/%s for its nodes: %w", osc.Namespace, osc.Name, err)
	}
	return data, nil
}

// unit returns the unit file of a service that runs a program as long as the machine runs.
func unit(description, path string) string {
	return "[Unit]\nDescription=" + description + "\nAfter=network-online.target\n\n" +
		"[Service]\nExecStart=" + path + "\nRestart=always\nRestartSec=5\n\n" +
		"[Install]\nWantedBy=multi-user.target\n"
}

func file(path string, mode uint32, content []byte) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Permissions: ptr.To(mode), Content: extensionsv1alpha1.FileContent{
		Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: base64.StdEncoding.EncodeToString(content)},
	}}
}

func lines(all []string) string {
	var b strings.Builder
	for _, line := range all {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
