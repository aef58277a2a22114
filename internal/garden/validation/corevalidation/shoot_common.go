package corevalidation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ---- reading shoots ----

// IsSelfHosted reports whether one of the worker pools is for the control plane.
func IsSelfHosted(workers []gardencore.Worker) bool { return controlPlanePool(workers) >= 0 }

// controlPlanePool returns the index of the worker pool for the control plane, or -1 if there is none.
func controlPlanePool(workers []gardencore.Worker) int {
	return slices.IndexFunc(workers, func(worker gardencore.Worker) bool { return worker.ControlPlane != nil })
}

// Find returns a pointer to the first matching item of the slice, and nil if there is none.
func Find[T any](items []T, matches func(*T) bool) *T {
	for i := range items {
		if matches(&items[i]) {
			return &items[i]
		}
	}
	return nil
}

// WorkerNamed returns the worker pool with the given name, and nil if there is none.
func WorkerNamed(workers []gardencore.Worker, name string) *gardencore.Worker {
	return Find(workers, func(worker *gardencore.Worker) bool { return worker.Name == name })
}

// PrimaryDNSProvider returns the first provider that is marked as primary, and nil if none is.
func PrimaryDNSProvider(providers []gardencore.DNSProvider) *gardencore.DNSProvider {
	return Find(providers, func(provider *gardencore.DNSProvider) bool { return ptr.Deref(provider.Primary, false) })
}

// workerVersion returns the Kubernetes version of a worker pool, which is the control plane's unless it has its own.
func workerVersion(worker gardencore.Worker, controlPlane string) string {
	if worker.Kubernetes == nil {
		return controlPlane
	}
	return ptr.Deref(worker.Kubernetes.Version, controlPlane)
}

// parseWorkerVersion is like workerVersion, for parsed versions.
func parseWorkerVersion(worker gardencore.Worker, controlPlane *semver.Version) (*semver.Version, error) {
	if worker.Kubernetes == nil || worker.Kubernetes.Version == nil {
		return controlPlane, nil
	}
	return semver.NewVersion(*worker.Kubernetes.Version)
}

// workerKubelet returns the kubelet configuration of a worker pool, which is the shoot's unless it has its own.
func workerKubelet(worker gardencore.Worker, shoot *gardencore.KubeletConfig) *gardencore.KubeletConfig {
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		return worker.Kubernetes.Kubelet
	}
	return shoot
}

func controlPlaneBackup(worker gardencore.Worker) *gardencore.Backup {
	return ptr.Deref(worker.ControlPlane, gardencore.WorkerControlPlane{}).Backup
}

// UpdatesInPlace reports whether the nodes of a worker pool are updated in place when their machine image or Kubernetes
// version changes.
func UpdatesInPlace(strategy *gardencore.MachineUpdateStrategy) bool {
	value := ptr.Deref(strategy, "")
	return value == gardencore.AutoInPlaceUpdate || value == gardencore.ManualInPlaceUpdate
}

func systemComponentsAllowed(worker gardencore.Worker) bool {
	return worker.SystemComponents == nil || worker.SystemComponents.Allow
}

// HibernationEnabled reports whether the specification enables hibernation.
func HibernationEnabled(hibernation *gardencore.Hibernation) bool {
	return hibernation != nil && ptr.Deref(hibernation.Enabled, false)
}

// inHibernation reports whether the shoot is hibernated, is being hibernated, or is waking up.
func inHibernation(shoot *gardencore.Shoot) bool {
	return HibernationEnabled(shoot.Spec.Hibernation) || shoot.Status.IsHibernated
}

// SSHAccessEnabled reports whether a shoot has worker nodes that can be reached with SSH.
func SSHAccessEnabled(shoot *gardencore.Shoot) bool {
	settings := shoot.Spec.Provider.WorkersSettings
	return len(shoot.Spec.Provider.Workers) > 0 && (settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled)
}

// UsesIPVS reports whether kube-proxy runs in IPVS mode.
func UsesIPVS(spec *gardencore.ShootSpec) bool {
	proxy := spec.Kubernetes.KubeProxy
	return proxy != nil && ptr.Deref(proxy.Enabled, false) && ptr.Deref(proxy.Mode, "") == gardencore.ProxyModeIPVS
}

// NginxIngressEnabled reports whether the nginx ingress add-on is enabled.
func NginxIngressEnabled(addons *gardencore.Addons) bool {
	return addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled
}

// FailureToleranceType returns nil for a control plane without high availability.
func FailureToleranceType(spec *gardencore.ShootSpec) *gardencore.FailureToleranceType {
	if spec.ControlPlane == nil || spec.ControlPlane.HighAvailability == nil {
		return nil
	}
	return &spec.ControlPlane.HighAvailability.FailureTolerance.Type
}

func toleratesZoneFailure(spec *gardencore.ShootSpec) bool {
	return ptr.Deref(FailureToleranceType(spec), "") == gardencore.FailureToleranceTypeZone
}

