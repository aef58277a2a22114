package corevalidation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// ---- operations ----

// These operations may have the names of worker pools, as in rollout-workers=pool-1,pool-2.
const (
	rolloutWorkers         = constants.OperationRolloutWorkers
	rolloutWorkersRotation = constants.OperationRotateRolloutWorkers
)

var (
	// operationsNotInHibernation are not possible for shoots in hibernation.
	operationsNotInHibernation = sets.New(
		constants.OperationRotateCredentialsStart,
		constants.OperationRotateCredentialsStartWithoutWorkersRollout,
		constants.OperationRotateCredentialsComplete,
		constants.OperationRotateETCDEncryptionKey,
		constants.OperationRotateETCDEncryptionKeyStart,
		constants.OperationRotateETCDEncryptionKeyComplete,
		constants.OperationRotateServiceAccountKeyStart,
		constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		constants.OperationRotateServiceAccountKeyComplete,
	)
	// operationsInParallel may be requested together with others.
	operationsInParallel = operationsNotInHibernation.Union(sets.New(
		constants.GardenerOperationReconcile,
		constants.OperationRotateCAStart,
		constants.OperationRotateCAStartWithoutWorkersRollout,
		constants.OperationRotateCAComplete,
		constants.OperationRotateObservabilityCredentials,
		constants.ShootOperationRotateSSHKeypair,
		rolloutWorkersRotation,
		rolloutWorkers,
	))
	// operationsKnown are all operations.
	operationsKnown = operationsInParallel.Union(sets.New(
		constants.ShootOperationMaintain,
		constants.ShootOperationRetry,
		constants.ShootOperationForceInPlaceUpdate,
	))
	// operationsWithoutReencryption are not possible while a change of the encrypted resources is rolled out.
	operationsWithoutReencryption = sets.New(
		constants.OperationRotateCredentialsStart,
		constants.OperationRotateETCDEncryptionKey,
		constants.OperationRotateETCDEncryptionKeyStart,
	)
	// operationsInTwoSteps are the two steps that Kubernetes 1.34 replaced by a single operation.
	operationsInTwoSteps = sets.New(
		constants.OperationRotateETCDEncryptionKeyStart,
		constants.OperationRotateETCDEncryptionKeyComplete,
	)
)

// operationsIncompatible maps an operation to those that must not be in the same annotation.
var operationsIncompatible = map[string][]string{
	constants.OperationRotateCredentialsStart: {
		constants.OperationRotateCAStartWithoutWorkersRollout,
		constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		constants.OperationRotateCredentialsStartWithoutWorkersRollout,
	},
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: {
		constants.OperationRotateCAStart,
		constants.OperationRotateServiceAccountKeyStart,
	},
	constants.OperationRotateCAStart:                {constants.OperationRotateCAStartWithoutWorkersRollout},
	constants.OperationRotateServiceAccountKeyStart: {constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout},
	constants.OperationRotateETCDEncryptionKey:      {constants.OperationRotateETCDEncryptionKeyStart},
}

var rotationStarts = []string{
	constants.OperationRotateCAStart,
	constants.OperationRotateCAStartWithoutWorkersRollout,
	constants.OperationRotateServiceAccountKeyStart,
	constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
	constants.OperationRotateETCDEncryptionKey,
	constants.OperationRotateETCDEncryptionKeyStart,
}

// operationsIncluding maps an operation to those that it includes. An operation and one that it includes must not be
// requested in different annotations, one for now and one for the maintenance.
var operationsIncluding = map[string][]string{
	constants.OperationRotateCredentialsStart:                      rotationStarts,
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: rotationStarts,
	constants.OperationRotateCredentialsComplete: {
		constants.OperationRotateCAComplete,
		constants.OperationRotateServiceAccountKeyComplete,
		constants.OperationRotateETCDEncryptionKeyComplete,
	},
}

// SplitOperations returns the operations in the value of an annotation.
func SplitOperations(value string) []string {
	if value == "" {
		return nil
	}
	operations := strings.Split(value, constants.GardenerOperationsSeparator)
	for i := range operations {
		operations[i] = strings.TrimSpace(operations[i])
	}
	return operations
}

