package corevalidation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// kubernetesOptions are the conditions outside of spec.kubernetes on which its validation depends.
type kubernetesOptions struct {
	// keepsAcceptedIssuers says that an update does not change the accepted issuers. They are not validated then,
	// because they may be older than the rules for them.
	keepsAcceptedIssuers bool
	// rotatesETCDKey says that the etcd encryption key is rotated automatically.
	rotatesETCDKey bool
}

// newKubernetesOptions returns the options for a specification. oldSpec is nil for a new shoot.
func newKubernetesOptions(newSpec, oldSpec *gardencore.ShootSpec) kubernetesOptions {
	options := kubernetesOptions{rotatesETCDKey: rotatesETCDKey(newSpec.Maintenance)}
	if oldSpec != nil {
		accounts, oldAccounts := serviceAccountConfig(newSpec), serviceAccountConfig(oldSpec)
		options.keepsAcceptedIssuers = accounts != nil && oldAccounts != nil &&
			sameValue(accounts.AcceptedIssuers, oldAccounts.AcceptedIssuers)
	}
	return options
}

func serviceAccountConfig(spec *gardencore.ShootSpec) *gardencore.ServiceAccountConfig {
	return ptr.Deref(spec.Kubernetes.KubeAPIServer, gardencore.KubeAPIServerConfig{}).ServiceAccountConfig
}

func rotatesETCDKey(maintenance *gardencore.Maintenance) bool {
	if maintenance == nil || maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return false
	}
	config := maintenance.AutoRotation.Credentials.ETCDEncryptionKey
	return config != nil && config.RotationPeriod != nil && config.RotationPeriod.Duration != 0
}

// validateKubernetes checks spec.kubernetes. A shoot without workers must not configure the components that need nodes.
func validateKubernetes(kubernetes gardencore.Kubernetes, networking *gardencore.Networking, options kubernetesOptions,
	workerless bool, path *field.Path) field.ErrorList {
	version := kubernetes.Version
	if version == "" {
		return field.ErrorList{field.Required(path.Child("version"), "must name a version of Kubernetes")}
	}
	errs := slices.Concat(
		Optional(kubernetes.ETCD, path.Child("etcd"), validateETCD),
		validateKubeAPIServer(kubernetes.KubeAPIServer, version, options, workerless, path.Child("kubeAPIServer")),
		validateKubeControllerManager(kubernetes.KubeControllerManager, networking, version, workerless, path.Child("kubeControllerManager")),
	)
	if workerless {
		return append(errs, validateWorkerlessKubernetes(kubernetes, path)...)
	}
	errs = slices.Concat(errs,
		validateKubeScheduler(kubernetes.KubeScheduler, version, path.Child("kubeScheduler")),
		validateKubeProxy(kubernetes.KubeProxy, version, path.Child("kubeProxy")),
		validateClusterAutoscaler(kubernetes.ClusterAutoscaler, version, path.Child("clusterAutoscaler")),
		Optional(kubernetes.VerticalPodAutoscaler, path.Child("verticalPodAutoscaler"), validateVerticalPodAutoscaler),
	)
	if kubernetes.Kubelet != nil {
		errs = append(errs, ValidateKubeletConfig(*kubernetes.Kubelet, version, path.Child("kubelet"))...)
	}
	return errs
}

func validateWorkerlessKubernetes(kubernetes gardencore.Kubernetes, path *field.Path) field.ErrorList {
	return slices.Concat( // with the names in Gardener's errors
		ForbiddenIf(kubernetes.KubeScheduler != nil, path.Child("kubeScheduler"), notForWorkerlessShoots),
		ForbiddenIf(kubernetes.KubeProxy != nil, path.Child("kubeProxy"), notForWorkerlessShoots),
		ForbiddenIf(kubernetes.Kubelet != nil, path.Child("kubelet"), notForWorkerlessShoots),
		ForbiddenIf(kubernetes.ClusterAutoscaler != nil, path.Child("clusterAutoScaler"), notForWorkerlessShoots),
		ForbiddenIf(kubernetes.VerticalPodAutoscaler != nil, path.Child("verticalPodAutoScaler"), notForWorkerlessShoots),
	)
}

