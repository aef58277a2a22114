package control

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// The states of a landscape, and of its clusters and components.
const (
	StateStarting = "Starting"
	StateReady    = "Ready"
	StateStopping = "Stopping"
	StateStopped  = "Stopped"
	StateFailed   = "Failed"
)

// Status is the status of a running landscape.
type Status struct {
	statedir.Run `json:",inline"`
	Dir          string      `json:"dir"`
	State        string      `json:"state"`
	Kubeconfig   string      `json:"kubeconfig"`
	Log          string      `json:"log,omitempty"`
	Clusters     []Cluster   `json:"clusters"`
	Components   []Component `json:"components"`
	// Processes are the containers that run as processes of this machine.
	Processes []process.Process `json:"processes,omitempty"`
	Phases    []Event           `json:"phases"`
	// ReadyAfter is how long the start took.
	ReadyAfter time.Duration `json:"readyAfter,omitempty"`
	Memory     Memory        `json:"memory"`
	// DiskFree is how many bytes can still be written to the disk of the state directory.
	DiskFree   uint64 `json:"diskFree"`
	Goroutines int    `json:"goroutines"`
}

// Datastore is the name of the component that a status has while the datastore does not answer.
const Datastore = "datastore"

// DatastoreFailed reports whether the datastore does not answer.
func (s *Status) DatastoreFailed() bool {
	return slices.ContainsFunc(s.Components, func(c Component) bool { return c.Name == Datastore })
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
	// Forbidden is how many of the component's requests have been forbidden. There should be none.
	Forbidden int `json:"forbidden,omitempty"`
}

// Event is a step of the start.
type Event struct {
	// Name of the step, for people.
	Name string `json:"name"`
	// Done says that the step has ended. It always has.
	Done bool `json:"done,omitempty"`
	// Took is how long it took.
	Took time.Duration `json:"took,omitempty"`
}

// Memory is the memory of the process, in bytes.
type Memory struct {
	Resident uint64 `json:"resident"`
	LiveHeap uint64 `json:"liveHeap"`
}

// Store keeps the status while the process runs.
type Store struct {
	// OnEvent, if set, is called for every step of the start, from one goroutine at a time.
	OnEvent func(Event)

	mu     sync.Mutex
	status Status
	// events is held while OnEvent is called, because clusters start in parallel.
	events sync.Mutex
}

// Update changes the status.
func (b *Store) Update(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.status)
}

// RecordStep records a completed step of the start.
func (b *Store) RecordStep(name string, took time.Duration) {
	event := Event{Name: name, Done: true, Took: took}
	b.Update(func(s *Status) { s.Phases = append(s.Phases, event) })
	if b.OnEvent == nil {
		return
	}
	b.events.Lock()
	defer b.events.Unlock()
	b.OnEvent(event)
}

// SetComponentState records the state of a component.
func (b *Store) SetComponentState(name, state, message string) {
	b.Update(func(s *Status) {
		c := s.component(name)
		c.State, c.Message = state, message
	})
}

// State returns the current state of the landscape.
func (b *Store) State() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status.State
}

// Components returns the current state of all components.
func (b *Store) Components() []Component {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.status.Components)
}

// Remove removes a component that is no longer part of the landscape.
func (b *Store) Remove(name string) {
	b.Update(func(s *Status) {
		s.Components = slices.DeleteFunc(s.Components, func(c Component) bool { return c.Name == name })
	})
}

// CountForbidden counts a forbidden request of a component.
func (b *Store) CountForbidden(name string) {
	b.Update(func(s *Status) { s.component(name).Forbidden++ })
}

// component returns the entry of that name, which is added if it is missing.
func (s *Status) component(name string) *Component {
	for i := range s.Components {
		if s.Components[i].Name == name {
			return &s.Components[i]
		}
	}
	s.Components = append(s.Components, Component{Name: name})
	return &s.Components[len(s.Components)-1]
}

// Snapshot returns the current status. With collect, garbage is collected before, so that LiveHeap has no garbage in
// it.
func (b *Store) Snapshot(collect bool) Status {
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
	if s.DiskFree, message = statedir.DiskMessage(s.Dir); message != "" {
		for i := range s.Components {
			if s.Components[i].Message == "" {
				s.Components[i].Message = message
			}
		}
	}
	return s
}
