package corevalidation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// ---- specification ----

// validateShootSpecUpdate refuses changes of fields that must not change in a shoot or in a template. While a shoot
// is being deleted, nothing in its specification may change.
func validateShootSpecUpdate(newSpec, oldSpec *gardencore.ShootSpec, inDeletion bool, path *field.Path) field.ErrorList {
	if inDeletion && !sameValue(newSpec, oldSpec) {
		return field.ErrorList{field.Forbidden(path, "must not be changed while the Shoot is being deleted")}
	}
	errs := slices.Concat(
		immutable(newSpec.Region, oldSpec.Region, path.Child("region")),
		validateCloudProfileReference(newSpec, path),
		validateControlPlaneZonesUpdate(newSpec, oldSpec, path.Child("controlPlane", "zones")),
		validateBindingNamesUpdate(newSpec, oldSpec, path),
		validateDNSUpdate(newSpec.DNS, oldSpec.DNS, newSpec.SeedName != nil, path.Child("dns")),
		validateKubernetesUpdate(newSpec, oldSpec, path.Child("kubernetes")),
	)
	workersPath := path.Child("provider", "workers")
	switch hasWorkers, hadWorkers := len(newSpec.Provider.Workers) > 0, len(oldSpec.Provider.Workers) > 0; {
	case hadWorkers && !hasWorkers:
		return append(errs, field.Forbidden(workersPath, "must not be empty in a Shoot with workers"))
	case hasWorkers && !hadWorkers:
		return append(errs, field.Forbidden(workersPath, "must be empty in a Shoot without workers"))
	}
	return slices.Concat(errs,
		immutable(newSpec.Provider.Type, oldSpec.Provider.Type, path.Child("provider", "type")),
		validateWorkersUpdate(newSpec, oldSpec, workersPath),
		validateNetworkingUpdate(newSpec.Networking, oldSpec.Networking, path.Child("networking")),
		validateSchedulerNameUpdate(newSpec.SchedulerName, oldSpec.SchedulerName, path.Child("schedulerName")),
	)
}

// validateBindingNamesUpdate refuses to change a secret binding, unless a credentials binding replaces it, and to
// remove a credentials binding.
func validateBindingNamesUpdate(newSpec, oldSpec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	var (
		errs       field.ErrorList
		hasBinding = ptr.Deref(newSpec.CredentialsBindingName, "") != ""
		migrates   = oldSpec.SecretBindingName != nil && newSpec.SecretBindingName == nil && hasBinding
	)
	errs = append(errs, ForbiddenIf(oldSpec.CredentialsBindingName != nil && !hasBinding,
		path.Child("credentialsBindingName"), "must not be unset")...)
	if !migrates {
		errs = append(errs, immutable(newSpec.SecretBindingName, oldSpec.SecretBindingName, path.Child("secretBindingName"))...)
	}
	return errs
}

// validateControlPlaneZonesUpdate refuses to pin a control plane to other zones. The zones may be unset, and be added to when
// the failure of a zone is to be tolerated from now on.
func validateControlPlaneZonesUpdate(newSpec, oldSpec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	newZones, oldZones := ControlPlaneZones(newSpec), ControlPlaneZones(oldSpec)
	switch becomesTolerant := toleratesZoneFailure(newSpec) && !toleratesZoneFailure(oldSpec); {
	case len(newZones) == 0 || slices.Equal(newZones, oldZones):
		return nil
	case len(oldZones) > 0 && becomesTolerant:
		return ForbiddenIf(!sets.New(newZones...).HasAll(oldZones...), path, "must contain the zones of before")
	}
	return field.ErrorList{field.Forbidden(path, "must not be changed")}
}

// validateSchedulerNameUpdate refuses to change the scheduler, except from none to the default scheduler.
func validateSchedulerNameUpdate(newName, oldName *string, path *field.Path) field.ErrorList {
	if ptr.Equal(newName, oldName) || oldName == nil && ptr.Deref(newName, "") == constants.DefaultSchedulerName {
		return nil
	}
	return field.ErrorList{field.Invalid(path, newName, apivalidation.FieldImmutableErrorMsg)}
}

