package shootmaintenance

import (
	"slices"
	"strconv"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/component/schedule"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// tasks are the tasks of a maintenance's reconciliation that an ordinary reconciliation does not have.
var tasks = []string{
	constants.ShootTaskDeployInfrastructure, constants.ShootTaskDeployDNSRecordInternal,
	constants.ShootTaskDeployDNSRecordExternal, constants.ShootTaskDeployDNSRecordIngress,
}

// operations sets the operation annotation, so that the gardenlet reconciles the Shoot and thereby rolls out the
// changes that were confined to the time window, and carries out the operations that were put off until the
// maintenance. A Shoot whose last operation failed is only retried, if the annotation for that is set.
func (m *maintenance) operations() {
	annotations := m.shoot.Annotations
	wanted := without(split(annotations[constants.GardenerOperation], constants.GardenerOperationsSeparator), constants.ShootOperationMaintain)
	m.setOperations(wanted)
	last := m.shoot.Status.LastOperation
	switch {
	case last == nil: // its first reconciliation is still to come
		return
	case last.State == corev1beta1.LastOperationStateFailed:
		if retry, _ := strconv.ParseBool(annotations[constants.FailedShootNeedsRetryOperation]); retry {
			delete(annotations, constants.FailedShootNeedsRetryOperation)
			m.setOperations([]string{constants.ShootOperationRetry})
		}
		return
	}
	wanted = slices.Concat(wanted, split(annotations[constants.GardenerMaintenanceOperation], constants.GardenerOperationsSeparator),
		[]string{constants.GardenerOperationReconcile})
	for _, r := range m.results {
		started := r.operation == constants.OperationRotateETCDEncryptionKey &&
			slices.Contains(wanted, constants.OperationRotateETCDEncryptionKeyStart)
		if r.operation != "" && r.failure == "" && !started {
			wanted = append(wanted, r.operation)
		}
	}
	delete(annotations, constants.GardenerMaintenanceOperation)
	if m.setOperations(unique(wanted)); len(unique(wanted)) > 1 {
		m.note("Asked for the operations %s", strings.Join(unique(wanted), ", "))
	}
}

func (m *maintenance) setOperations(operations []string) {
	if len(operations) == 0 {
		delete(m.shoot.Annotations, constants.GardenerOperation)
		return
	}
	metav1.SetMetaDataAnnotation(&m.shoot.ObjectMeta, constants.GardenerOperation,
		strings.Join(operations, constants.GardenerOperationsSeparator))
}

// tasks adds the tasks of a maintenance to the tasks of the Shoot.
func (m *maintenance) tasks() {
	all := unique(slices.Concat(split(m.shoot.Annotations[constants.ShootTasks], ","), tasks))
	metav1.SetMetaDataAnnotation(&m.shoot.ObjectMeta, constants.ShootTasks, strings.Join(all, ","))
}

// isRequested reports whether the Shoot has the operation annotation that requests a maintenance now.
func isRequested(shoot *corev1beta1.Shoot) bool {
	return slices.Contains(split(shoot.Annotations[constants.GardenerOperation], constants.GardenerOperationsSeparator),
		constants.ShootOperationMaintain)
}

func split(value, separator string) (parts []string) {
	for part := range strings.SplitSeq(value, separator) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// unique returns the parts without duplicates, in the order of their first occurrence.
func unique(parts []string) (once []string) {
	for _, part := range parts {
		if !slices.Contains(once, part) {
			once = append(once, part)
		}
	}
	return once
}

func without(parts []string, part string) []string {
	return slices.DeleteFunc(parts, func(p string) bool { return p == part })
}

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

func (m *maintenance) isDue(config *corev1beta1.MaintenanceRotationConfig, last *metav1.Time) bool {
	return schedule.IsRotationDue(m.shoot, config, last, m.now)
}
