package node

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func gardeners(remove string) *extensionsv1alpha1.OperatingSystemConfig {
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	for path, content := range map[string]string{
		"/var/lib/gardener-node-agent/config-v1.2.3.yaml": `apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "https://api.one.example.com", caFile: /ca}
controllers: {operatingSystemConfig: {secretName: gardener-node-agent-a, kubernetesVersion: 1.36.0}}
`,
		"/ca": "trusted", "/clients": "clients",
		"/var/lib/kubelet/config/kubelet": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: /clients}}
maxPods: 20
kubeReserved: {cpu: 80m, memory: 1Gi, pid: 20k}
systemReserved: {cpu: 20m, ephemeral-storage: 2Gi}
registerWithTaints: [{key: a, effect: NoSchedule}]
`,
	} {
		if path != remove {
			osc.Spec.Files = append(osc.Spec.Files, extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{
				Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: base64.StdEncoding.EncodeToString([]byte(content))}}})
		}
	}
	osc.Spec.Units = []extensionsv1alpha1.Unit{{Name: UnitKubelet, FilePaths: []string{"/clients"},
		Content: ptr.To("[Service]\nExecStart=/opt/bin/kubelet \\\n    --node-labels=pool=a,x/y=z \\\n    --v=2 $KUBELET_EXTRA_ARGS")}}
	return osc
}

func TestTranslate(t *testing.T) {
	osc := gardeners("")
	if err := Translate(osc); err != nil {
		t.Fatal(err)
	}
	read := func(path string, into any) {
		t.Helper()
		data, err := contentAt(osc.Spec.Files, path)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	agent, kubelet := AgentConfig{}, KubeletConfig{}
	read(PathAgentConfig, &agent)
	read(PathKubeletConfig, &kubelet)
	if want := (AgentConfig{APIServer: "https://api.one.example.com", CA: "trusted", SecretName: "gardener-node-agent-a", Lease: true}); agent != want {
		t.Errorf("gardener-node-agent: %+v", agent)
	}
	if kubelet.APIServer != agent.APIServer || kubelet.CA != "trusted" || kubelet.ClientCA != "clients" || kubelet.KubernetesVersion != "1.36.0" ||
		kubelet.MaxPods != 20 || kubelet.Labels["pool"] != "a" || kubelet.Labels["x/y"] != "z" || len(kubelet.Labels) != 2 ||
		len(kubelet.Taints) != 1 || kubelet.Taints[0].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("kubelet: %+v", kubelet)
	}
	if sum := kubelet.Reserved; sum.Cpu().String() != "100m" || sum.Memory().String() != "1Gi" || sum.StorageEphemeral().String() != "2Gi" {
		t.Errorf("reserved: %v", kubelet.Reserved)
	}
	if paths := osc.Spec.Units[0].FilePaths; len(paths) != 2 || paths[1] != PathKubeletConfig {
		t.Errorf("the kubelet does not start again with another configuration: %v", paths)
	}
}

// TestTranslatesWhatIsThere: user data has no kubelet, and the OperatingSystemConfigs of gardenlite's gardenlet need nothing.
func TestTranslatesWhatIsThere(t *testing.T) {
	userData := gardeners("")
	userData.Spec.Units = nil
	own := gardeners("/var/lib/gardener-node-agent/config-v1.2.3.yaml")
	for osc, added := range map[*extensionsv1alpha1.OperatingSystemConfig]int{userData: 1, own: 0} {
		before := len(osc.Spec.Files)
		if err := Translate(osc); err != nil || len(osc.Spec.Files) != before+added {
			t.Errorf("%d files were %d: %v", len(osc.Spec.Files), before, err)
		}
	}
	unreserved := gardeners("")
	for i := range unreserved.Spec.Files {
		if file := &unreserved.Spec.Files[i]; file.Path == gardenersKubelet {
			file.Content.Inline.Data = base64.StdEncoding.EncodeToString([]byte(`authentication: {x509: {clientCAFile: /clients}}
systemReserved: {cpu: 20m}`))
		}
	}
	if err := Translate(unreserved); err != nil {
		t.Errorf("without kubeReserved: %v", err)
	}
	for _, missing := range []string{"/ca", "/clients", "/var/lib/kubelet/config/kubelet"} {
		if err := Translate(gardeners(missing)); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func TestContent(t *testing.T) {
	for encoding, test := range map[string]struct{ data, want string }{
		"": {"a b", "a b"}, "plain": {"a", "a"}, "b64": {"YQ==", "a"}, "gzip": {"", "!"},
	} {
		file := extensionsv1alpha1.File{Content: extensionsv1alpha1.FileContent{
			Inline: &extensionsv1alpha1.FileContentInline{Encoding: encoding, Data: test.data}}}
		got, err := Content(file)
		if (err != nil) != (test.want == "!") || err == nil && string(got) != test.want {
			t.Errorf("%q: %q, %v", encoding, got, err)
		}
	}
}
