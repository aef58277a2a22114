package landscape

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

// States of a landscape and of what it consists of.
const (
	StateStarting = "Starting"
	StateReady    = "Ready"
	StateStopping = "Stopping"
	StateStopped  = "Stopped"
	StateFailed   = "Failed"
)

// Status is what a running landscape says of itself.
type Status struct {
	Run        `json:",inline"`
	Dir        string      `json:"dir"`
	State      string      `json:"state"`
	Kubeconfig string      `json:"kubeconfig"`
	Log        string      `json:"log,omitempty"`
	Clusters   []Cluster   `json:"clusters"`
	Components []Component `json:"components"`
	// Processes are the containers that run as processes of this machine.
	Processes []process.Process `json:"processes,omitempty"`
	Phases    []Event           `json:"phases"`
	// ReadyAfter is how long the start took.
	ReadyAfter time.Duration `json:"readyAfter,omitempty"`
	Memory     Memory        `json:"memory"`
	// DiskFree is how many bytes can still be written where the state directory is.
	DiskFree   uint64 `json:"diskFree"`
	Goroutines int    `json:"goroutines"`
}

// Cluster is one API server of the landscape.
type Cluster struct {
	Kind              string `json:"kind"`
	Name              string `json:"name"`
	URL               string `json:"url"`
	Port              int    `json:"port"`
	KubernetesVersion string `json:"kubernetesVersion"`
	State             string `json:"state"`
	Message           string `json:"message,omitempty"`
}

// Component is a part of the process.
type Component struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Forbidden is how many of its requests have been forbidden. There should be none.
	Forbidden int `json:"forbidden,omitempty"`
}

// Memory is in bytes.
type Memory struct {
	Resident uint64 `json:"resident"`
	LiveHeap uint64 `json:"liveHeap"`
}

// board keeps the status while the process runs.
type board struct {
	mu     sync.Mutex
	status Status
}

func (b *board) update(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.status)
}

func (b *board) component(name, state, message string) {
	b.update(func(s *Status) {
		c := s.component(name)
		c.State, c.Message = state, message
	})
}

// components are all components, as they are now.
func (b *board) components() []Component {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.status.Components)
}

// gone forgets a component that is no longer part of the landscape.
func (b *board) gone(name string) {
	b.update(func(s *Status) {
		s.Components = slices.DeleteFunc(s.Components, func(c Component) bool { return c.Name == name })
	})
}

// refused notes that a request of a component has been forbidden.
func (b *board) refused(name string) {
	b.update(func(s *Status) { s.component(name).Forbidden++ })
}

// component is the entry of that name.
func (s *Status) component(name string) *Component {
	for i := range s.Components {
		if s.Components[i].Name == name {
			return &s.Components[i]
		}
	}
	s.Components = append(s.Components, Component{Name: name})
	return &s.Components[len(s.Components)-1]
}

// snapshot is the status now. With collect, garbage is collected before, so that LiveHeap is what its name says.
func (b *board) snapshot(collect bool) Status {
	if collect {
		debug.FreeOSMemory()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	s.Clusters = append([]Cluster{}, s.Clusters...)
	s.Components = append([]Component{}, s.Components...)
	s.Phases = append([]Event{}, s.Phases...)
	s.Memory = Memory{Resident: residentMemory(&stats), LiveHeap: stats.HeapAlloc}
	s.Goroutines = runtime.NumGoroutine()
	var message string
	if s.DiskFree, message = diskMessage(s.Dir); message != "" {
		for i := range s.Components {
			if s.Components[i].Message == "" {
				s.Components[i].Message = message
			}
		}
	}
	return s
}