// validateNetworkingUpdate refuses to change the network plugin and, once they are set, the ranges of pods and
// services. The IP families may change between IPv4 and dual-stack.
func validateNetworkingUpdate(newNetworking, oldNetworking *gardencore.Networking, path *field.Path) field.ErrorList {
	switch {
	case oldNetworking == nil:
		return nil
	case newNetworking == nil:
		return field.ErrorList{field.Forbidden(path, "must not be unset")}
	}
	errs := slices.Concat(
		immutable(newNetworking.Type, oldNetworking.Type, path.Child("type")),
		immutableOnceSet(newNetworking.Pods, oldNetworking.Pods, path.Child("pods")),
		immutableOnceSet(newNetworking.Services, oldNetworking.Services, path.Child("services")),
	)
	var (
		ipv4      = []gardencore.IPFamily{gardencore.IPFamilyIPv4}
		dualStack = []gardencore.IPFamily{gardencore.IPFamilyIPv4, gardencore.IPFamilyIPv6}
		from, to  = oldNetworking.IPFamilies, newNetworking.IPFamilies
	)
	switch {
	case slices.Equal(from, to):
	case slices.Equal(from, ipv4) && slices.Equal(to, dualStack):
	case slices.Equal(from, dualStack) && slices.Equal(to, ipv4):
	default:
		errs = append(errs, field.Forbidden(path.Child("ipFamilies"), fmt.Sprintf("must not be changed from %v to %v", from, to)))
	}
	return errs
}

// ---- worker pools ----

func validateWorkersUpdate(newSpec, oldSpec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	var (
		errs                   field.ErrorList
		newWorkers, oldWorkers = newSpec.Provider.Workers, oldSpec.Provider.Workers
	)
	for i, worker := range newWorkers {
		idxPath := path.Index(i)
		if old := WorkerNamed(oldWorkers, worker.Name); old == nil {
			errs = append(errs, validateInPlaceUpdatesEnabled(worker, idxPath)...)
		} else {
			errs = append(errs, validateUpdateStrategyUpdate(worker, *old, idxPath)...)
			errs = append(errs, validateBackupUpdate(controlPlaneBackup(worker), controlPlaneBackup(*old),
				idxPath.Child("controlPlane", "backup"))...)
		}
		errs = append(errs, validateWorkerVersionsUpdate(worker, newSpec, oldSpec, idxPath)...)
	}
	newPool, oldPool := controlPlanePool(newWorkers), controlPlanePool(oldWorkers)
	switch {
	case (newPool >= 0) != (oldPool >= 0):
		errs = append(errs, field.Forbidden(path, "a Shoot must not become self-hosted or cease to be"))
	case newPool >= 0 && newWorkers[newPool].Name != oldWorkers[oldPool].Name:
		errs = append(errs, field.Forbidden(path, "the control plane must not move to another worker pool"))
	}
	return errs
}

// validateUpdateStrategyUpdate refuses to change a worker pool between in-place and rolling updates, and changes that
// cannot be made in place.
func validateUpdateStrategyUpdate(worker, old gardencore.Worker, path *field.Path) field.ErrorList {
	if UpdatesInPlace(worker.UpdateStrategy) != UpdatesInPlace(old.UpdateStrategy) {
		return field.ErrorList{
			field.Invalid(path.Child("updateStrategy"), worker.UpdateStrategy, "must not be changed between in-place and rolling updates")}
	}
	if !UpdatesInPlace(worker.UpdateStrategy) || !ptr.Equal(worker.UpdateStrategy, old.UpdateStrategy) {
		return nil
	}
	const notInPlace = "must not be changed in a worker pool that is updated in place"
	errs := InvalidIf(worker.Machine.Type != old.Machine.Type, path.Child("machine", "type"), worker.Machine.Type, notInPlace)
	if image, oldImage := worker.Machine.Image, old.Machine.Image; image != nil && oldImage != nil && image.Name != oldImage.Name {
		errs = append(errs, field.Invalid(path.Child("machine", "image", "name"), image.Name, notInPlace))
	}
	if worker.CRI != nil && old.CRI != nil && worker.CRI.Name != old.CRI.Name {
		errs = append(errs, field.Invalid(path.Child("cri", "name"), worker.CRI.Name, notInPlace))
	}
	return append(errs, InvalidIf(!sameValue(worker.Volume, old.Volume), path.Child("volume"), worker.Volume, notInPlace)...)
}