func validateETCD(etcd gardencore.ETCD, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, instance := range []struct {
		name, memory string
		config       *gardencore.ETCDConfig
	}{{"main", "300M", etcd.Main}, {"events", "60M", etcd.Events}} {
		if instance.config != nil {
			errs = append(errs, validateControlPlaneAutoscaling(instance.config.Autoscaling,
				resourceMinimum{corev1.ResourceMemory: instance.memory}, path.Child(instance.name, "autoscaling"))...)
		}
	}
	return errs
}

// ---- updates ----

// validateKubernetesUpdate refuses to downgrade the version, to skip a minor version, and to change the mask sizes of
// the nodes' ranges. The mask size for IPv6 may be added.
func validateKubernetesUpdate(newSpec, oldSpec *gardencore.ShootSpec, path *field.Path) field.ErrorList {
	var (
		errs     = validateShootVersionUpdate(newSpec.Kubernetes.Version, oldSpec.Kubernetes.Version, false, path.Child("version"))
		kcm      = ptr.Deref(newSpec.Kubernetes.KubeControllerManager, gardencore.KubeControllerManagerConfig{})
		oldKCM   = ptr.Deref(oldSpec.Kubernetes.KubeControllerManager, gardencore.KubeControllerManagerConfig{})
		kcmPath  = path.Child("kubeControllerManager")
		maskPath = kcmPath.Child("nodeCIDRMaskSize")
	)
	errs = append(errs, immutable(kcm.NodeCIDRMaskSize, oldKCM.NodeCIDRMaskSize, maskPath)...)
	return append(errs, immutableOnceSet(kcm.NodeCIDRMaskSizeIPv6, oldKCM.NodeCIDRMaskSizeIPv6, kcmPath.Child("nodeCIDRMaskSizeIPv6"))...)
}

// validateEncryptionConfigUpdate refuses to change the encrypted resources and the encryption provider at the same
// time, or while another change or a key rotation is in progress.
func validateEncryptionConfigUpdate(newShoot, oldShoot *gardencore.Shoot, path *field.Path) field.ErrorList {
	var (
		resources, oldResources = resourcesToEncrypt(&newShoot.Spec), resourcesToEncrypt(&oldShoot.Spec)
		provider                = ptr.Deref(encryptionConfig(&newShoot.Spec).Provider.Type, "")
		oldProvider             = ptr.Deref(encryptionConfig(&oldShoot.Spec).Provider.Type, "")
		current                 = encryptionAtRest(&newShoot.Status).Provider.Type

		resourcesChange, providerChanges = !resources.Equal(oldResources), provider != oldProvider

		rollingOut   = !oldResources.Equal(encryptedResources(&newShoot.Status)) || oldProvider != current
		providerPath = path.Child("provider", "type")
		errs         field.ErrorList
	)
	for _, change := range []struct {
		made bool
		path *field.Path
	}{{resourcesChange, path.Child("resources")}, {providerChanges, providerPath}} {
		if !change.made {
			continue
		}
		errs = slices.Concat(errs,
			ForbiddenIf(rotationUnderway(rotationsOf(&newShoot.Status).etcdEncryptionKey), change.path,
				"must not be changed while the key of etcd's encryption is being rotated"),
			ForbiddenIf(rollingOut, change.path, "must not be changed before the last change of the encryption is rolled out"),
			ForbiddenIf(HibernationEnabled(newShoot.Spec.Hibernation), change.path, "must not be changed in hibernation"),
		)
	}
	if providerChanges {
		errs = append(errs, ForbiddenIf(!readyForRotation(newShoot.Status.LastOperation), providerPath,
			"must not be changed before the Shoot is created")...)
		errs = append(errs, ForbiddenIf(resourcesChange, providerPath, "must not be changed together with the resources")...)
	}
	return errs
}

// ---- what the components have in common ----

// VersionAtLeast reports whether the version is of the minor version or a later one, versionBefore whether it is of
// an earlier one. Pre-releases count as their minor version. For a version that cannot be parsed, both return false.
func VersionAtLeast(version, minor string) bool {
	later, err := CompareVersions(version, ">=", minor)
	return err == nil && later
}

func versionBefore(version, minor string) bool {
	older, err := CompareVersions(version, "<", minor)
	return err == nil && older
}

// NotNegative refuses a negative number.
func NotNegative[T ~int | ~int32 | ~int64](value *T, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(ptr.Deref(value, 0)), path)
}

// optionalQuantity refuses a quantity that is negative.
func optionalQuantity(value *resource.Quantity, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return validateQuantity("", *value, path)
}
