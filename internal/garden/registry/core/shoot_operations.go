package core

import (
	"slices"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// shootSpecChanged reports whether the gardenlet has to reconcile the Shoot again: its spec changed (unless the
// change waits for the maintenance time window), or an operation was requested.
func shootSpecChanged(shoot, old *gardencore.Shoot) bool {
	if shootSpecRollsOut(shoot, old) || validation.WantsForceDeletion(shoot) && !validation.WantsForceDeletion(old) {
		return true
	}
	switch last := shoot.Status.LastOperation; {
	case last == nil:
		return false
	case last.State == gardencore.LastOperationStateFailed:
		resource.ConsumeOperationAnnotation(shoot, "")
		return resource.ConsumeOperationAnnotation(shoot, v1beta1constants.ShootOperationRetry)
	}
	return consumeOperations(shoot)
}

func shootSpecRollsOut(shoot, old *gardencore.Shoot) bool {
	if m := shoot.Spec.Maintenance; m != nil && ptr.Deref(m.ConfineSpecUpdateRollout, false) {
		return validation.HibernationEnabled(shoot.Spec.Hibernation) != validation.HibernationEnabled(old.Spec.Hibernation)
	}
	return !resource.Equal(old.Spec, shoot.Spec)
}

// shootOperations are the operations that the gardenlet executes: they increase the generation and stay in the
// annotation until the gardenlet removes them. Each is mapped to the operations that it includes, which are removed
// at once.
var shootOperations = map[string][]string{
	v1beta1constants.OperationRotateCAStart:                                     nil,
	v1beta1constants.OperationRotateCAStartWithoutWorkersRollout:                nil,
	v1beta1constants.OperationRotateCAComplete:                                  nil,
	v1beta1constants.OperationRotateServiceAccountKeyStart:                      nil,
	v1beta1constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout: nil,
	v1beta1constants.OperationRotateServiceAccountKeyComplete:                   nil,
	v1beta1constants.OperationRotateETCDEncryptionKey:                           nil,
	v1beta1constants.OperationRotateETCDEncryptionKeyStart:                      nil,
	v1beta1constants.OperationRotateETCDEncryptionKeyComplete:                   nil,
	v1beta1constants.OperationRotateObservabilityCredentials:                    nil,
	v1beta1constants.ShootOperationRotateSSHKeypair:                             nil,
	v1beta1constants.OperationRotateCredentialsStart: {
		v1beta1constants.OperationRotateCAStart,
		v1beta1constants.OperationRotateServiceAccountKeyStart,
		v1beta1constants.OperationRotateETCDEncryptionKey,
		v1beta1constants.OperationRotateETCDEncryptionKeyStart,
		v1beta1constants.OperationRotateObservabilityCredentials,
		v1beta1constants.ShootOperationRotateSSHKeypair,
	},
	v1beta1constants.OperationRotateCredentialsStartWithoutWorkersRollout: {
		v1beta1constants.OperationRotateCAStartWithoutWorkersRollout,
		v1beta1constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		v1beta1constants.OperationRotateETCDEncryptionKey,
		v1beta1constants.OperationRotateETCDEncryptionKeyStart,
		v1beta1constants.OperationRotateObservabilityCredentials,
		v1beta1constants.ShootOperationRotateSSHKeypair,
	},
	v1beta1constants.OperationRotateCredentialsComplete: {
		v1beta1constants.OperationRotateCAComplete,
		v1beta1constants.OperationRotateServiceAccountKeyComplete,
		v1beta1constants.OperationRotateETCDEncryptionKeyComplete,
	},
}

// consumeOperations reports whether an operation in the annotation is for the gardenlet. It removes the operations
// that need no further work from the annotation.
func consumeOperations(shoot *gardencore.Shoot) bool {
	operations := validation.SplitOperations(shoot.Annotations[v1beta1constants.GardenerOperation])
	var done []string
	reconcile := false
	for _, operation := range operations {
		included, known := shootOperations[operation]
		switch {
		case operation == v1beta1constants.GardenerOperationReconcile:
			reconcile, done = true, append(done, operation)
		case operation == v1beta1constants.ShootOperationRotateSSHKeypair && !validation.SSHAccessEnabled(shoot):
			done = append(done, operation) // there is no key pair
		case known, strings.HasPrefix(operation, v1beta1constants.OperationRotateRolloutWorkers),
			strings.HasPrefix(operation, v1beta1constants.OperationRolloutWorkers):
			reconcile, done = true, append(done, included...)
		}
	}
	left := slices.DeleteFunc(operations, func(operation string) bool { return slices.Contains(done, operation) })
	if len(left) == 0 {
		delete(shoot.Annotations, v1beta1constants.GardenerOperation)
	} else {
		shoot.Annotations[v1beta1constants.GardenerOperation] = strings.Join(left, v1beta1constants.GardenerOperationsSeparator)
	}
	return reconcile
}

// normalizeOperations removes spaces and repetitions from the operations that are requested for now or for the
// maintenance.
func normalizeOperations(shoot *gardencore.Shoot) {
	for _, key := range []string{v1beta1constants.GardenerOperation, v1beta1constants.GardenerMaintenanceOperation} {
		value, ok := shoot.Annotations[key]
		if !ok {
			continue
		}
		var unique []string
		for _, operation := range validation.SplitOperations(value) {
			if !slices.Contains(unique, operation) {
				unique = append(unique, operation)
			}
		}
		shoot.Annotations[key] = strings.Join(unique, v1beta1constants.GardenerOperationsSeparator)
	}
}