// concernsPools reports whether the operation is for certain worker pools.
func concernsPools(operation string) bool {
	return strings.HasPrefix(operation, rolloutWorkersRotation) || strings.HasPrefix(operation, rolloutWorkers)
}

// ---- rules ----

// requestedOperations are the operations in one annotation.
type requestedOperations struct {
	list []string
	path *field.Path
}

func (r requestedOperations) hasAny(operations []string) bool {
	return slices.ContainsFunc(operations, func(operation string) bool { return slices.Contains(r.list, operation) })
}

// validateShootOperations checks the operations that the annotations request for now and for the next maintenance.
func validateShootOperations(shoot *gardencore.Shoot, annotationsPath *field.Path) field.ErrorList {
	requested := func(annotation string) requestedOperations {
		return requestedOperations{SplitOperations(shoot.Annotations[annotation]), annotationsPath.Key(annotation)}
	}
	now, later := requested(constants.GardenerOperation), requested(constants.GardenerMaintenanceOperation)
	for _, asked := range []requestedOperations{now, later} {
		if err := unavailableOperation(asked, shoot); err != nil {
			return field.ErrorList{err}
		}
	}
	var errs field.ErrorList
	if now.hasAny(later.list) {
		errs = append(errs, field.Forbidden(annotationsPath,
			fmt.Sprintf("%s and %s must not have an operation in common", constants.GardenerOperation, constants.GardenerMaintenanceOperation)))
	}
	// Gardener reports an operation in two steps on the first annotation, even if it is in the second one.
	errs = append(errs, validateRequestedOperations(now, shoot, now.path)...)
	errs = append(errs, validateRequestedOperations(later, shoot, now.path)...)
	for _, pair := range [][2]requestedOperations{{later, now}, {now, later}} {
		for _, operation := range pair[0].list {
			if included := operationsIncluding[operation]; pair[1].hasAny(included) {
				errs = append(errs, field.Forbidden(now.path,
					fmt.Sprintf("%s must not be asked for now or in maintenance while any of %v is asked for in the other", operation, included)))
			}
		}
	}
	for _, operation := range now.list {
		errs = append(errs, validateOperationContext(operation, shoot, now.path)...)
	}
	if shoot.DeletionTimestamp == nil { // a shoot that is being deleted is not maintained, and must stay changeable
		for _, operation := range later.list {
			errs = append(errs, validateOperationContext(operation, shoot, later.path)...)
		}
	}
	return errs
}

// unavailableOperation returns an error for the first operation that does not exist, must not be requested together
// with others, or is not possible for such a shoot. Further checks are useless in this case.
func unavailableOperation(asked requestedOperations, shoot *gardencore.Shoot) *field.Error {
	// Gardener does not manage machines of a self-hosted shoot without credentials.
	unmanaged := IsSelfHosted(shoot.Spec.Provider.Workers) && shoot.Spec.CredentialsBindingName == nil && shoot.Spec.SecretBindingName == nil
	for _, operation := range asked.list {
		switch pools := concernsPools(operation); {
		case !operationsKnown.Has(operation) && !pools:
			return field.NotSupported(asked.path, operation, sets.List(operationsKnown))
		case len(asked.list) > 1 && !operationsInParallel.Has(operation) && !pools:
			return field.Forbidden(asked.path, fmt.Sprintf("%s must not be asked for together with other operations", operation))
		case unmanaged && pools:
			return field.Forbidden(asked.path, fmt.Sprintf("%s is not possible for a self-hosted Shoot without managed infrastructure", operation))
		}
	}
	return nil
}

