package shootmutator

import (
	"reflect"
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// These are the tasks of the next reconciliation. Without them it leaves the infrastructure and the DNS records
// unchanged.
var (
	deployInfrastructure = []string{v1beta1constants.ShootTaskDeployInfrastructure}
	deployDNSRecords     = []string{
		v1beta1constants.ShootTaskDeployDNSRecordInternal,
		v1beta1constants.ShootTaskDeployDNSRecordExternal,
		v1beta1constants.ShootTaskDeployDNSRecordIngress,
	}
	deployAll = slices.Concat(deployInfrastructure, deployDNSRecords)
)

// tasksForUpdate returns the tasks that a change needs, possibly with duplicates.
func tasksForUpdate(shoot, old *gardencore.Shoot) []string {
	var tasks []string
	if validation.HibernationEnabled(old.Spec.Hibernation) && !validation.HibernationEnabled(shoot.Spec.Hibernation) {
		tasks = append(tasks, deployAll...)
	}
	if !reflect.DeepEqual(old.Spec.Provider.InfrastructureConfig, shoot.Spec.Provider.InfrastructureConfig) ||
		gainsIPFamily(shoot, old) || switchesSSH(shoot, old) {
		tasks = append(tasks, deployInfrastructure...)
	}
	if !reflect.DeepEqual(old.Spec.DNS, shoot.Spec.DNS) {
		tasks = append(tasks, deployDNSRecords...)
	}
	if rotatesSSHKeys(shoot) {
		tasks = append(tasks, deployInfrastructure...)
	}
	return tasks
}

func gainsIPFamily(shoot, old *gardencore.Shoot) bool {
	before := ptr.Deref(old.Spec.Networking, gardencore.Networking{}).IPFamilies
	return before != nil && len(ptr.Deref(shoot.Spec.Networking, gardencore.Networking{}).IPFamilies) > len(before)
}

// switchesSSH ignores Shoots without the setting before: defaulting has set it for every Shoot with workers.
func switchesSSH(shoot, old *gardencore.Shoot) bool {
	before := ptr.Deref(old.Spec.Provider.WorkersSettings, gardencore.WorkersSettings{}).SSHAccess
	after := ptr.Deref(shoot.Spec.Provider.WorkersSettings, gardencore.WorkersSettings{}).SSHAccess
	return before != nil && (after == nil || before.Enabled != after.Enabled)
}

func rotatesSSHKeys(shoot *gardencore.Shoot) bool {
	return slices.ContainsFunc(validation.SplitOperations(shoot.Annotations[v1beta1constants.GardenerOperation]), func(operation string) bool {
		return operation == v1beta1constants.ShootOperationRotateSSHKeypair || operation == v1beta1constants.OperationRotateCredentialsStart ||
			operation == v1beta1constants.OperationRotateCredentialsStartWithoutWorkersRollout
	})
}

// requestRetryInMaintenance annotates a failed Shoot whose changes are confined to the maintenance time window, so that
// its operation is retried in that window.
func requestRetryInMaintenance(shoot, old *gardencore.Shoot) {
	maintenance, last := shoot.Spec.Maintenance, shoot.Status.LastOperation
	if maintenance == nil || !ptr.Deref(maintenance.ConfineSpecUpdateRollout, false) || last == nil ||
		last.State != gardencore.LastOperationStateFailed {
		return
	}
	if !equality.Semantic.DeepEqual(old.Spec, shoot.Spec) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.FailedShootNeedsRetryOperation, "true")
	}
}

// addTasks adds the tasks that the Shoot's annotation does not have yet.
func addTasks(shoot *gardencore.Shoot, tasks ...string) {
	if len(tasks) == 0 {
		return
	}
	var all []string
	if annotation := shoot.Annotations[v1beta1constants.ShootTasks]; annotation != "" {
		all = strings.Split(annotation, ",")
	}
	for _, task := range tasks {
		if !slices.Contains(all, task) {
			all = append(all, task)
		}
	}
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ShootTasks, strings.Join(all, ","))
}
