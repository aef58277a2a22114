package corevalidation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// poolContext is the part of a shoot that the rules for a worker pool need.
type poolContext struct {
	kubernetes          *gardencore.Kubernetes
	namespace, provider string
	inTemplate          bool
}

func validateWorker(worker *gardencore.Worker, shoot poolContext, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validateShortName(worker.Name, path.Child("name")),
		validateMachine(&worker.Machine, shoot, path.Child("machine")),
		validateWorkerSize(worker, path),
		metav1validation.ValidateLabels(worker.Labels, path.Child("labels")),
		apivalidation.ValidateAnnotations(worker.Annotations, path.Child("annotations")),
		validateNodeTaints(worker.Taints, path.Child("taints")),
		validateWorkerKubernetes(worker.Kubernetes, shoot.kubernetes, path.Child("kubernetes")),
		Optional(worker.CABundle, path.Child("caBundle"), validateCABundle),
		validateVolumes(worker, path),
		Optional(worker.CRI, path.Child("cri"), validateWorkerCRI),
		validateMachineControllerManager(worker, path.Child("machineControllerManagerSettings")),
		validateWorkerControlPlane(worker.ControlPlane, shoot, path.Child("controlPlane")),
		validateSysctls(worker.Sysctls, path.Child("sysctls")),
	)
	if worker.ClusterAutoscaler != nil {
		errs = append(errs, ValidateClusterAutoscalerOptionsForWorker(worker.ClusterAutoscaler, path.Child("autoscaler"))...)
	}
	errs = append(errs, SupportedIfSet(path.Child("updateStrategy"), worker.UpdateStrategy, gardencore.AutoInPlaceUpdate,
		gardencore.AutoRollingUpdate, gardencore.ManualInPlaceUpdate)...)
	if worker.Priority != nil && *worker.Priority < -1 {
		errs = append(errs, field.Invalid(path.Child("priority"), *worker.Priority, "must not be less than -1"))
	}
	return errs
}

// validateShortName checks that name is a DNS label that is short enough to be a part of the names of machines and
// volumes.
func validateShortName(name string, path *field.Path) field.ErrorList {
	const maxLength = 15
	errs := validateDNSLabel(name, path)
	if len(name) > maxLength {
		errs = append(errs, field.TooLong(path, name, maxLength))
	}
	return errs
}

// ---- machines and their number ----

func validateMachine(machine *gardencore.Machine, shoot poolContext, path *field.Path) field.ErrorList {
	errs := RequiredIf(machine.Type == "", path.Child("type"), "must name a machine type")
	imagePath := path.Child("image")
	switch image := machine.Image; {
	case image == nil:
		errs = append(errs, RequiredIf(!shoot.inTemplate, imagePath, "must name a machine image")...)
	default:
		errs = append(errs, RequiredIf(image.Name == "", imagePath.Child("name"), "must name a machine image")...)
		errs = append(errs, RequiredIf(image.Version == "" && !shoot.inTemplate, imagePath.Child("version"),
			"must name a version of the machine image")...)
	}
	return append(errs, SupportedIfSet(path.Child("architecture"), machine.Architecture, constants.ValidArchitectures...)...)
}