// validateWorkerVersionsUpdate refuses to downgrade the Kubernetes version of a worker pool and, if the pool is
// updated in place, its machine image. Only pools with rolling updates may skip minor versions. A new pool is
// compared with its own machine image.
func validateWorkerVersionsUpdate(worker gardencore.Worker, newSpec, oldSpec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	old := worker
	if found := WorkerNamed(oldSpec.Provider.Workers, worker.Name); found != nil {
		old = *found
	}
	inPlace := UpdatesInPlace(worker.UpdateStrategy)
	errs := validateShootVersionUpdate(workerVersion(worker, newSpec.Kubernetes.Version),
		workerVersion(old, oldSpec.Kubernetes.Version), !inPlace, path.Child("kubernetes", "version"))
	if inPlace {
		errs = append(errs, validateImageVersionUpdate(worker.Machine.Image, old.Machine.Image, path.Child("machine", "image", "version"))...)
	}
	return errs
}

func validateImageVersionUpdate(newImage, oldImage *gardencore.ShootMachineImage, path *field.Path) field.ErrorList {
	image, old := ptr.Deref(newImage, gardencore.ShootMachineImage{}), ptr.Deref(oldImage, gardencore.ShootMachineImage{})
	if image.Version == "" {
		return field.ErrorList{field.Invalid(path, "", "must not be empty in a worker pool that is updated in place")}
	}
	older, err := CompareVersions(image.Version, "<", old.Version)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, image.Version, fmt.Sprintf("cannot be compared with the old one: %v", err))}
	case older:
		return field.ErrorList{field.Forbidden(path, "must not go back to an older version in a worker pool that is updated in place")}
	}
	return nil
}

// validateShootVersionUpdate refuses to downgrade a Kubernetes version and, unless maySkipMinor is set, to skip a
// minor version.
func validateShootVersionUpdate(newVersion, oldVersion string, maySkipMinor bool, path *field.Path) field.ErrorList {
	if newVersion == "" {
		return field.ErrorList{field.Invalid(path, newVersion, "must not be empty")}
	}
	older, err := CompareVersions(newVersion, "<", oldVersion)
	if err != nil {
		return field.ErrorList{field.Invalid(path, newVersion, fmt.Sprintf("cannot be compared with the old one: %v", err))}
	}
	if older {
		return field.ErrorList{field.Forbidden(path, "must not go back to an older version")}
	}
	if maySkipMinor {
		return nil
	}
	tooNew, err := minorsAhead(oldVersion, 2)
	if err != nil {
		return field.ErrorList{field.Invalid(path, oldVersion, err.Error())}
	}
	skips, err := CompareVersions(newVersion, ">=", tooNew)
	return ForbiddenIf(err == nil && skips, path, "must not skip a minor version")
}

// ---- updates in place ----

// validateInPlaceUpdates refuses to change a worker pool while its nodes are being updated in place, unless the user
// forces the change.
func validateInPlaceUpdates(newShoot, oldShoot *gardencore.Shoot) field.ErrorList {
	const force = constants.ShootOperationForceInPlaceUpdate
	updates := newShoot.Status.InPlaceUpdates
	if updates == nil || updates.PendingWorkerUpdates == nil || newShoot.Annotations[constants.GardenerOperation] == force {
		return nil
	}
	newVersion, newErr := semver.NewVersion(newShoot.Spec.Kubernetes.Version)
	oldVersion, oldErr := semver.NewVersion(oldShoot.Spec.Kubernetes.Version)
	if err := errors.Join(newErr, oldErr); err != nil {
		return field.ErrorList{
			field.Forbidden(field.NewPath("spec", "kubernetes", "version"), fmt.Sprintf("cannot be compared with the old one: %v", err))}
	}
	var (
		errs    field.ErrorList
		path    = field.NewPath("spec", "provider", "workers")
		pending = slices.Concat(updates.PendingWorkerUpdates.AutoInPlaceUpdate, updates.PendingWorkerUpdates.ManualInPlaceUpdate)
	)
	for i, worker := range newShoot.Spec.Provider.Workers {
		old := WorkerNamed(oldShoot.Spec.Provider.Workers, worker.Name)
		if old == nil || !UpdatesInPlace(worker.UpdateStrategy) || !slices.Contains(pending, worker.Name) {
			continue
		}
		newPoolVersion, newErr := parseWorkerVersion(worker, newVersion)
		oldPoolVersion, oldErr := parseWorkerVersion(*old, oldVersion)
		if err := errors.Join(newErr, oldErr); err != nil {
			errs = append(errs, field.Forbidden(path.Index(i), fmt.Sprintf("the Kubernetes version cannot be compared with the old one: %v", err)))
			continue
		}
		if !sameValue(worker, *old) || !newPoolVersion.Equal(oldPoolVersion) ||
			!sameValue(workerKubelet(worker, newShoot.Spec.Kubernetes.Kubelet), workerKubelet(*old, oldShoot.Spec.Kubernetes.Kubelet)) {
			errs = append(errs, field.Forbidden(path.Index(i),
				fmt.Sprintf("worker pool %q, its Kubernetes version and its kubelet must not be changed while it is updated in "+
					"place; force it with the annotation %s=%s", worker.Name, constants.GardenerOperation, force)))
		}
	}
	return errs
}

