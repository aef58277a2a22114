package kubelet

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

// summary serves the resource usage of the node's processes. It does not contain simulated Pods.
func (k *Kubelet) summary(w http.ResponseWriter, _ *http.Request) {
	summary := stats.Summary{Node: stats.NodeStats{NodeName: k.host.Hostname}, Pods: []stats.PodStats{}}
	for _, pod := range k.processes.all() {
		object := pod.Object()
		summary.Pods = append(summary.Pods, stats.PodStats{
			PodRef:     stats.PodReference{Name: object.Name, Namespace: object.Namespace, UID: string(object.UID)},
			StartTime:  ptr.Deref(object.Status.StartTime, metav1.Time{}),
			Containers: containerStats(pod.Usage()),
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(summary) // the client is gone if it fails
}

func containerStats(used []process.Usage) []stats.ContainerStats {
	all := []stats.ContainerStats{}
	for _, u := range used {
		at := metav1.NewTime(u.At)
		all = append(all, stats.ContainerStats{
			Name: u.Container, CPU: &stats.CPUStats{Time: at, UsageNanoCores: &u.NanoCores},
			Memory: &stats.MemoryStats{Time: at, WorkingSetBytes: &u.Memory, RSSBytes: &u.Memory},
		})
	}
	return all
}