func validateWorkerSize(worker *gardencore.Worker, path *field.Path) field.ErrorList {
	var (
		errs                       field.ErrorList
		surgePath, unavailablePath = path.Child("maxSurge"), path.Child("maxUnavailable")
	)
	errs = slices.Concat(errs,
		InvalidIf(worker.Minimum < 0, path.Child("minimum"), worker.Minimum, apivalidation.IsNegativeErrorMsg),
		InvalidIf(worker.Maximum < 0, path.Child("maximum"), worker.Maximum, apivalidation.IsNegativeErrorMsg),
		ForbiddenIf(worker.Maximum < worker.Minimum, path.Child("maximum"), "must not be less than the minimum"),
		validateNumberOrPercentage(worker.MaxSurge, surgePath),
		validateNumberOrPercentage(worker.MaxUnavailable, unavailablePath),
	)
	if worker.MaxUnavailable != nil {
		if percent, _ := percentage(*worker.MaxUnavailable); percent > 100 {
			errs = append(errs, field.Invalid(unavailablePath, worker.MaxUnavailable, "must not be more than 100%"))
		}
	}
	if ptr.Deref(worker.UpdateStrategy, "") == gardencore.ManualInPlaceUpdate {
		notManual := fmt.Sprintf("must not be set with the update strategy %s", gardencore.ManualInPlaceUpdate)
		errs = append(errs, InvalidIf(worker.MaxSurge != nil, surgePath, worker.MaxSurge, notManual)...)
		errs = append(errs, InvalidIf(worker.MaxUnavailable != nil, unavailablePath, worker.MaxUnavailable, notManual)...)
	} else if isZero(worker.MaxSurge) && isZero(worker.MaxUnavailable) {
		errs = append(errs, field.Invalid(unavailablePath, worker.MaxUnavailable, "must not be 0 if maxSurge is"))
	}
	return errs
}

func validateNumberOrPercentage(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	switch {
	case value == nil:
		return nil
	case value.Type == intstr.Int:
		return apivalidation.ValidateNonnegativeField(int64(value.IntVal), path)
	}
	_, ok := percentage(*value)
	return InvalidIf(!ok, path, value, "must be a number or a percentage like 5%")
}

func validateMachineControllerManager(worker *gardencore.Worker, path *field.Path) field.ErrorList {
	settings := worker.MachineControllerManagerSettings
	if settings == nil {
		return nil
	}
	errs := slices.Concat(
		validateNotNegativeDuration(settings.MachineDrainTimeout, path.Child("machineDrainTimeout")),
		validateNotNegativeDuration(settings.MachineHealthTimeout, path.Child("machineHealthTimeout")),
		validateNotNegativeDuration(settings.MachineCreationTimeout, path.Child("machineCreationTimeout")),
		validateNotNegativeDuration(settings.MachinePreserveTimeout, path.Child("machinePreserveTimeout")),
		apivalidation.ValidateNonnegativeField(int64(ptr.Deref(settings.MaxEvictRetries, 0)), path.Child("maxEvictRetries")),
	)
	if timeoutPath := path.Child("inPlaceUpdateTimeout"); UpdatesInPlace(worker.UpdateStrategy) {
		errs = append(errs, validateNotNegativeDuration(settings.MachineInPlaceUpdateTimeout, timeoutPath)...)
	} else {
		const notInPlace = "must not be set unless the update strategy is in place"
		errs = append(errs, ForbiddenIf(settings.MachineInPlaceUpdateTimeout != nil, timeoutPath, notInPlace)...)
		errs = append(errs, ForbiddenIf(ptr.Deref(settings.DisableHealthTimeout, false), path.Child("disableHealthTimeout"), notInPlace)...)
	}
	if preserved := settings.AutoPreserveFailedMachineMax; preserved != nil {
		errs = append(errs, validatePreservedMachines(*preserved, worker, path.Child("autoPreserveFailedMachineMax"))...)
	}
	return errs
}

// validatePreservedMachines checks that not more machines are preserved than there are, and that one remains for
// system components if the pool allows them.
func validatePreservedMachines(preserved int32, worker *gardencore.Worker, path *field.Path) field.ErrorList {
	switch {
	case preserved < 0:
		return field.ErrorList{field.Invalid(path, preserved, apivalidation.IsNegativeErrorMsg)}
	case systemComponentsAllowed(*worker) && worker.Maximum > 0 && preserved > worker.Maximum-1:
		return field.ErrorList{field.Invalid(path, preserved, "must be less than the maximum if the worker pool allows system components")}
	case preserved > worker.Maximum:
		return field.ErrorList{field.Invalid(path, preserved, "must not be greater than the maximum")}
	}
	return nil
}

// ---- Kubernetes and the container runtime ----

