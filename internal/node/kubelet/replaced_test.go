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
	r, api := newPodRunner(t, dir, images)
	k, runner := r.kubelet, r.kubelet.processes.runner
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

// newPodRunner returns one of a kubelet that runs mapped images, and its API server.
func newPodRunner(t *testing.T, dir string, images *process.Images) (*podRunner, *apitest.Server) {
	t.Helper()
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
	h := host.Host{Hostname: "n", Clock: clock.RealClock{}}
	k := &Kubelet{processes: newProcesses(runner), firstPod: func() {}, host: h}
	return &podRunner{
		kubelet: k, client: client, config: node.KubeletConfig{APIServer: api.URL, CA: string(api.CA)},
		host: h, addresses: map[netip.Addr]types.UID{},
		due: map[types.NamespacedName]time.Time{}, plays: map[types.NamespacedName]stagePlay{},
	}, api
}

// TestMappedLater checks that a simulated Pod whose image is mapped to a program is deleted if it has a controller, which makes
// one that runs, and stays otherwise.
func TestMappedLater(t *testing.T) {
	program, dir := filepath.Join(t.TempDir(), "p"), t.TempDir()
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	images, err := process.OpenImages(filepath.Join(dir, "images"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, api := newPodRunner(t, dir, images)
	create := func(name string, owners ...metav1.OwnerReference) *corev1.Pod {
		p := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default",
				UID: types.UID(name), OwnerReferences: owners},
			Spec: corev1.PodSpec{NodeName: "n", HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "example.com/p"}}},
		}
		api.Put(t, "/api/v1/namespaces/default/pods/"+name, p)
		return p
	}
	pods := []*corev1.Pod{create("bare"), create("owned", metav1.OwnerReference{Kind: "ReplicaSet", Name: "r", Controller: new(true)})}
	changed := r.kubelet.processes.imagesChanged()
	deleted := func(want int, when string) {
		t.Helper()
		for i, pod := range pods {
			r.sync(t.Context(), pod)
			if n := api.Requests("DELETE /api/v1/namespaces/default/pods/" + pod.Name + " by bootstrap"); n != i*want {
				t.Errorf("%s: %s was deleted %d times", when, pod.Name, n)
			}
		}
	}
	deleted(0, "before")
	if err := images.Set(process.Image{Reference: "example.com/p", Program: program}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("the kubelet is not told of the new mapping")
	}
	deleted(1, "after")
}