// validateRequestedOperations checks the operations of one annotation against each other and the state of the shoot.
func validateRequestedOperations(asked requestedOperations, shoot *gardencore.Shoot, twoStepsPath *field.Path) field.ErrorList {
	var (
		errs        field.ErrorList
		hibernated  = inHibernation(shoot)
		reencrypted = !encryptedResources(&shoot.Status).Equal(resourcesToEncrypt(&shoot.Spec))
	)
	for _, operation := range asked.list {
		if operationsInTwoSteps.Has(operation) && !versionBefore(shoot.Spec.Kubernetes.Version, "1.34") {
			errs = append(errs, field.Forbidden(twoStepsPath,
				fmt.Sprintf("%s does not exist from Kubernetes 1.34 on; use %s", operation, constants.OperationRotateETCDEncryptionKey)))
		}
		if others := operationsIncompatible[operation]; asked.hasAny(others) {
			errs = append(errs, field.Forbidden(asked.path, fmt.Sprintf("%s must not be asked for together with any of %v", operation, others)))
		}
		errs = append(errs, ForbiddenIf(hibernated && (operationsNotInHibernation.Has(operation) || concernsPools(operation)),
			asked.path, fmt.Sprintf("%s is not possible while the Shoot is hibernated or wakes up", operation))...)
		errs = append(errs, ForbiddenIf(reencrypted && operationsWithoutReencryption.Has(operation), asked.path,
			fmt.Sprintf("%s is not possible while a change of the encryption configuration is rolled out", operation))...)
	}
	return errs
}

// ---- rotations ----

// rotationStep is the precondition of a step of a rotation.
type rotationStep struct {
	// start marks first steps: the shoot must have been created, and the rotations below must not be in progress. For
	// other steps, the rotations must be prepared.
	start bool
	// nodes marks first steps that change nodes: no update in place may be pending.
	nodes bool

	certificateAuthorities, serviceAccountKey, etcdEncryptionKey bool
}

var rotationSteps = map[string]rotationStep{
	constants.OperationRotateCredentialsStart: {
		start: true, nodes: true, certificateAuthorities: true, serviceAccountKey: true, etcdEncryptionKey: true},
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: {
		start: true, nodes: true, certificateAuthorities: true, serviceAccountKey: true, etcdEncryptionKey: true},
	constants.OperationRotateCredentialsComplete: {
		certificateAuthorities: true, serviceAccountKey: true, etcdEncryptionKey: true},
	constants.OperationRotateCAStart:                                     {start: true, nodes: true, certificateAuthorities: true},
	constants.OperationRotateCAStartWithoutWorkersRollout:                {start: true, nodes: true, certificateAuthorities: true},
	constants.OperationRotateCAComplete:                                  {certificateAuthorities: true},
	constants.OperationRotateServiceAccountKeyStart:                      {start: true, nodes: true, serviceAccountKey: true},
	constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout: {start: true, nodes: true, serviceAccountKey: true},
	constants.OperationRotateServiceAccountKeyComplete:                   {serviceAccountKey: true},
	constants.OperationRotateETCDEncryptionKey:                           {start: true, etcdEncryptionKey: true},
	constants.OperationRotateETCDEncryptionKeyStart:                      {start: true, etcdEncryptionKey: true},
	constants.OperationRotateETCDEncryptionKeyComplete:                   {etcdEncryptionKey: true},
}

