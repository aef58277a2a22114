package kubecontrollers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func TestPodGC(t *testing.T) {
	now := time.Now()
	pod := func(name, node string, change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"}, Spec: corev1.PodSpec{NodeName: node}}
		if change != nil {
			change(pod)
		}
		return pod
	}
	deleted := func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	objects := []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "there"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "unseen"}},
		pod("runs", "there", nil), pod("ends", "there", deleted), pod("waits", "", nil), pod("on-unseen", "unseen", nil),
		pod("orphan", "gone", nil), pod("ended-orphan", "gone", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }),
		pod("never-ran", "", deleted),
	}
	pods, nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	for _, obj := range objects {
		if p, ok := obj.(*corev1.Pod); ok {
			_ = pods.Add(p)
		}
	}
	_ = nodes.Add(objects[0])
	client := fake.NewClientset(objects...)
	gc := &podGC{client: client, pods: corelisters.NewPodLister(pods), nodes: corelisters.NewNodeLister(nodes),
		missing: map[string]time.Time{}}
	left := func() (names []string) {
		list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return names
	}
	for _, step := range []struct {
		at   time.Duration
		left []string
	}{
		{0, []string{"ended-orphan", "ends", "on-unseen", "orphan", "runs", "waits"}},
		{podGCQuarantine - time.Second, []string{"ended-orphan", "ends", "on-unseen", "orphan", "runs", "waits"}},
		{podGCQuarantine, []string{"ends", "on-unseen", "runs", "waits"}},
	} {
		gc.collect(t.Context(), now.Add(step.at))
		if got := left(); !slices.Equal(got, step.left) {
			t.Errorf("after %s there are %v, want %v", step.at, got, step.left)
		}
	}
	var patched []string
	for _, action := range client.Actions() {
		if action.GetVerb() == "patch" {
			patched = append(patched, fmt.Sprint(action.GetSubresource()))
		}
	}
	if !slices.Equal(patched, []string{"status"}) { // only the status of the orphan that had not ended
		t.Errorf("patched %v", patched)
	}
}

func TestPodGCKeepsTheYoungest(t *testing.T) {
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	client := fake.NewClientset()
	for i := range podGCTerminated + 2 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i), CreationTimestamp: metav1.Unix(int64(i), 0)}}
		pod.Status.Phase = corev1.PodFailed
		_ = pods.Add(pod)
	}
	gc := &podGC{client: client, pods: corelisters.NewPodLister(pods),
		nodes: corelisters.NewNodeLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil))}
	gc.collect(t.Context(), time.Now())
	var deleted []string
	for _, action := range client.Actions() {
		if action, ok := action.(interface{ GetName() string }); ok {
			deleted = append(deleted, action.GetName())
		}
	}
	if !slices.Equal(deleted, []string{"0", "1"}) {
		t.Errorf("deleted %v", deleted)
	}
}
