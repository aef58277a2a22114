package machines

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxState is the maximum size of a decompressed state in bytes.
const maxState = 16 << 20

// State is the state of a Worker's machines in status.state, in Gardener's format.
type State struct {
	MachineDeployments map[string]*DeploymentState `json:"machineDeployments,omitempty"`
}

// DeploymentState is the state of a MachineDeployment.
type DeploymentState struct {
	Replicas    int32                        `json:"replicas,omitempty"`
	MachineSets []machinev1alpha1.MachineSet `json:"machineSets,omitempty"`
	Machines    []machinev1alpha1.Machine    `json:"machines,omitempty"`
}

// compressed is the stored form of a State: gzip in base64, because the names of labels repeat.
type compressed struct {
	State []byte `json:"state"`
}

// NewState returns the state of the machines in a namespace. It omits objects that are being deleted, and Machines without
// an instance in the cloud.
func NewState(c Cloud, deployments []machinev1alpha1.MachineDeployment, sets []machinev1alpha1.MachineSet,
	machines []machinev1alpha1.Machine) *State {
	state := &State{MachineDeployments: map[string]*DeploymentState{}}
	of := func(name string) *DeploymentState {
		if state.MachineDeployments[name] == nil {
			state.MachineDeployments[name] = &DeploymentState{}
		}
		return state.MachineDeployments[name]
	}
	for _, d := range deployments {
		if d.DeletionTimestamp == nil {
			of(d.Name).Replicas = d.Spec.Replicas
		}
	}
	for _, set := range sets {
		if set.DeletionTimestamp == nil {
			d := of(set.Labels[LabelDeployment])
			d.MachineSets = append(d.MachineSets, machinev1alpha1.MachineSet{ObjectMeta: essentialMeta(set.ObjectMeta), Spec: set.Spec})
		}
	}
	for _, m := range machines {
		if instance, ok := InstanceOf(c, m.Namespace, m.Name); ok && m.DeletionTimestamp == nil {
			kept := machinev1alpha1.Machine{ObjectMeta: essentialMeta(m.ObjectMeta), Spec: m.Spec}
			kept.Spec.ProviderID = instance.ProviderID
			d := of(m.Labels[LabelDeployment])
			d.Machines = append(d.Machines, kept)
		}
	}
	return state
}

func essentialMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, Labels: meta.Labels, Annotations: meta.Annotations}
}

// Add adds the objects of an earlier state that this one lacks, because a migration had removed them before it was
// interrupted. It omits Machines without an instance.
func (s *State) Add(earlier *State, c Cloud) {
	for name, before := range earlier.MachineDeployments {
		now := s.MachineDeployments[name]
		if now == nil {
			now = &DeploymentState{Replicas: before.Replicas}
			s.MachineDeployments[name] = now
		}
		now.MachineSets = union(now.MachineSets, before.MachineSets, func(set machinev1alpha1.MachineSet) string { return set.Name })
		alive := slices.DeleteFunc(slices.Clone(before.Machines), func(m machinev1alpha1.Machine) bool {
			_, ok := InstanceOf(c, m.Namespace, m.Name)
			return !ok
		})
		now.Machines = union(now.Machines, alive, func(m machinev1alpha1.Machine) string { return m.Name })
	}
}

func union[T any](now, before []T, name func(T) string) []T {
	byName := map[string]T{}
	for _, item := range append(slices.Clone(before), now...) {
		byName[name(item)] = item
	}
	result := make([]T, 0, len(byName))
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		result = append(result, byName[key])
	}
	return result
}

// Marshal encodes a state for a Worker's status.
func (s *State) Marshal() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing the state of machines: %w", err)
	}
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	_, err = zip.Write(text)
	if err := errors.Join(err, zip.Close()); err != nil {
		return nil, fmt.Errorf("compressing the state of machines: %w", err)
	}
	return json.Marshal(compressed{buffer.Bytes()})
}

// UnmarshalState decodes a state from a Worker's status. The state is empty if there is none.
func UnmarshalState(raw []byte) (*State, error) {
	state, outer := &State{}, compressed{}
	if len(raw) == 0 {
		return state, nil
	}
	if err := json.Unmarshal(raw, &outer); err != nil {
		return nil, fmt.Errorf("reading the state of machines: %w", err)
	}
	if len(outer.State) == 0 {
		return state, nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(outer.State))
	if err != nil {
		return nil, fmt.Errorf("decompressing the state of machines: %w", err)
	}
	defer zip.Close()
	text, err := io.ReadAll(io.LimitReader(zip, maxState))
	if err != nil {
		return nil, fmt.Errorf("decompressing the state of machines: %w", err)
	}
	if err := json.Unmarshal(text, state); err != nil {
		return nil, fmt.Errorf("reading the state of machines: %w", err)
	}
	return state, nil
}