// validateWorkerKubernetes checks the Kubernetes version of a worker pool, which may be up to three minor versions
// behind the control plane's, and the kubelet configuration for this version.
func validateWorkerKubernetes(worker *gardencore.WorkerKubernetes, shoot *gardencore.Kubernetes, path *field.Path) field.ErrorList {
	if worker == nil {
		return nil
	}
	var errs field.ErrorList
	if worker.Version != nil {
		errs = append(errs, validateVersionSkew(*worker.Version, shoot.Version, path.Child("version"))...)
	}
	kubelet := worker.Kubelet
	if kubelet == nil {
		kubelet = shoot.Kubelet
	}
	if kubelet != nil {
		errs = append(errs, ValidateKubeletConfig(*kubelet, ptr.Deref(worker.Version, shoot.Version), path.Child("kubelet"))...)
	}
	return errs
}

func validateVersionSkew(worker, controlPlane string, path *field.Path) field.ErrorList {
	const maxSkew = 3
	newer, err := CompareVersions(worker, ">", controlPlane)
	if err != nil {
		return field.ErrorList{field.Invalid(path, worker, fmt.Sprintf("cannot be compared with the control plane's: %v", err))}
	}
	errs := ForbiddenIf(newer, path, "must not be newer than the control plane's")
	tooNew, err := minorsAhead(worker, maxSkew+1)
	if err == nil {
		var behind bool
		if behind, err = CompareVersions(controlPlane, ">=", tooNew); behind {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("must be at most %d minor versions behind the control plane's", maxSkew)))
		}
	}
	if err != nil {
		errs = append(errs, field.Invalid(path, worker, err.Error()))
	}
	return errs
}

func validateWorkerCRI(cri gardencore.CRI, path *field.Path) field.ErrorList {
	errs := Supported(path.Child("name"), cri.Name, gardencore.CRINameContainerD)
	types := sets.New[string]()
	for i, runtime := range cri.ContainerRuntimes {
		typePath := path.Child("containerruntimes").Index(i).Child("type") // as in Gardener's errors
		errs = append(errs, Required(typePath, runtime.Type)...)
		errs = append(errs, Distinct(typePath, types, runtime.Type)...)
	}
	return errs
}

// ---- volumes ----

var volumeSizePattern = regexp.MustCompile(`^[0-9]+Gi$`)

func validateVolumes(worker *gardencore.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if volume := worker.Volume; volume != nil {
		errs = append(errs, Optional(volume.Name, path.Child("volume", "name"), validateVolumeName)...)
		errs = append(errs, validateVolumeSize(volume.VolumeSize, path.Child("volume", "size"))...)
	} else if len(worker.DataVolumes) > 0 {
		errs = append(errs, field.Required(path.Child("volume"), "must be set if there are data volumes"))
	}
	names := sets.New[string]()
	for i, volume := range worker.DataVolumes {
		idxPath := path.Child("dataVolumes").Index(i)
		errs = append(errs, validateVolumeName(volume.Name, idxPath.Child("name"))...)
		errs = append(errs, Distinct(idxPath.Child("name"), names, volume.Name)...)
		errs = append(errs, validateVolumeSize(volume.VolumeSize, idxPath.Child("size"))...)
	}
	if name := worker.KubeletDataVolumeName; name != nil && !names.Has(*name) {
		errs = append(errs, field.Invalid(path.Child("kubeletDataVolumeName"), *name, "must be the name of one of the data volumes"))
	}
	return errs
}

func validateVolumeName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return Required(path, name)
	}
	return validateShortName(name, path)
}

func validateVolumeSize(size string, path *field.Path) field.ErrorList {
	return InvalidIf(!volumeSizePattern.MatchString(size), path, size, "must be in whole Gi, like 50Gi")
}

// ---- nodes ----

