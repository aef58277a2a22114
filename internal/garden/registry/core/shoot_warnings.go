package core

import (
	"fmt"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

const (
	// rotationInterval is the time after which credentials should be rotated again: Gardener's default of
	// --shoot-credentials-rotation-interval. A prepared rotation should be completed within a third of it.
	rotationInterval = 90 * 24 * time.Hour

	docs                = "https://github.com/gardener/gardener/blob/master/docs/usage/shoot-operations/"
	rotationDoc         = docs + "shoot_credentials_rotation.md"
	bindingMigrationDoc = docs + "secretbinding-to-credentialsbinding-migration.md"
)

// shootWarnings returns warnings about fields that a later Kubernetes version forbids, and about rotations that are
// due. It is called after the validation: what is forbidden already needs no warning.
func shootWarnings(shoot, old *gardencore.Shoot, now time.Time) []string {
	var warnings []string
	if old != nil {
		warnings = append(warnings, rotationWarnings(shoot, now)...)
	}
	spec, kubernetes := field.NewPath("spec"), field.NewPath("spec", "kubernetes")
	add := func(set bool, path *field.Path, format string, args ...any) {
		if set {
			warnings = append(warnings, fmt.Sprintf("%s is deprecated: %s", path, fmt.Sprintf(format, args...)))
		}
	}
	k, version := &shoot.Spec.Kubernetes, shoot.Spec.Kubernetes.Version
	add(k.KubeControllerManager != nil && k.KubeControllerManager.PodEvictionTimeout != nil,
		kubernetes.Child("kubeControllerManager", "podEvictionTimeout"),
		"it has no effect, and is forbidden from Kubernetes 1.33. Use defaultNotReadyTolerationSeconds and "+
			"defaultUnreachableTolerationSeconds of %s instead", kubernetes.Child("kubeAPIServer"))
	if resource.HasOperationAnnotation(shoot, v1beta1constants.OperationRotateETCDEncryptionKeyStart,
		v1beta1constants.OperationRotateETCDEncryptionKeyComplete) {
		warnings = append(warnings,
			fmt.Sprintf("the operation %s is deprecated: it is forbidden from Kubernetes 1.34. Use %s instead, which does the whole rotation",
				shoot.Annotations[v1beta1constants.GardenerOperation], v1beta1constants.OperationRotateETCDEncryptionKey))
	}
	add(k.ClusterAutoscaler != nil && k.ClusterAutoscaler.MaxEmptyBulkDelete != nil && !validation.VersionAtLeast(version, "1.33"),
		kubernetes.Child("clusterAutoscaler", "maxEmptyBulkDelete"),
		"it is not used but dropped, and forbidden from Kubernetes 1.33. Use maxScaleDownParallelism instead")
	add(validation.VersionAtLeast(version, "1.33") && ptr.Deref(shoot.Spec.CloudProfileName, "") != "", spec.Child("cloudProfileName"),
		"it has to be empty from Kubernetes 1.34. Use spec.cloudProfile.name instead")
	add(shoot.Spec.Addons != nil, spec.Child("addons"), "they are forbidden from Kubernetes 1.35")
	if validation.UsesIPVS(&shoot.Spec) && (validation.VersionAtLeast(version, "1.35") || old != nil && !validation.UsesIPVS(&old.Spec)) {
		add(true, kubernetes.Child("kubeProxy", "mode"), "IPVS is deprecated from Kubernetes 1.35. Use IPTables or NFTables instead")
	}
	add(k.KubeScheduler != nil && k.KubeScheduler.KubeMaxPDVols != nil, kubernetes.Child("kubeScheduler", "kubeMaxPDVols"),
		"it is forbidden from Kubernetes 1.35, where CSI drivers know the limit themselves")
	add(shoot.Spec.SecretBindingName != nil, spec.Child("secretBindingName"),
		"it is forbidden from Kubernetes 1.34. Use credentialsBindingName instead, see %s", bindingMigrationDoc)
	return append(warnings, ShootTemplateWarnings(&shoot.Spec, spec)...)
}

// ShootTemplateWarnings returns the warnings about a Shoot's spec that also apply to the Shoot template of a
// ManagedSeedSet.
func ShootTemplateWarnings(spec *gardencore.ShootSpec, path *field.Path) []string {
	var warnings []string
	if server := spec.Kubernetes.KubeAPIServer; server != nil {
		path := path.Child("kubernetes", "kubeAPIServer")
		if server.EnableAnonymousAuthentication != nil {
			warnings = append(warnings, fmt.Sprintf("%s is deprecated: it is forbidden from Kubernetes 1.35. Use the anonymous "+
				"section of a structured authentication configuration instead", path.Child("enableAnonymousAuthentication")))
		}
		if server.WatchCacheSizes != nil && server.WatchCacheSizes.Default != nil {
			warnings = append(warnings, fmt.Sprintf("%s is deprecated: it is forbidden from Kubernetes 1.35. The "+
				"kube-apiserver finds the size itself", path.Child("watchCacheSizes", "default")))
		}
	}
	if spec.DNS != nil {
		for i, provider := range spec.DNS.Providers {
			if provider.SecretName != nil {
				path := path.Child("dns", "providers").Index(i)
				warnings = append(warnings, fmt.Sprintf("%s is deprecated: it is forbidden from Kubernetes 1.35. Use %s instead",
					path.Child("secretName"), path.Child("credentialsRef")))
			}
		}
	}
	return warnings
}

// rotation is the rotation of one kind of credentials: the anchor in its documentation, when it began last and, if
// the user has to complete it, when it was prepared and when its completion was requested.
type rotation struct {
	name, anchor                         string
	begun, prepared, completionRequested *metav1.Time
}

func rotationWarnings(shoot *gardencore.Shoot, now time.Time) []string {
	before := func(t *metav1.Time, age time.Duration) bool { return t == nil || t.Add(age).Before(now) }
	old := before(&shoot.CreationTimestamp, rotationInterval)
	credentials := shoot.Status.Credentials
	if credentials == nil || credentials.Rotation == nil {
		if !old {
			return nil
		}
		return []string{fmt.Sprintf("you should rotate the shoot's credentials, see %s#gardener-provided-credentials", rotationDoc)}
	}
	var warnings []string
	for _, r := range rotations(shoot, credentials.Rotation) {
		if old && before(r.begun, rotationInterval) {
			warnings = append(warnings, fmt.Sprintf("you should rotate the %s, see %s#%s", r.name, rotationDoc, r.anchor))
		}
		if within := rotationInterval / 3; r.prepared != nil && before(r.prepared, within) &&
			(r.completionRequested == nil || !r.completionRequested.After(r.prepared.Time)) {
			warnings = append(warnings,
				fmt.Sprintf("you should complete the rotation of the %s, which has been prepared for more than %s", r.name, within))
		}
	}
	return warnings
}

func rotations(shoot *gardencore.Shoot, status *gardencore.ShootCredentialsRotation) []rotation {
	ca, etcd, account := ptr.Deref(status.CertificateAuthorities, gardencore.CARotation{}), ptr.Deref(status.ETCDEncryptionKey,
		gardencore.ETCDEncryptionKeyRotation{}), ptr.Deref(status.ServiceAccountKey, gardencore.ServiceAccountKeyRotation{})
	all := []rotation{
		{"certificate authorities", "certificate-authorities", ca.LastInitiationTime, ca.LastInitiationFinishedTime,
			ca.LastCompletionTriggeredTime},
		{"etcd encryption key", "etcd-encryption-key", etcd.LastInitiationTime, etcd.LastInitiationFinishedTime,
			etcd.LastCompletionTriggeredTime},
		{"service account token signing key", "serviceaccount-token-signing-key", account.LastInitiationTime,
			account.LastInitiationFinishedTime, account.LastCompletionTriggeredTime},
	}
	if ptr.Deref(shoot.Spec.Purpose, "") != gardencore.ShootPurposeTesting {
		begun := ptr.Deref(status.Observability, gardencore.ObservabilityRotation{}).LastInitiationTime
		all = append(all, rotation{name: "observability passwords", anchor: "observability-passwords-for-plutono", begun: begun})
	}
	if validation.SSHAccessEnabled(shoot) {
		begun := ptr.Deref(status.SSHKeypair, gardencore.ShootSSHKeypairRotation{}).LastInitiationTime
		all = append(all, rotation{name: "SSH key pair", anchor: "ssh-key-pair-for-worker-nodes", begun: begun})
	}
	return all
}