// validateOperationContext checks an operation against the state of the rotations and the worker pools.
func validateOperationContext(operation string, shoot *gardencore.Shoot, path *field.Path) field.ErrorList {
	switch {
	case strings.HasPrefix(operation, rolloutWorkersRotation):
		return validateRotationRollout(operation, shoot, path)
	case strings.HasPrefix(operation, rolloutWorkers):
		return validateRollout(operation, shoot.Spec.Provider.Workers, path)
	}
	step, ok := rotationSteps[operation]
	if !ok {
		return nil
	}
	if operation == constants.OperationRotateCredentialsComplete && !versionBefore(shoot.Spec.Kubernetes.Version, "1.34") {
		step.etcdEncryptionKey = false // this rotation completes automatically
	}
	var errs field.ErrorList
	forbid := func(detail string, args ...any) {
		errs = append(errs, field.Forbidden(path, operation+" is not possible "+fmt.Sprintf(detail, args...)))
	}
	if step.start && !readyForRotation(shoot.Status.LastOperation) {
		forbid("before the Shoot was created successfully")
	}
	phases := rotationsOf(&shoot.Status)
	for _, rotation := range []struct {
		name     string
		concerns bool
		phase    gardencore.CredentialsRotationPhase
	}{
		{"certificateAuthorities", step.certificateAuthorities, phases.certificateAuthorities},
		{"serviceAccountKey", step.serviceAccountKey, phases.serviceAccountKey},
		{"etcdEncryptionKey", step.etcdEncryptionKey, phases.etcdEncryptionKey},
	} {
		wanted := gardencore.RotationPrepared
		if step.start {
			wanted = gardencore.RotationCompleted
		}
		if broken := rotation.phase != wanted && (!step.start || rotation.phase != ""); rotation.concerns && broken {
			forbid("unless status.credentials.rotation.%s.phase is %s", rotation.name, wanted)
		}
	}
	if updates := shoot.Status.InPlaceUpdates; step.nodes && updates != nil && updates.PendingWorkerUpdates != nil {
		if len(updates.PendingWorkerUpdates.AutoInPlaceUpdate) > 0 {
			forbid("while status.inPlaceUpdates.pendingWorkerUpdates.autoInPlaceUpdate is not empty")
		}
		if len(updates.PendingWorkerUpdates.ManualInPlaceUpdate) > 0 {
			forbid("while status.inPlaceUpdates.pendingWorkerUpdates.manualInPlaceUpdate is not empty")
		}
	}
	return errs
}

// readyForRotation reports whether a rotation can begin: the shoot is not being created, restored, migrated or deleted.
func readyForRotation(last *gardencore.LastOperation) bool {
	if last == nil {
		return false
	}
	switch last.Type {
	case gardencore.LastOperationTypeReconcile:
		return true
	case gardencore.LastOperationTypeCreate, gardencore.LastOperationTypeRestore:
		return last.State == gardencore.LastOperationStateSucceeded
	}
	return false
}

// ---- rolling out worker pools ----

// validateRotationRollout checks the rollout of worker pools for which a rotation waits.
func validateRotationRollout(operation string, shoot *gardencore.Shoot, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if phases := rotationsOf(&shoot.Status); phases.certificateAuthorities != gardencore.RotationWaitingForWorkersRollout &&
		phases.serviceAccountKey != gardencore.RotationWaitingForWorkersRollout {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("%s is not possible unless the phase of a rotation in "+
			"status.credentials.rotation is %s", rolloutWorkersRotation, gardencore.RotationWaitingForWorkersRollout)))
	}
	names := poolNames(operation, rolloutWorkersRotation)
	return append(errs, validatePoolNames(names, shoot.Spec.Provider.Workers, path)...)
}

// validateRollout checks the rollout of certain worker pools or, for *, of all.
func validateRollout(operation string, workers []gardencore.Worker, path *field.Path) field.ErrorList {
	names := poolNames(operation, rolloutWorkers)
	if len(names) == 1 && names[0] == "*" {
		names = nil
		for _, worker := range workers {
			names = append(names, worker.Name)
		}
	}
	errs := ForbiddenIf(slices.Contains(names, "*"), path, "* must be the only name")
	errs = append(errs, validatePoolNames(names, workers, path)...)
	for _, name := range names {
		if worker := WorkerNamed(workers, name); worker != nil && UpdatesInPlace(worker.UpdateStrategy) {
			errs = append(errs, field.Invalid(path, name, "must not be a worker pool that is updated in place"))
		}
	}
	return errs
}

func poolNames(operation, prefix string) []string {
	return strings.Split(strings.TrimPrefix(operation, prefix+"="), ",")
}

func validatePoolNames(names []string, workers []gardencore.Worker, path *field.Path) field.ErrorList {
	errs := RequiredIf(slices.Contains(names, ""), path, "must name worker pools, separated by commas, after =")
	seen := sets.New[string]()
	for _, name := range names {
		errs = append(errs, Distinct(path, seen, name)...)
		errs = append(errs, InvalidIf(WorkerNamed(workers, name) == nil, path, name, "must be the name of one of spec.provider.workers")...)
	}
	return errs
}