// validateNodeTaints checks that the taints are valid, differ in key or effect, and do not include the one that
// Gardener itself sets.
func validateNodeTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := sets.New[identity]()
	for i, taint := range taints {
		idxPath := path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(taint.Key, idxPath.Child("key"))...)
		errs = append(errs, ForbiddenIf(taint.Key == constants.TaintNodeCriticalComponentsNotReady, idxPath.Child("key"),
			"is reserved for Gardener")...)
		if messages := validation.IsValidLabelValue(taint.Value); len(messages) > 0 {
			errs = append(errs, field.Invalid(idxPath.Child("value"), taint.Value, strings.Join(messages, "; ")))
		}
		if taint.Effect == "" {
			errs = append(errs, field.Required(idxPath.Child("effect"), "must not be empty"))
		} else {
			errs = append(errs, Supported(idxPath.Child("effect"), taint.Effect,
				corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		}
		if !insertNew(seen, identity{taint.Key, taint.Effect}) {
			errs = append(errs, field.Duplicate(idxPath, taint))
		}
	}
	return errs
}

var sysctlPattern = regexp.MustCompile(`^(([-0-9A-Za-z][-/0-9A-Z_a-z]*|\*)\.)*[-/0-9A-Z_a-z]*[0-9A-Za-z]$`)

// validateSysctls checks that the keys can be paths below /proc/sys, and have values.
func validateSysctls(sysctls map[string]string, path *field.Path) field.ErrorList {
	const (
		maxNameLength = 255
		maxKeyLength  = 4096 - len("/proc/sys/")
	)
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(sysctls)) {
		keyPath := path.Child(key)
		errs = append(errs, InvalidIf(!sysctlPattern.MatchString(key), keyPath, key, "must be a sysctl key like net.ipv4.ip_forward")...)
		if len(key) > maxKeyLength {
			errs = append(errs, field.TooLong(keyPath, key, maxKeyLength))
		}
		for name := range strings.SplitSeq(key, ".") {
			errs = append(errs, InvalidIf(len(name) > maxNameLength, keyPath, name,
				fmt.Sprintf("must not be longer than %d between dots", maxNameLength))...)
		}
		errs = append(errs, Required(keyPath, sysctls[key])...)
	}
	return errs
}

// ---- control planes of self-hosted shoots ----

func validateWorkerControlPlane(controlPlane *gardencore.WorkerControlPlane, shoot poolContext, path *field.Path) field.ErrorList {
	if controlPlane == nil {
		return nil
	}
	var errs field.ErrorList
	if controlPlane.Backup != nil {
		errs = append(errs, validateControlPlaneBackup(controlPlane.Backup, shoot, path.Child("backup"))...)
	}
	if exposure := controlPlane.Exposure; exposure != nil && exposure.Extension != nil {
		exposurePath := path.Child("exposure")
		errs = append(errs, InvalidIf(exposure.DNS != nil, exposurePath, "", "must not have both dns and extension")...)
		errs = append(errs, requiredName(exposurePath.Child("type"), ptr.Deref(exposure.Extension.Type, ""), validation.IsDNS1123Label)...)
	}
	return errs
}

func validateControlPlaneBackup(backup *gardencore.Backup, shoot poolContext, path *field.Path) field.ErrorList {
	errs := Required(path.Child("provider"), backup.Provider)
	errs = append(errs, RequiredIf(backup.Provider != shoot.provider && ptr.Deref(backup.Region, "") == "",
		path.Child("region"), "must be set if the provider of the backups is not spec.provider.type")...)
	refPath := path.Child("credentialsRef")
	if backup.CredentialsRef == nil {
		return append(errs, field.Required(refPath, "must refer to a Secret"))
	}
	ref := *backup.CredentialsRef
	errs = append(errs, ValidateCredentialsRef(ref, refPath)...)
	errs = append(errs, ForbiddenIf(ref.Namespace != shoot.namespace, refPath.Child("namespace"), "must be the namespace of the Shoot")...)
	if ref.APIVersion == securityv1alpha1.SchemeGroupVersion.String() && ref.Kind == workloadIdentityGVK.Kind {
		errs = append(errs, field.Forbidden(refPath, "must not be a WorkloadIdentity: backups do not support it yet"))
	}
	return errs
}
