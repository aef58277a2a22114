package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"strings"
	"testing"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const (
	secretName = "gardener-node-agent-p-abc"
	sshKey     = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBl6G6Vxm0h2mVY0X9WJr1a1s2xqkY1m8n0b3c4d5e6f"
)

// userData returns a script that does what the user data of a machine does: it writes files, and starts a unit.
func userData(unit, unitFile string, files map[string]string) string {
	files = maps.Clone(files)
	files[node.PathBootstrapToken], files[node.PathMachineName] = apitest.Token, "node-1"
	files["/etc/systemd/system/"+unit] = unitFile
	script := "#!/bin/bash\nset -e\nuseradd -m -s /bin/bash " + node.User + "\n"
	for file, content := range files {
		script += "mkdir -p " + path.Dir(file) + "\ncat << 'END_OF_FILE' > " + file + "\n" + content + "\nEND_OF_FILE\n"
	}
	return script + "systemctl daemon-reload\nsystemctl enable --now " + unit + "\n"
}

// A machine that boots with the user data of gardenlite's gardenlet becomes a node, and becomes one again after a
// restart.
func TestMachineBecomesANode(t *testing.T) {
	api := apitest.New(t, clock.RealClock{})
	config := node.AgentConfig{APIServer: api.URL, CA: string(api.CA), SecretName: secretName}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{node.PathAgentConfig: string(data)}
	becomesNode(t, api, config, userData(node.UnitNodeAgent, node.NodeAgentUnit(), files))
}

// So does one with the user data of Gardener's, which knows the files of Gardener's gardener-node-agent only.
func TestMachineOfGardenersGardenletBecomesANode(t *testing.T) {
	api := apitest.New(t, clock.RealClock{})
	config := node.AgentConfig{APIServer: api.URL, CA: string(api.CA), SecretName: secretName, Lease: true}
	unit := "[Service]\nExecStart=" + node.PathInitScript + "\nRestart=on-failure\n\n[Install]\nWantedBy=multi-user.target\n"
	const caFile = "/var/lib/gardener-node-agent/ca.crt"
	becomesNode(t, api, config, userData(node.UnitNodeInit, unit, map[string]string{
		node.PathInitScript: "#!/bin/sh\n", caFile: string(api.CA),
		"/var/lib/gardener-node-agent/config-v1.2.3.yaml": fmt.Sprintf(`{apiServer: {server: %q, caFile: %s},
controllers: {operatingSystemConfig: {secretName: %s, kubernetesVersion: 1.36.4}}}`, api.URL, caFile, secretName)}))
}

func becomesNode(t *testing.T, api *apitest.Server, config node.AgentConfig, userData string) {
	t.Helper()
	files, err := node.Files(config, node.KubeletConfig{APIServer: api.URL, CA: string(api.CA), KubernetesVersion: "1.36.4"}, []string{sshKey})
	if err != nil {
		t.Fatal(err)
	}
	osc, err := node.EncodeOSC(
		&extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{Files: files, Units: node.Units()}})
	if err != nil {
		t.Fatal(err)
	}
	api.Put(t, "/api/v1/namespaces/kube-system/secrets/"+secretName,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, Data: map[string][]byte{node.DataKeyOSC: osc}})
	dir := t.TempDir()
	boot := func(so func(*corev1.Node) bool) {
		t.Helper()
		m, err := machine.New(machine.Config{
			Dir: dir, Hostname: "node-1", Addresses: []netip.Addr{netip.MustParseAddr("10.250.0.7")}, UserData: []byte(userData),
			Programs: New(nil, nil), Log: testr.New(t),
			Metadata: machine.Metadata{ProviderID: "local:///z1/node-1", Zone: "z1", InstanceType: "small"},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		defer func() { stop(); <-ended; m.Close() }()
		testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
			n := &corev1.Node{}
			if api.Get(t, "/api/v1/nodes/node-1", n) && so(n) {
				return nil
			}
			return fmt.Errorf("the Node is %+v; cloud-init: %+v; journals %v %v", n, m.CloudInit(),
				m.Units().Journal(node.UnitNodeAgent, 20), m.Units().Journal(node.UnitKubelet, 20))
		})
		if keys, err := m.FS().ReadFile(node.PathAuthorizedKeys); err != nil || !strings.Contains(string(keys), sshKey) {
			t.Errorf("who may log in: %q, %v", keys, err)
		}
	}
	var first *corev1.Node
	boot(func(n *corev1.Node) bool {
		first = n
		return n.Annotations[node.AnnotationChecksum] == node.Checksum(osc)
	})
	if first.Spec.ProviderID != "local:///z1/node-1" || first.Labels[corev1.LabelTopologyZone] != "z1" ||
		first.Status.Addresses[0].Address != "10.250.0.7" {
		t.Errorf("the Node %+v, addresses %v", first.ObjectMeta, first.Status.Addresses)
	}
	boot(func(n *corev1.Node) bool { return n.Status.NodeInfo.BootID != first.Status.NodeInfo.BootID })
	if n := api.Requests("POST /apis/certificates.k8s.io/v1/certificatesigningrequests by bootstrap"); n != 1 {
		t.Errorf("it has bootstrapped %d times", n)
	}
}
