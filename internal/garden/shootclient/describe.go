package shootclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Description describes a Shoot in detail.
type Description struct {
	Summary   `json:",inline"`
	Operation *Operation `json:"operation,omitempty"`
	// Conditions are the conditions and the constraints.
	Conditions []corev1beta1.Condition `json:"conditions"`
	Errors     []corev1beta1.LastError `json:"errors"`
	Rotations  []Rotation              `json:"rotations"`
}

// Operation is the last operation of a Shoot.
type Operation struct {
	Text    string    `json:"text"` // "Create Processing (40%)"
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
	// Tasks are those that the operation is working on or waits for.
	Tasks []string `json:"tasks,omitempty"`
	// Requested are operations in the annotation that have not begun.
	Requested string `json:"requested,omitempty"`
}

// Rotation is the last rotation of credentials of one kind.
type Rotation struct {
	// Name is that of the command that starts it: ca, ssh-keypair …
	Name      string       `json:"name"`
	Phase     string       `json:"phase"`
	Started   *metav1.Time `json:"started,omitempty"`
	Completed *metav1.Time `json:"completed,omitempty"`
	// Next says what the user has to do next, if anything.
	Next string `json:"next,omitempty"`
}

// Describe returns the description of a Shoot.
func (c *Client) Describe(ctx context.Context, key Key) (*Description, *corev1beta1.Shoot, error) {
	shoot, err := c.Shoot(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	d := describe(shoot, key.Project)
	if why := c.withoutGardenlet(ctx, shoot); why != "" && !ProgressOf(shoot).Done {
		d.Message = why
		d.Operation.Tasks = append([]string{why}, d.Operation.Tasks...)
	}
	return d, shoot, nil
}

func describe(shoot *corev1beta1.Shoot, project string) *Description {
	p := ProgressOf(shoot)
	d := &Description{Summary: Summarize(shoot, project), Operation: &Operation{Text: p.String(), Message: p.Description,
		Requested: shoot.Annotations[constants.GardenerOperation]},
		Conditions: slices.Concat([]corev1beta1.Condition{}, shoot.Status.Conditions, shoot.Status.Constraints),
		Errors:     append([]corev1beta1.LastError{}, shoot.Status.LastErrors...), Rotations: rotationsOf(shoot, project)}
	switch last := shoot.Status.LastOperation; {
	case last == nil:
		d.Operation.At = shoot.CreationTimestamp.Time
	default:
		d.Operation.At = last.LastUpdateTime.Time
		if last.State == corev1beta1.LastOperationStateProcessing && strings.Contains(last.Description, ", ") {
			d.Operation.Tasks, d.Operation.Message = strings.Split(last.Description, ", "), ""
		}
	}
	return d
}

// rotationsOf returns the rotations that have begun.
func rotationsOf(shoot *corev1beta1.Shoot, project string) []Rotation {
	all := []Rotation{}
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return all
	}
	add := func(name string, phase corev1beta1.CredentialsRotationPhase, started, completed *metav1.Time,
		pending []corev1beta1.PendingWorkersRollout) {
		if phase == "" { // a rotation in one step
			phase = corev1beta1.RotationCompleted
			if completed == nil || started != nil && completed.Before(started) {
				phase = "Rotating"
			}
		}
		all = append(all, Rotation{Name: name, Phase: string(phase), Started: started, Completed: completed,
			Next: nextStep(shoot, project, name, phase, pending)})
	}
	r := shoot.Status.Credentials.Rotation
	if ca := r.CertificateAuthorities; ca != nil {
		add("ca", ca.Phase, ca.LastInitiationTime, ca.LastCompletionTime, ca.PendingWorkersRollouts)
	}
	if key := r.ServiceAccountKey; key != nil {
		add("serviceaccount-key", key.Phase, key.LastInitiationTime, key.LastCompletionTime, key.PendingWorkersRollouts)
	}
	if key := r.ETCDEncryptionKey; key != nil {
		add("etcd-encryption-key", key.Phase, key.LastInitiationTime, key.LastCompletionTime, nil)
	}
	if ssh := r.SSHKeypair; ssh != nil {
		add("ssh-keypair", "", ssh.LastInitiationTime, ssh.LastCompletionTime, nil)
	}
	if o := r.Observability; o != nil {
		add("observability", "", o.LastInitiationTime, o.LastCompletionTime, nil)
	}
	return all
}

func nextStep(shoot *corev1beta1.Shoot, project, name string, phase corev1beta1.CredentialsRotationPhase,
	pending []corev1beta1.PendingWorkersRollout) string {
	switch phase {
	case corev1beta1.RotationCompleted:
		return ""
	case corev1beta1.RotationWaitingForWorkersRollout:
		pools := make([]string, len(pending))
		for i, pool := range pending {
			pools[i] = pool.Name
		}
		return fmt.Sprintf("kubectl -n %s annotate shoot %s gardener.cloud/operation=rotate-rollout-workers=%s",
			shoot.Namespace, shoot.Name, strings.Join(pools, ","))
	case corev1beta1.RotationPrepared:
		if name == "etcd-encryption-key" { // it has no command of its own
			if ptr.Deref(shoot.Status.Credentials.Rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared, false) {
				return "none: it completes by itself"
			}
			name = "credentials"
		}
		return fmt.Sprintf("gardenlite rotate %s %s/%s --complete, once all clients use the new ones",
			name, project, shoot.Name)
	}
	return "none: it goes on by itself"
}
