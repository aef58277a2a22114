package corevalidation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/utils/timewindow"
)

// ---- add-ons ----

// mayEnableNginxIngress reports whether the operator allows the add-on. A shoot that has it enabled already may keep
// it.
func mayEnableNginxIngress(old *gardencore.Addons) bool {
	return !FeatureGate.Enabled(DisableNginxIngressInShoot) || NginxIngressEnabled(old)
}

func validateAddons(spec *gardencore.ShootSpec, workerless, allowNginxIngress bool, path *field.Path) field.ErrorList {
	addons := spec.Addons
	switch {
	case addons == nil:
		return nil
	case workerless:
		return field.ErrorList{field.Forbidden(path, notForWorkerlessShoots)}
	case VersionAtLeast(spec.Kubernetes.Version, "1.35"):
		return field.ErrorList{field.Forbidden(path, "must not be set from Kubernetes 1.35 on")}
	}
	var (
		errs      field.ErrorList
		dashboard = addons.KubernetesDashboard != nil && addons.KubernetesDashboard.Enabled
		nginx     = NginxIngressEnabled(addons)
	)
	if (nginx || dashboard) && ptr.Deref(spec.Purpose, gardencore.ShootPurposeEvaluation) != gardencore.ShootPurposeEvaluation {
		errs = append(errs, field.Forbidden(path, "must not be enabled unless spec.purpose is evaluation"))
	}
	if nginx {
		errs = append(errs, ForbiddenIf(!allowNginxIngress, path.Child("nginxIngress", "enabled"), "must not be enabled in this landscape")...)
		errs = append(errs, validateNginxIngress(addons.NginxIngress, path.Child("nginxIngress"))...)
	}
	if dashboard {
		errs = append(errs, SupportedIfSet(path.Child("kubernetesDashboard", "authenticationMode"),
			addons.KubernetesDashboard.AuthenticationMode, gardencore.KubernetesDashboardAuthModeToken)...)
	}
	return errs
}

func validateNginxIngress(nginx *gardencore.NginxIngress, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range nginx.LoadBalancerSourceRanges {
		errs = append(errs, validation.IsValidCIDR(path.Child("loadBalancerSourceRanges").Index(i), cidr)...)
	}
	errs = append(errs, validateData(nginx.Config, path.Child("config"))...)
	return append(errs, validateExternalTrafficPolicy(nginx.ExternalTrafficPolicy, path.Child("externalTrafficPolicy"))...)
}

// ---- maintenance ----

func validateMaintenance(maintenance *gardencore.Maintenance, workerless bool, path *field.Path) field.ErrorList {
	if maintenance == nil {
		return nil
	}
	var errs field.ErrorList
	if workerless && maintenance.AutoUpdate != nil && maintenance.AutoUpdate.MachineImageVersion != nil {
		errs = append(errs, field.Forbidden(path.Child("autoUpdate", "machineImageVersion"), notForWorkerlessShoots))
	}
	if rotation := maintenance.AutoRotation; rotation != nil && rotation.Credentials != nil {
		errs = append(errs, validateAutoRotation(rotation.Credentials, workerless, path.Child("autoRotation", "credentials"))...)
	}
	if maintenance.TimeWindow != nil {
		errs = append(errs, validateTimeWindow(maintenance.TimeWindow, path.Child("timeWindow"))...)
	}
	return errs
}

func validateAutoRotation(credentials *gardencore.MaintenanceCredentialsAutoRotation, workerless bool, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		validateRotationPeriod(credentials.Observability, path.Child("observability")),
		validateRotationPeriod(credentials.ETCDEncryptionKey, path.Child("etcdEncryptionKey")),
	)
	switch sshPath := path.Child("sshKeypair"); {
	case credentials.SSHKeypair == nil:
	case workerless:
		errs = append(errs, field.Forbidden(sshPath, notForWorkerlessShoots))
	default:
		errs = append(errs, validateRotationPeriod(credentials.SSHKeypair, sshPath)...)
	}
	return errs
}

// validateRotationPeriod allows periods from 30 minutes to 90 days, and 0 for no rotation.
func validateRotationPeriod(config *gardencore.MaintenanceRotationConfig, path *field.Path) field.ErrorList {
	const minimum, maximum = 30 * time.Minute, 90 * 24 * time.Hour
	if config == nil || config.RotationPeriod == nil {
		return nil
	}
	period := config.RotationPeriod.Duration
	return InvalidIf(period != 0 && (period < minimum || period > maximum), path.Child("rotationPeriod"), period.String(),
		"must be 0, which turns the rotation off, or between 30m and 2160h")
}

func validateTimeWindow(window *gardencore.MaintenanceTimeWindow, path *field.Path) field.ErrorList {
	parsed, err := timewindow.ParseMaintenanceTimeWindow(window.Begin, window.End)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("begin/end"), window, fmt.Sprintf("must be times like 220000+0100: %v", err))}
	}
	const minimum, maximum = gardencore.MaintenanceTimeWindowDurationMinimum, gardencore.MaintenanceTimeWindowDurationMaximum
	duration := parsed.Duration()
	return InvalidIf(duration < minimum || duration > maximum, path, duration.String(),
		fmt.Sprintf("must be between %s and %s long", minimum, maximum))
}

