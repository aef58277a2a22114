package shootclient

import (
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"
)

// Summary describes a Shoot in one line.
type Summary struct {
	Project           string `json:"project"`
	Name              string `json:"name"`
	Namespace         string `json:"namespace"`
	Seed              string `json:"seed,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// State is the operation in progress or its result: "Create Processing (40%)", "Ready", "Hibernated",
	// or "Unhealthy" if a condition is False.
	State string `json:"state"`
	// Ready says that the Shoot is as specified, and no condition is False.
	Ready bool `json:"ready"`
	// Message says what is in progress, or wrong.
	Message string `json:"message,omitempty"`
	// MinNodes and MaxNodes are the smallest and the largest number of nodes of the Shoot; 0 if it is hibernated.
	MinNodes   int32     `json:"minNodes"`
	MaxNodes   int32     `json:"maxNodes"`
	Hibernated bool      `json:"hibernated,omitempty"`
	Purpose    string    `json:"purpose,omitempty"`
	ID         string    `json:"technicalID,omitempty"`
	Address    string    `json:"address,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
}

// Summarize returns the summary of a Shoot in a project.
func Summarize(shoot *corev1beta1.Shoot, project string) Summary {
	s := Summary{
		Project: project, Name: shoot.Name, Namespace: shoot.Namespace, Seed: ptr.Deref(shoot.Spec.SeedName, ""),
		KubernetesVersion: shoot.Spec.Kubernetes.Version, ID: shoot.Status.TechnicalID, CreatedAt: shoot.CreationTimestamp.Time,
		Hibernated: shoot.Status.IsHibernated, Purpose: string(ptr.Deref(shoot.Spec.Purpose, "")),
	}
	if !s.Hibernated {
		for _, worker := range shoot.Spec.Provider.Workers {
			s.MinNodes += worker.Minimum
			s.MaxNodes += worker.Maximum
		}
	}
	if addresses := shoot.Status.AdvertisedAddresses; len(addresses) > 0 {
		s.Address = addresses[0].URL
	}
	p := ProgressOf(shoot)
	s.State, s.Message, s.Ready = p.String(), p.Description, p.Done
	if p.Done {
		s.State, s.Message = "Ready", ""
		if s.Hibernated {
			s.State = "Hibernated"
		}
		for _, condition := range shoot.Status.Conditions {
			if condition.Status == corev1beta1.ConditionFalse {
				s.State, s.Ready = "Unhealthy", false
				s.Message = fmt.Sprintf("%s is False: %s", condition.Type, condition.Message)
				break
			}
		}
	}
	return s
}

// Nodes returns the number of nodes of the Shoot: "2", or "2-3".
func (s Summary) Nodes() string {
	if s.MinNodes == s.MaxNodes {
		return fmt.Sprint(s.MinNodes)
	}
	return fmt.Sprintf("%d-%d", s.MinNodes, s.MaxNodes)
}
