package kubelet

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestStepOfReplacedPod checks that the processes of a Pod end that was replaced by one with the same name, and of which a
// step is due before its deletion is known.
func TestStepOfReplacedPod(t *testing.T) {
	program, dir := filepath.Join(t.TempDir(), "p"), t.TempDir()
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	images, err := process.OpenImages(filepath.Join(dir, "images"), []process.Image{{Reference: "example.com/p", Program: program}})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := process.Start(process.Config{
		Dir: filepath.Join(dir, "p"), Images: images, Clock: clock.RealClock{}, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Close() })
	api := apitest.New(t, clock.RealClock{})
	client, err := apiclient.New(apiclient.Credentials{Server: api.URL, CA: api.CA, Token: apitest.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	k := &Kubelet{processes: newProcesses(runner), firstPod: func() {}}
	r := &podRunner{
		kubelet: k, client: client, config: node.KubeletConfig{APIServer: api.URL, CA: string(api.CA)},
		host: host.Host{Hostname: "n", Clock: clock.RealClock{}}, addresses: map[netip.Addr]types.UID{},
		due: map[types.NamespacedName]time.Time{}, plays: map[types.NamespacedName]stagePlay{},
	}
	create := func(uid string) *corev1.Pod {
		p := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "default"},
			Spec: corev1.PodSpec{NodeName: "n", HostNetwork: true, RestartPolicy: corev1.RestartPolicyAlways,
				Containers: []corev1.Container{{Name: "c", Image: "example.com/p"}}},
		}
		p.UID = types.UID(uid)
		api.Put(t, "/api/v1/namespaces/default/pods/web-0", p)
		return p
	}
	old := create("old")
	r.sync(t.Context(), old)
	testutil.EventuallyTrue(t, "the process runs", func() bool { return len(runner.Processes()) == 1 })
	next := create("new")
	r.due[keyOf(old)] = time.Now()
	r.syncDue(t.Context())
	r.cleanUp(old)
	r.sync(t.Context(), next)
	testutil.EventuallyTrue(t, "only the process of the new Pod runs", func() bool {
		pods := k.processes.all()
		return len(runner.Processes()) == 1 && len(pods) == 1 && pods[0].UID() == "new"
	})
}