// ---- monitoring ----

var emailPattern = regexp.MustCompile(`^[^@]+@([-0-9A-Za-z]+\.)+[A-Za-z]{2,}$`)

func validateMonitoring(monitoring *gardencore.Monitoring, path *field.Path) field.ErrorList {
	if monitoring == nil || monitoring.Alerting == nil {
		return nil
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, email := range monitoring.Alerting.EmailReceivers {
		idxPath := path.Child("alerting", "emailReceivers").Index(i)
		errs = append(errs, InvalidIf(!emailPattern.MatchString(email), idxPath, email, "must be an e-mail address")...)
		errs = append(errs, Distinct(idxPath, seen, email)...)
	}
	return errs
}

// ---- hibernation ----

func validateHibernation(hibernation *gardencore.Hibernation, annotations map[string]string, selfHosted bool,
	path *field.Path) field.ErrorList {
	if hibernation == nil {
		return nil
	}
	if selfHosted {
		return field.ErrorList{field.Forbidden(path, "must not be set for a self-hosted Shoot")}
	}
	var errs field.ErrorList
	for _, operation := range SplitOperations(annotations[constants.GardenerMaintenanceOperation]) {
		if HibernationEnabled(hibernation) && operationsNotInHibernation.Has(operation) {
			errs = append(errs, field.Forbidden(path.Child("enabled"),
				fmt.Sprintf("must not be true while the annotation %s asks for %s", constants.GardenerMaintenanceOperation, operation)))
		}
	}
	seen := sets.New[string]()
	for i, schedule := range hibernation.Schedules {
		errs = append(errs, validateHibernationSchedule(schedule, seen, path.Child("schedules").Index(i))...)
	}
	return errs
}

// validateHibernationSchedule checks one schedule. The starts and ends of all schedules must be distinct; seen
// contains the previous ones.
func validateHibernationSchedule(schedule gardencore.HibernationSchedule, seen sets.Set[string], path *field.Path) field.ErrorList {
	errs := RequiredIf(schedule.Start == nil && schedule.End == nil, path.Child("start/end"), "must have a start or an end")
	for _, at := range []struct {
		name string
		spec *string
	}{{"start", schedule.Start}, {"end", schedule.End}} {
		if at.spec == nil {
			continue
		}
		if err := parseCron(*at.spec); err != nil {
			errs = append(errs, field.Invalid(path.Child(at.name), *at.spec, fmt.Sprintf("must be a cron expression with five fields: %v", err)))
		} else if !insertNew(seen, *at.spec) {
			errs = append(errs, field.Duplicate(path.Child(at.name), *at.spec))
		}
	}
	if schedule.Location != nil {
		if _, err := time.LoadLocation(*schedule.Location); err != nil {
			errs = append(errs, field.Invalid(path.Child("location"), *schedule.Location, fmt.Sprintf("must be a time zone: %v", err)))
		}
	}
	return errs
}

// parseCron checks a cron expression. It refuses a time zone, which the parser supports but Gardener does not,
// because a schedule has a location.
func parseCron(spec string) error {
	if strings.Contains(spec, "TZ=") {
		return fmt.Errorf("the time zone belongs into the location")
	}
	_, err := cron.ParseStandard(spec)
	return err
}

// ---- system components ----

func validateSystemComponents(components *gardencore.SystemComponents, workerless bool, path *field.Path) field.ErrorList {
	if components == nil {
		return nil
	}
	if workerless {
		return field.ErrorList{field.Forbidden(path, notForWorkerlessShoots)}
	}
	if components.CoreDNS == nil {
		return nil
	}
	var (
		errs        field.ErrorList
		coreDNSPath = path.Child("coreDNS")
	)
	if autoscaling := components.CoreDNS.Autoscaling; autoscaling != nil {
		errs = append(errs, Supported(coreDNSPath.Child("autoscaling", "mode"), autoscaling.Mode,
			gardencore.CoreDNSAutoscalingModeClusterProportional, gardencore.CoreDNSAutoscalingModeHorizontal)...)
	}
	if rewriting := components.CoreDNS.Rewriting; rewriting != nil {
		errs = append(errs, validateCommonSuffixes(rewriting.CommonSuffixes, coreDNSPath.Child("rewriting", "commonSuffixes"))...)
	}
	return errs
}

// validateCommonSuffixes checks that the suffixes are distinct domains with at least two labels. They may have a
// leading and a trailing dot.
func validateCommonSuffixes(suffixes []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, suffix := range suffixes {
		idxPath, domain := path.Index(i), strings.TrimPrefix(suffix, ".")
		errs = append(errs, InvalidIf(!strings.Contains(domain, "."), idxPath, suffix, "must contain a dot that is not the first character")...)
		errs = append(errs, Distinct(idxPath, seen, domain)...)
		errs = append(errs, InvalidIf(len(validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, "."))) > 0, idxPath,
			domain, "must be a DNS subdomain")...)
	}
	return errs
}
