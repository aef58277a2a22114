package shootmaintenance

import (
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// rotations starts the credential rotations that are due, if spec.maintenance.autoRotation configures them.
func (m *maintenance) rotations() {
	maintenance := m.shoot.Spec.Maintenance
	if maintenance == nil || maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return
	}
	auto, done := maintenance.AutoRotation.Credentials, corev1beta1.ShootCredentialsRotation{}
	if c := m.shoot.Status.Credentials; c != nil && c.Rotation != nil {
		done = *c.Rotation
	}
	hasSSHKeypair := len(m.shoot.Spec.Provider.Workers) > 0 && kit.AllowsSSH(m.shoot)
	if key := ptr.Deref(done.SSHKeypair, corev1beta1.ShootSSHKeypairRotation{}); m.isDue(
		auto.SSHKeypair, key.LastCompletionTime) && hasSSHKeypair {
		m.rotate(constants.ShootOperationRotateSSHKeypair, "SSH key pair", "")
	}
	if passwords := ptr.Deref(done.Observability, corev1beta1.ObservabilityRotation{}); m.isDue(
		auto.Observability, passwords.LastCompletionTime) {
		m.rotate(constants.OperationRotateObservabilityCredentials, "observability passwords", "")
	}
	hibernated := m.shoot.Spec.Hibernation != nil && ptr.Deref(m.shoot.Spec.Hibernation.Enabled, false)
	if key := ptr.Deref(done.ETCDEncryptionKey, corev1beta1.ETCDEncryptionKeyRotation{}); m.isDue(
		auto.ETCDEncryptionKey, key.LastCompletionTime) && !hibernated {
		failure := ""
		if key.Phase != "" && key.Phase != corev1beta1.RotationCompleted {
			failure = "the last rotation is still under way"
		}
		m.rotate(constants.OperationRotateETCDEncryptionKey, "etcd encryption key", failure)
	}
}

func (m *maintenance) rotate(operation, credentials, failure string) {
	m.results = append(m.results, result{
		operation: operation, subject: "rotation of the " + credentials, reason: "automatic rotation is configured",
		done: "has started", failure: failure,
	})
}

// isDue reports whether the rotation period has passed since the last rotation, or since the creation of the Shoot if
// there was none.
func (m *maintenance) isDue(config *corev1beta1.MaintenanceRotationConfig, last *metav1.Time) bool {
	if config == nil || config.RotationPeriod == nil || config.RotationPeriod.Duration == 0 {
		return false
	}
	since := m.shoot.CreationTimestamp.Time
	if last != nil {
		since = last.Time
	}
	return since.Before(m.now.Add(-config.RotationPeriod.Duration))
}
