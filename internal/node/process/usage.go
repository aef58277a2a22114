package process

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// cpuWindow is the time over which the CPU usage of a process is averaged.
const cpuWindow = 10 * time.Second

// usage is the usage of a process and its children.
type usage struct {
	memory int64 // in bytes
	cpu    time.Duration
}

// cpuRate computes how many CPUs a process uses: in the last whole window, or since its start while there is none.
type cpuRate struct {
	begin time.Time
	used  time.Duration // at the beginning of the window
	whole bool
	rate  float64
}

// sample updates the rate with the CPU time that the process has used until now.
func (r *cpuRate) sample(now time.Time, used time.Duration) {
	took := now.Sub(r.begin)
	if took <= 0 || r.whole && took < cpuWindow {
		return
	}
	r.rate = max(0, float64(used-r.used)/float64(took)) // the sum decreases when one of the processes ends
	if took >= cpuWindow {
		r.begin, r.used, r.whole = now, used, true
	}
}

// Usage returns the usage of the Pod's processes that have been measured.
func (p *Pod) Usage() []stats.ContainerStats {
	containers := p.containers()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []stats.ContainerStats{}
	for _, c := range containers {
		if c.child == nil || c.measuredAt.IsZero() {
			continue
		}
		at, nanoCores, memory := metav1.NewTime(c.measuredAt), uint64(c.cpu.rate*float64(time.Second)), uint64(c.memory)
		all = append(all, stats.ContainerStats{
			Name: c.spec.Name, CPU: &stats.CPUStats{Time: at, UsageNanoCores: &nanoCores},
			Memory: &stats.MemoryStats{Time: at, WorkingSetBytes: &memory, RSSBytes: &memory},
		})
	}
	return all
}