// ControlPlaneZones returns the zones of the seed to which the control plane is pinned.
func ControlPlaneZones(spec *gardencore.ShootSpec) []string {
	return ptr.Deref(spec.ControlPlane, gardencore.ControlPlane{}).Zones
}

func failureToleranceTypePath() *field.Path {
	return field.NewPath("spec", "controlPlane", "highAvailability", "failureTolerance", "type")
}

// encryptionConfig returns the encryption of etcd in the specification, encryptionAtRest the one in the status.
func encryptionConfig(spec *gardencore.ShootSpec) gardencore.EncryptionConfig {
	server := ptr.Deref(spec.Kubernetes.KubeAPIServer, gardencore.KubeAPIServerConfig{})
	return ptr.Deref(server.EncryptionConfig, gardencore.EncryptionConfig{})
}

func encryptionAtRest(status *gardencore.ShootStatus) gardencore.EncryptionAtRest {
	credentials := ptr.Deref(status.Credentials, gardencore.ShootCredentials{})
	return ptr.Deref(credentials.EncryptionAtRest, gardencore.EncryptionAtRest{})
}

// resourcesToEncrypt returns the encrypted resources in the specification, encryptedResources those in the status. Both
// leave out the resources that are always encrypted.
func resourcesToEncrypt(spec *gardencore.ShootSpec) sets.Set[schema.GroupResource] {
	return parseGroupResources(encryptionConfig(spec).Resources)
}

func encryptedResources(status *gardencore.ShootStatus) sets.Set[schema.GroupResource] {
	return parseGroupResources(encryptionAtRest(status).Resources)
}

func parseGroupResources(names []string) sets.Set[schema.GroupResource] {
	resources := sets.New[schema.GroupResource]()
	for _, name := range names {
		resources.Insert(schema.ParseGroupResource(name))
	}
	return resources
}

// rotations are the phases of the rotations that have several phases.
type rotations struct {
	certificateAuthorities, serviceAccountKey, etcdEncryptionKey gardencore.CredentialsRotationPhase
}

func rotationsOf(status *gardencore.ShootStatus) rotations {
	if status.Credentials == nil || status.Credentials.Rotation == nil {
		return rotations{}
	}
	rotation := status.Credentials.Rotation
	return rotations{
		certificateAuthorities: ptr.Deref(rotation.CertificateAuthorities, gardencore.CARotation{}).Phase,
		serviceAccountKey:      ptr.Deref(rotation.ServiceAccountKey, gardencore.ServiceAccountKeyRotation{}).Phase,
		etcdEncryptionKey:      ptr.Deref(rotation.ETCDEncryptionKey, gardencore.ETCDEncryptionKeyRotation{}).Phase,
	}
}

// rotationUnderway reports whether a rotation has begun and is not completed.
func rotationUnderway(phase gardencore.CredentialsRotationPhase) bool {
	return phase != "" && phase != gardencore.RotationCompleted
}

// ---- values ----

func validateDNSLabel(value string, path *field.Path) field.ErrorList {
	return InvalidEach(path, value, validation.IsDNS1123Label(value))
}

func validateNotNegativeDuration(duration *metav1.Duration, path *field.Path) field.ErrorList {
	if duration == nil || duration.Duration >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must not be negative")}
}

// percentage parses a value like 20%.
func percentage(value intstr.IntOrString) (percent int, ok bool) {
	if value.Type != intstr.String || len(validation.IsValidPercent(value.StrVal)) > 0 {
		return 0, false
	}
	// Atoi returns the largest int for a number that is too large.
	percent, _ = strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	return percent, true
}

// isZero reports whether a number of machines or a percentage is missing or zero.
func isZero(value *intstr.IntOrString) bool {
	if value == nil {
		return true
	}
	if percent, ok := percentage(*value); ok {
		return percent == 0
	}
	return value.IntValue() == 0
}

// ---- versions ----

// CompareVersions reports whether version is <, <=, > or >= other. It ignores pre-releases and build metadata.
func CompareVersions(version, operator, other string) (bool, error) {
	parsed, err := semver.NewVersion(releaseOf(version))
	if err != nil {
		return false, fmt.Errorf("version %q: %w", version, err)
	}
	constraint, err := semver.NewConstraint(operator + " " + releaseOf(other))
	if err != nil {
		return false, fmt.Errorf("version %q: %w", other, err)
	}
	return constraint.Check(parsed), nil
}

func releaseOf(version string) string {
	version = strings.ReplaceAll(version, "v", "")
	if i := strings.IndexAny(version, "-+~"); i >= 0 {
		version = version[:i]
	}
	return version
}

// minorsAhead returns the first patch version of the minor version that is this many minor versions ahead.
func minorsAhead(version string, minors int) (string, error) {
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return "", fmt.Errorf("version %q: %w", version, err)
	}
	return semver.New(parsed.Major(), parsed.Minor()+uint64(minors), 0, "", "").String(), nil
}
