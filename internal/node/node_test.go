package node

import (
	"reflect"
	"testing"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

var agent = AgentConfig{APIServer: "https://127.0.0.1:1", CA: "-----BEGIN CERTIFICATE-----\n'$(reboot)`\n", SecretName: "s"}

func TestFilesAreTheSame(t *testing.T) {
	kubelet := KubeletConfig{APIServer: "https://127.0.0.1:1", CA: "ca", KubernetesVersion: "1.36.4",
		Labels: map[string]string{"a": "1", "b": "2", "c": "3"}}
	first, err := Files(agent, kubelet, []string{"k"})
	second, err2 := Files(agent, kubelet, []string{"k"})
	if err != nil || err2 != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("%v, %v, %v and %v", err, err2, first, second)
	}
	other, err := Files(agent, kubelet, []string{"l"})
	if err != nil || reflect.DeepEqual(first, other) {
		t.Errorf("another key makes no other files (%v)", err)
	}
}

func TestEncodeOSC(t *testing.T) {
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	osc.Spec.Units, osc.Status.ExtensionUnits = []extensionsv1alpha1.Unit{{Name: "a"}}, []extensionsv1alpha1.Unit{{Name: "b"}}
	osc.Status.ExtensionFiles = []extensionsv1alpha1.File{file("/x", 0o600, []byte("x"))}
	data, err := EncodeOSC(osc)
	if err != nil {
		t.Fatal(err)
	}
	got := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := yaml.UnmarshalStrict(data, got); err != nil || got.Kind != "OperatingSystemConfig" ||
		len(got.Spec.Units) != 2 || len(got.Spec.Files) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(osc.Spec.Units) != 1 {
		t.Error("what was given has changed")
	}
}

// No role of nodes allows access to all Secrets.
func TestRBAC(t *testing.T) {
	for _, names := range [][]string{nil, {"a", "b"}} {
		roles := 0
		for _, obj := range RBAC(names...) {
			role, ok := obj.(*rbacv1.Role)
			if !ok {
				continue
			}
			roles++
			for _, rule := range role.Rules {
				if !reflect.DeepEqual(rule.ResourceNames, names) || len(names) == 0 {
					t.Errorf("a rule for %v", rule.ResourceNames)
				}
			}
		}
		if (roles > 0) != (len(names) > 0) {
			t.Errorf("%d roles for %v", roles, names)
		}
	}
}

func TestParse(t *testing.T) {
	for _, broken := range []string{"", "{}", `{"apiServer": "x"}`} {
		if _, err := ParseAgentConfig([]byte(broken)); err == nil {
			t.Errorf("gardener-node-agent takes %q", broken)
		}
		if _, err := ParseKubeletConfig([]byte(broken)); err == nil {
			t.Errorf("the kubelet takes %q", broken)
		}
	}
}