// validateNodeLocalDNSUpdate refuses to switch the node-local DNS on or off if the nodes would have to be replaced
// for it.
func validateNodeLocalDNSUpdate(newSpec, oldSpec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	if usesNodeLocalDNS(newSpec) == usesNodeLocalDNS(oldSpec) {
		return nil
	}
	if slices.ContainsFunc(oldSpec.Provider.Workers, func(worker gardencore.Worker) bool {
		return UpdatesInPlace(worker.UpdateStrategy) &&
			(UsesIPVS(oldSpec) || versionBefore(workerVersion(worker, oldSpec.Kubernetes.Version), "1.34"))
	}) {
		return field.ErrorList{field.Forbidden(path.Child("systemComponents", "nodeLocalDNS"),
			"must not be switched on or off if worker pools are updated in place and run Kubernetes before 1.34, or kube-proxy runs in IPVS mode")}
	}
	return nil
}

func usesNodeLocalDNS(spec *gardencore.ShootSpec) bool {
	return spec.SystemComponents != nil && spec.SystemComponents.NodeLocalDNS != nil && spec.SystemComponents.NodeLocalDNS.Enabled
}

// ---- availability and hibernation ----

// validateFailureToleranceUpdate refuses to change the failure tolerance type once it is set and the shoot has a
// seed. It also refuses to make a hibernated shoot highly available.
func validateFailureToleranceUpdate(newShoot, oldShoot *gardencore.Shoot) field.ErrorList {
	var (
		errs             field.ErrorList
		path             = failureToleranceTypePath()
		newType, oldType = FailureToleranceType(&newShoot.Spec), FailureToleranceType(&oldShoot.Spec)
	)
	if oldType == nil {
		errs = append(errs, ForbiddenIf(newType != nil && inHibernation(newShoot), path,
			"must not be set while the Shoot is hibernated or wakes up")...)
	} else if newShoot.Spec.SeedName != nil {
		errs = append(errs, immutable(ptr.Deref(newType, ""), *oldType, path)...)
	}
	return errs
}

// validateHibernationUpdate refuses to hibernate a shoot while the data in etcd is being re-encrypted, or a key is
// being rotated.
func validateHibernationUpdate(newShoot, oldShoot *gardencore.Shoot) field.ErrorList {
	if HibernationEnabled(oldShoot.Spec.Hibernation) || !HibernationEnabled(newShoot.Spec.Hibernation) {
		return nil
	}
	var (
		errs   field.ErrorList
		path   = field.NewPath("spec", "hibernation", "enabled")
		phases = rotationsOf(&newShoot.Status)
	)
	switch phase := phases.etcdEncryptionKey; phase {
	case gardencore.RotationPreparing, gardencore.RotationCompleting:
		errs = append(errs, field.Forbidden(
			path, fmt.Sprintf("must not be true while status.credentials.rotation.etcdEncryptionKey.phase is %s", phase)))
	}
	switch phase := phases.serviceAccountKey; phase {
	case gardencore.RotationPreparing, gardencore.RotationPreparingWithoutWorkersRollout, gardencore.RotationCompleting:
		errs = append(errs, field.Forbidden(
			path, fmt.Sprintf("must not be true while status.credentials.rotation.serviceAccountKey.phase is %s", phase)))
	}
	return append(errs, ForbiddenIf(!resourcesToEncrypt(&oldShoot.Spec).Equal(encryptedResources(&oldShoot.Status)),
		path, "must not be true while a change of the encryption configuration is rolled out")...)
}
